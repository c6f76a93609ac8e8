#include "transport/verbs/on_link.h"

#include <ifaddrs.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>

namespace tributary::transport::verbs {
namespace {

std::span<const std::byte> bytes_of(const sockaddr& address) noexcept {
  if (address.sa_family == AF_INET)
    return std::as_bytes(std::span(&reinterpret_cast<const sockaddr_in&>(address).sin_addr, 1));
  if (address.sa_family == AF_INET6)
    return std::as_bytes(std::span(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, 1));
  return {};
}

const sockaddr& plain(const sockaddr_storage& storage) noexcept {
  return reinterpret_cast<const sockaddr&>(storage);
}

void copy(sockaddr_storage& into, const sockaddr& from) noexcept {
  std::memcpy(&into, &from, from.sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
}

}  // namespace

bool is_neighbour(const LinkNetwork& network, const sockaddr& to) noexcept {
  const auto own = bytes_of(plain(network.address));
  const auto mask = bytes_of(plain(network.mask));
  const auto other = bytes_of(to);
  if (own.empty() || own.size() != other.size() || own.size() != mask.size()) return false;
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (((own[i] ^ other[i]) & mask[i]) != std::byte{0}) return false;
  }
  return true;
}

bool is_on_link(const sockaddr& from, const sockaddr& to) {
  ifaddrs* found = nullptr;
  if (::getifaddrs(&found) != 0) return false;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> list(found, ::freeifaddrs);
  const auto wanted = bytes_of(from);
  for (const ifaddrs* one = found; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_netmask == nullptr || one->ifa_addr->sa_family != from.sa_family) continue;
    const auto has = bytes_of(*one->ifa_addr);
    if (wanted.empty() || std::memcmp(has.data(), wanted.data(), wanted.size()) != 0) continue;
    LinkNetwork network;
    copy(network.address, *one->ifa_addr);
    copy(network.mask, *one->ifa_netmask);
    network.mask.ss_family = from.sa_family;  // some systems leave out the family
    return is_neighbour(network, to);
  }
  return false;
}

}  // namespace tributary::transport::verbs
