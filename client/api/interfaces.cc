#include "client/api/interfaces.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>

#include "tributary/kernels/cuda_driver.h"
#include "tributary/transport/rails.h"
#include "tributary/transport/tcp.h"
#include "tributary/transport/verbs.h"

namespace tributary::client {
namespace {

constexpr const char* kLoopback = "127.0.0.1";

struct FreeInterfaces {
  void operator()(ifaddrs* list) const { freeifaddrs(list); }
};
struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

std::string to_text(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes = address->sa_family == AF_INET
                          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(address)->sin_addr)
                          : static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
  return inet_ntop(address->sa_family, bytes, text.data(), text.size()) != nullptr ? text.data() : "";
}

bool is_virtual(std::string_view name) {
  for (const std::string_view prefix : {"docker", "br-", "virbr", "veth", "cni"}) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

/// Returns how suitable an address is for other ranks; lower is better; nullopt: never advertise it.
std::optional<int> preference(const ifaddrs& one) {
  if (one.ifa_addr == nullptr || (one.ifa_flags & IFF_UP) == 0 || (one.ifa_flags & IFF_LOOPBACK) != 0)
    return std::nullopt;
  const int family = one.ifa_addr->sa_family;
  const int last = is_virtual(one.ifa_name) ? 2 : 0;
  if (family == AF_INET) return last;
  if (family != AF_INET6) return std::nullopt;
  // Skip link-local addresses: they need the name of their interface, which differs from host to host.
  if (IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(one.ifa_addr)->sin6_addr)) return std::nullopt;
  return last + 1;
}

std::string first_address() {
  ifaddrs* raw = nullptr;
  if (getifaddrs(&raw) != 0) return {};
  const std::unique_ptr<ifaddrs, FreeInterfaces> list(raw);
  std::string best;
  int best_preference = 4;
  for (const ifaddrs* one = raw; one != nullptr; one = one->ifa_next) {
    const auto rank = preference(*one);
    if (!rank || *rank >= best_preference) continue;
    best_preference = *rank;
    best = to_text(one->ifa_addr);
  }
  return best;
}

/// Returns "127.0.0.1" or "::1" for a name of the loopback, else an empty text. The only name it knows is "localhost".
std::string loopback_of(std::string_view master) {
  if (master == "localhost" || master.starts_with("127.")) return kLoopback;
  return master == "::1" ? "::1" : "";
}

std::unique_ptr<addrinfo, FreeAddresses> numeric(const std::string& host) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), "9", &hints, &found) != 0) return nullptr;
  return std::unique_ptr<addrinfo, FreeAddresses>(found);
}

/// Returns the GPU's id on the PCI bus. It assumes that a process uses the GPU of its local rank. Returns "" if this
/// process has not loaded the CUDA driver: the library must not load it for this question.
std::string gpu_in_use(std::size_t local_rank) {
  void* const loaded = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (loaded == nullptr) return {};
  dlclose(loaded);
  const auto driver = kernels::cuda::open_cuda_driver();
  int count = 0;
  if (!driver || (*driver)->device_count(count) != kernels::cuda::CudaResult::success || count < 1) return {};
  std::array<char, 32> id{};
  const int device = static_cast<int>(local_rank % static_cast<std::size_t>(count));
  const auto result = (*driver)->device_bus_id(id.data(), static_cast<int>(id.size()), device);
  return result == kernels::cuda::CudaResult::success ? id.data() : "";
}

}  // namespace

Result<std::string> address_to_advertise(const std::string& interface_name, const Environment& environment) {
  if (!interface_name.empty()) return transport::address_of_interface(interface_name);
  if (const char* master = environment("MASTER_ADDR"); master != nullptr) {
    if (std::string loopback = loopback_of(master); !loopback.empty()) return loopback;
  }
  std::string address = first_address();
  return address.empty() ? kLoopback : address;
}

Result<std::vector<std::string>> rdma_addresses(const ClientSettings& settings, const Environment& environment) {
  if (settings.rdma_devices.empty() && !settings.interface_name.empty()) {
    auto address = transport::address_of_interface(settings.interface_name);
    if (!address) return std::unexpected(address.error());
    return std::vector{std::move(*address)};
  }
  const transport::SystemTree system;
  transport::RailWish wish{
      .names = settings.rdma_devices, .gpu = {}, .node = transport::node_of_this_thread(system), .turn = 0};
  if (const char* const local_rank = environment("LOCAL_RANK"); local_rank != nullptr)
    std::from_chars(local_rank, local_rank + std::strlen(local_rank), wish.turn);
  if (wish.names.empty()) wish.gpu = gpu_in_use(wish.turn);
  auto rails = transport::choose_rails(system, transport::verbs_rails(), wish);
  if (!rails) {
    return fail(rails.error().code, wish.names.empty()
                                        ? rails.error().message + "; set TRIBUTARY_IFNAME to its interface"
                                        : "TRIBUTARY_RDMA_DEVICES: " + rails.error().message);
  }
  std::vector<std::string> addresses;
  for (transport::Rail& rail : *rails) addresses.push_back(std::move(rail.address));
  return addresses;
}

RdmaWish rdma_wish(const ClientSettings& settings) {
  return {.rails = {},
          .queue_pairs = settings.rdma_queue_pairs,
          .path = settings.rdma_path,
          .on_demand = settings.rdma_on_demand,
          .busy_poll = settings.rdma_busy_poll};
}

// Connects a datagram socket: this sends no packet, but makes the system choose a route and a source address.
std::string address_towards(const std::string& host) {
  const auto to = numeric(host);
  if (!to) return {};
  const int fd = socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return {};
  sockaddr_storage own{};
  socklen_t bytes = sizeof own;
  const bool known =
      connect(fd, to->ai_addr, to->ai_addrlen) == 0 && getsockname(fd, reinterpret_cast<sockaddr*>(&own), &bytes) == 0;
  close(fd);
  return known ? to_text(reinterpret_cast<const sockaddr*>(&own)) : std::string();
}

}  // namespace tributary::client
