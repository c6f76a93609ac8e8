#include "aggregator/daemon/line_rate.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

#include "tributary/protocol/link_rate.h"
#include "tributary/transport/link_rate.h"

namespace tributary::aggregator {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};

/// Returns "host" for "http://host:port/path" and for "http://[host]".
std::string host_in(std::string_view url) {
  if (const auto scheme = url.find("://"); scheme != std::string_view::npos) url.remove_prefix(scheme + 3);
  url = url.substr(0, url.find('/'));
  if (url.starts_with('[')) return std::string(url.substr(1, url.find(']') - 1));
  return std::string(url.substr(0, url.find(':')));
}

std::string text_of(const sockaddr_storage& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes = &reinterpret_cast<const sockaddr_in&>(address).sin_addr;
  if (address.ss_family == AF_INET6) bytes = &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  return ::inet_ntop(address.ss_family, bytes, text.data(), text.size()) != nullptr ? text.data() : "";
}

/// Returns the address from which this host talks to `host`. To connect a datagram socket sends no packet, but makes
/// the system choose the route and the address.
std::string address_towards(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* raw = nullptr;
  if (::getaddrinfo(host.c_str(), "9", &hints, &raw) != 0) return {};
  const std::unique_ptr<addrinfo, FreeAddresses> found(raw);
  const int socket = ::socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return {};
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  const bool routed = ::connect(socket, found->ai_addr, found->ai_addrlen) == 0 &&
                      ::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &length) == 0;
  ::close(socket);
  return routed ? text_of(own) : std::string();
}

/// Returns the address, or the one that stands for all addresses.
std::string one_address(const std::string& address, const std::string& manager_url) {
  const bool any = address.empty() || address == "0.0.0.0" || address == "::";
  return any ? address_towards(host_in(manager_url)) : address;
}

}  // namespace

std::vector<InterfaceRate> interfaces_of(const std::vector<std::string>& addresses, const std::string& manager_url) {
  std::vector<InterfaceRate> list;
  for (const std::string& listed : addresses) {
    InterfaceRate one{.address = one_address(listed, manager_url)};
    one.interface = transport::interface_of(one.address);
    one.rate = transport::link_rate_of(one.address);
    if (std::ranges::find(list, one.interface, &InterfaceRate::interface) == list.end()) list.push_back(one);
  }
  return list;
}

std::uint64_t line_rate_of(const std::vector<std::string>& addresses, const std::string& manager_url) {
  std::uint64_t all = 0;
  for (const std::string& address : addresses) {
    const std::uint64_t rate = transport::link_rate_of(one_address(address, manager_url));
    if (rate == 0) return 0;
    all = std::min(all + rate, kLinkRateMax);
  }
  return all;
}

}  // namespace tributary::aggregator
