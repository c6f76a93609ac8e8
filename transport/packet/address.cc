#include "transport/packet/address.h"

#include <netinet/in.h>

#include <algorithm>
#include <cstring>

namespace tributary::transport::packet {
namespace {

constexpr std::array<std::uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};

}  // namespace

bool is_ipv4(const PacketAddress& address) noexcept {
  return std::equal(kMapped.begin(), kMapped.end(), address.ip.begin());
}

SocketAddress socket_address(const PacketAddress& address, bool four) noexcept {
  SocketAddress result;
  if (four) {
    auto* to = reinterpret_cast<sockaddr_in*>(&result.storage);
    to->sin_family = AF_INET;
    to->sin_port = htons(address.port);
    std::memcpy(&to->sin_addr, address.ip.data() + kMapped.size(), sizeof to->sin_addr);
    result.bytes = sizeof *to;
  } else {
    auto* to = reinterpret_cast<sockaddr_in6*>(&result.storage);
    to->sin6_family = AF_INET6;
    to->sin6_port = htons(address.port);
    std::memcpy(&to->sin6_addr, address.ip.data(), sizeof to->sin6_addr);
    result.bytes = sizeof *to;
  }
  return result;
}

PacketAddress packet_address(const SocketAddress& address) noexcept {
  PacketAddress result;
  if (address.family() == AF_INET) {
    const auto* from = reinterpret_cast<const sockaddr_in*>(&address.storage);
    std::ranges::copy(kMapped, result.ip.begin());
    std::memcpy(result.ip.data() + kMapped.size(), &from->sin_addr, sizeof from->sin_addr);
    result.port = ntohs(from->sin_port);
  } else {
    const auto* from = reinterpret_cast<const sockaddr_in6*>(&address.storage);
    std::memcpy(result.ip.data(), &from->sin6_addr, sizeof from->sin6_addr);
    result.port = ntohs(from->sin6_port);
  }
  return result;
}

Endpoint endpoint_of(const PacketAddress& address) {
  return transport::endpoint_of(socket_address(address, is_ipv4(address)));
}

}  // namespace tributary::transport::packet
