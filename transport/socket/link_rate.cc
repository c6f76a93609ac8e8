#include "tributary/transport/link_rate.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

namespace tributary::transport {
namespace {

/// Drivers of interfaces without a wire: they report a constant rate.
constexpr std::array<std::string_view, 2> kWithoutWire{"veth", "tun"};

struct FreeInterfaces {
  void operator()(ifaddrs* list) const { ::freeifaddrs(list); }
};

bool has_address(const ifaddrs& one, const std::string& address) {
  if (one.ifa_addr == nullptr) return false;
  const int family = one.ifa_addr->sa_family;
  if (family != AF_INET && family != AF_INET6) return false;
  const void* bytes = &reinterpret_cast<const sockaddr_in*>(one.ifa_addr)->sin_addr;
  if (family == AF_INET6) bytes = &reinterpret_cast<const sockaddr_in6*>(one.ifa_addr)->sin6_addr;
  std::array<char, INET6_ADDRSTRLEN> text{};
  return ::inet_ntop(family, bytes, text.data(), text.size()) != nullptr && address == text.data();
}

class Ethtool {
 public:
  explicit Ethtool(std::string interface)
      : socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)), interface_(std::move(interface)) {}
  ~Ethtool() {
    if (socket_ >= 0) ::close(socket_);
  }
  Ethtool(const Ethtool&) = delete;
  Ethtool& operator=(const Ethtool&) = delete;

  /// Fills in `command`; its first word is the command's number.
  template <class Command>
  bool ask(Command& command) {
    ifreq request{};
    interface_.copy(request.ifr_name, IFNAMSIZ - 1);
    request.ifr_data = reinterpret_cast<char*>(&command);
    return socket_ >= 0 && ::ioctl(socket_, SIOCETHTOOL, &request) == 0;
  }

 private:
  int socket_;
  const std::string interface_;
};

bool has_wire(Ethtool& ethtool) {
  ethtool_drvinfo driver{};
  driver.cmd = ETHTOOL_GDRVINFO;
  return ethtool.ask(driver) && std::ranges::find(kWithoutWire, std::string_view(driver.driver)) == kWithoutWire.end();
}

/// The kernel answers the first question with the number of words in its sets of link modes, negated. The second
/// question repeats this number, and the kernel answers with the settings.
std::uint64_t megabits_of(Ethtool& ethtool) {
  constexpr std::size_t kSets = 3, kWordsMax = 127;
  alignas(ethtool_link_settings)
      std::array<std::byte, sizeof(ethtool_link_settings) + kSets * kWordsMax * sizeof(std::uint32_t)>
          memory{};
  ethtool_link_settings& settings = *new (memory.data()) ethtool_link_settings;
  settings.cmd = ETHTOOL_GLINKSETTINGS;
  settings.link_mode_masks_nwords = 0;
  if (!ethtool.ask(settings) || settings.link_mode_masks_nwords >= 0) return 0;
  settings.link_mode_masks_nwords = static_cast<std::int8_t>(-settings.link_mode_masks_nwords);
  settings.cmd = ETHTOOL_GLINKSETTINGS;
  if (!ethtool.ask(settings) || settings.speed == static_cast<std::uint32_t>(SPEED_UNKNOWN)) return 0;
  return settings.speed;
}

}  // namespace

std::string interface_of(const std::string& address) {
  ifaddrs* raw = nullptr;
  if (::getifaddrs(&raw) != 0) return {};
  const std::unique_ptr<ifaddrs, FreeInterfaces> list(raw);
  for (const ifaddrs* one = raw; one != nullptr; one = one->ifa_next) {
    if (has_address(*one, address)) return one->ifa_name;
  }
  return {};
}

std::uint64_t link_rate_of(const std::string& address) {
  const std::string interface = interface_of(address);
  if (interface.empty()) return 0;
  Ethtool ethtool(interface);
  return has_wire(ethtool) ? megabits_of(ethtool) * 1'000'000 : 0;
}

}  // namespace tributary::transport
