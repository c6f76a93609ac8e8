#pragma once
// Packet addresses as endpoints, and as the system's socket addresses.
#include <optional>

#include "transport/packet/port.h"
#include "transport/socket/address.h"

namespace tributary::transport::packet {

/// Writes an IPv4 address in IPv4's form, and an address of zeros as "::".
[[nodiscard]] Endpoint endpoint_of(const PacketAddress& address);
[[nodiscard]] PacketAddress packet_address(const SocketAddress& address) noexcept;
/// Makes an address for an IPv6 socket that also carries IPv4, or, with `four`, for an IPv4 socket.
[[nodiscard]] SocketAddress socket_address(const PacketAddress& address, bool four) noexcept;
[[nodiscard]] bool is_ipv4(const PacketAddress& address) noexcept;

}  // namespace tributary::transport::packet
