#include "client/plugins/nccl/devices.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <string_view>

#include "client/plugins/nccl/first_line.h"
#include "client/plugins/nccl/log.h"
#include "client/plugins/nccl/rdma_port.h"
#include "client/plugins/nccl/settings.h"
#include "client/plugins/nccl/wire.h"
#include "client/plugins/nccl/wrapped_devices.h"

namespace tributary::nccl {
namespace {

constexpr int kSpeedUnknownMbps = 10'000;  // NCCL assumes this speed, too, if an interface reports none

struct FreeInterfaces {
  void operator()(ifaddrs* list) const { freeifaddrs(list); }
};

bool is_virtual(std::string_view name) {
  constexpr std::array<std::string_view, 5> prefixes{"docker", "br-", "virbr", "veth", "cni"};
  return std::ranges::any_of(prefixes, [&](std::string_view prefix) { return name.starts_with(prefix); });
}

/// Returns the address as a text, or an empty text if other hosts cannot use the address.
std::string usable_address(const ifaddrs& one) {
  // An interface that is up may have no link; IFF_RUNNING shows a link. NCCL's own sockets check this flag, too.
  constexpr unsigned int kUsable = IFF_UP | IFF_RUNNING;
  if (one.ifa_addr == nullptr || (one.ifa_flags & kUsable) != kUsable) return {};
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes = nullptr;
  if (one.ifa_addr->sa_family == AF_INET) {
    bytes = &reinterpret_cast<const sockaddr_in*>(one.ifa_addr)->sin_addr;
  } else if (one.ifa_addr->sa_family == AF_INET6) {
    const auto& address = reinterpret_cast<const sockaddr_in6*>(one.ifa_addr)->sin6_addr;
    if (!IN6_IS_ADDR_LINKLOCAL(&address)) bytes = &address;
  }
  if (bytes == nullptr) return {};
  return inet_ntop(one.ifa_addr->sa_family, bytes, text.data(), text.size()) != nullptr ? text.data() : std::string();
}

int speed_of(const std::filesystem::path& folder) {
  const int speed = number_in(first_line(folder / "speed"), 0);
  return speed > 0 ? speed : kSpeedUnknownMbps;
}

/// Returns the PCI function's folder in /sys. NCCL uses this path to place the device in its map of the machine.
std::string pci_path_of(const std::filesystem::path& folder) {
  std::error_code error;
  if (!std::filesystem::exists(folder / "device", error)) return {};
  const auto path = std::filesystem::canonical(folder / "device", error);
  return error || !path.string().contains("/pci") ? std::string() : path.string();
}

/// Returns the hardware address. An interface without one gets a hash of its name, with the highest bit set.
std::uint64_t guid_of(const std::filesystem::path& folder, const std::string& name) {
  std::uint64_t guid = 0;
  for (const char c : first_line(folder / "address")) {
    const auto digit = std::string_view("0123456789abcdef").find(c);
    if (digit != std::string_view::npos) guid = guid << 4 | digit;
  }
  return guid != 0 ? guid : std::hash<std::string>{}(name) | 1ULL << 63;
}

SocketCounts socket_counts_of(const std::filesystem::path& folder, const std::string& name) {
  std::string complaint;
  const auto counts = socket_counts(std::getenv("NCCL_SOCKET_NTHREADS"), std::getenv("NCCL_NSOCKS_PERTHREAD"),
                                    first_line(folder / "device" / "vendor"), complaint);
  if (!complaint.empty()) warn(name + ": " + complaint);
  return counts;
}

NetDevice describe_interface(const std::string& name, const std::string& address) {
  const std::filesystem::path folder = "/sys/class/net/" + name;
  NetDevice device;
  device.name = device.interface = name;
  device.address = address;
  device.pci_path = pci_path_of(folder);
  device.guid = guid_of(folder, name);
  device.speed_mbps = speed_of(folder);
  device.socket_counts = socket_counts_of(folder, name);
  return device;
}

void add(std::vector<NetDevice>& list, const ifaddrs& one) {
  const std::string address = usable_address(one);
  if (address.empty()) return;
  const auto known = std::ranges::find(list, one.ifa_name, &NetDevice::name);
  if (known == list.end()) {
    list.push_back(describe_interface(one.ifa_name, address));
  } else if (known->address.contains(':') && !address.contains(':')) {
    known->address = address;
  }
}

std::vector<NetDevice> find_interfaces() {
  ifaddrs* raw = nullptr;
  if (getifaddrs(&raw) != 0) return {};
  const std::unique_ptr<ifaddrs, FreeInterfaces> list(raw);
  std::vector<NetDevice> all, usual, loopback;
  for (const ifaddrs* one = raw; one != nullptr; one = one->ifa_next) {
    add(all, *one);
    if ((one->ifa_flags & IFF_LOOPBACK) != 0) {
      add(loopback, *one);
    } else if (!is_virtual(one->ifa_name)) {
      add(usual, *one);
    }
  }
  if (const auto& filter = settings().nccl_interfaces; settings().interfaces.empty() && !filter.empty()) {
    std::erase_if(all, [&](const NetDevice& device) { return !filter.admits(device.name); });
    if (all.empty()) warn("NCCL_SOCKET_IFNAME=" + filter.text() + " leaves no interface that is up and has a link");
    return all;
  }
  if (settings().interfaces.empty()) return usual.empty() ? loopback : usual;
  std::vector<NetDevice> named;
  for (const std::string& name : settings().interfaces) {
    const auto found = std::ranges::find(all, name, &NetDevice::name);
    if (found == all.end()) {
      warn("TRIBUTARY_IFNAME names " + name +
           ", but there is no such interface that is up and has a link and an address");
    } else {
      named.push_back(*found);
    }
  }
  return named;
}

/// Returns false for an interface without an RDMA port.
bool take_rdma_port(NetDevice& device) {
  const auto port = rdma_port_of(device.name);
  if (!port || !port->active) return false;
  device.rdma_device = port->device;
  device.port = port->port;
  if (port->speed_mbps > 0) device.speed_mbps = port->speed_mbps;
  if (port->guid != 0) device.guid = port->guid;
  return true;
}

std::vector<NetDevice> find_devices() {
  auto list = find_interfaces();
  if (!wire()) return {};  // init() has logged the reason
  if (*wire() != Wire::verbs) return list;
  const bool named = !settings().interfaces.empty();
  std::erase_if(list, [&](NetDevice& device) {
    const bool usable = take_rdma_port(device);
    if (!usable && named) warn("TRIBUTARY_IFNAME names " + device.name + ", which has no active RDMA port");
    return !usable;
  });
  if (list.empty()) warn("TRIBUTARY_TRANSPORT asks for verbs, but no usable interface has an active RDMA port");
  return list;
}

}  // namespace

const std::vector<NetDevice>& devices() {
  static const std::vector<NetDevice> list = find_devices();
  return list;
}

const NetDevice* collective_device_at(int index) {
  if (index < 0 || index >= kCollectiveDevices) return nullptr;
  const auto* const wrapped = wrapped_devices();
  const auto& list = wrapped != nullptr ? *wrapped : devices();
  if (list.empty()) return nullptr;
  const auto at = static_cast<std::size_t>(index);
  return &list[at < list.size() ? at : 0];
}

const NetDevice* device_at(int index) {
  const auto& list = devices();
  return index >= 0 && static_cast<std::size_t>(index) < list.size() ? &list[static_cast<std::size_t>(index)] : nullptr;
}

}  // namespace tributary::nccl
