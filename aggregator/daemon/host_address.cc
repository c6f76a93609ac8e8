#include "aggregator/daemon/host_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

namespace tributary::aggregator {
namespace {

struct Numeric {
  sockaddr_storage storage{};
  socklen_t bytes = 0;
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

std::optional<Numeric> numeric(const std::string& host) {
  Numeric address;
  auto& four = reinterpret_cast<sockaddr_in&>(address.storage);
  if (::inet_pton(AF_INET, host.c_str(), &four.sin_addr) == 1) {
    four.sin_family = AF_INET;
    address.bytes = sizeof four;
    return address;
  }
  auto& six = reinterpret_cast<sockaddr_in6&>(address.storage);
  if (::inet_pton(AF_INET6, host.c_str(), &six.sin6_addr) != 1) return std::nullopt;
  six.sin6_family = AF_INET6;
  address.bytes = sizeof six;
  return address;
}

bool is_same(const sockaddr& a, const sockaddr& b) {
  if (a.sa_family != b.sa_family) return false;
  if (a.sa_family == AF_INET) {
    return std::memcmp(&reinterpret_cast<const sockaddr_in&>(a).sin_addr,
                       &reinterpret_cast<const sockaddr_in&>(b).sin_addr, sizeof(in_addr)) == 0;
  }
  return std::memcmp(&reinterpret_cast<const sockaddr_in6&>(a).sin6_addr,
                     &reinterpret_cast<const sockaddr_in6&>(b).sin6_addr, sizeof(in6_addr)) == 0;
}

/// False only if the system says that no interface has the address. Other errors, such as too few descriptors, are not
/// about the address.
bool can_be_bound(const Numeric& address) {
  const int socket = ::socket(address.get()->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return true;
  const bool absent = ::bind(socket, address.get(), address.bytes) != 0 && errno == EADDRNOTAVAIL;
  ::close(socket);
  return !absent;
}

}  // namespace

bool is_one_address(const std::string& host) {
  return host != "0.0.0.0" && host != "::" && numeric(host).has_value();
}

Status host_address_lives(const std::string& host) {
  const auto address = numeric(host);
  if (!address) return {};
  if (!can_be_bound(*address)) return fail(Errc::unreachable, "no interface has the address " + host);
  ifaddrs* found = nullptr;
  if (::getifaddrs(&found) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> list(found, ::freeifaddrs);
  for (const ifaddrs* one = found; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || !is_same(*one->ifa_addr, *address->get())) continue;
    if ((one->ifa_flags & IFF_UP) != 0 && (one->ifa_flags & IFF_RUNNING) != 0) return {};
    return fail(Errc::unreachable, "interface " + std::string(one->ifa_name) + " of " + host + " is " +
                                       ((one->ifa_flags & IFF_UP) != 0 ? "without a link" : "down"));
  }
  return {};  // the address is in a network that is local as a whole, such as 127.0.0.2
}

}  // namespace tributary::aggregator
