#pragma once
// Writes the headers of Ethernet and IP. Each function returns the place behind its header; the caller checks the room.
#include <cstddef>
#include <cstdint>

#include "transport/ethernet/addresses.h"
#include "transport/ethernet/frame.h"

namespace tributary::transport::ethernet {

/// `vlan` 0: untagged.
std::byte* write_ethernet(std::byte* at, const MacAddress& to, const MacAddress& from, std::uint16_t vlan,
                          EtherType type) noexcept;
/// Sets "don't fragment", with which RFC 6864 (4.1) allows the identification 0.
std::byte* write_ipv4(std::byte* at, const IpAddress& from, const IpAddress& to, IpProtocol protocol,
                      std::uint8_t traffic_class, std::size_t body_bytes) noexcept;
std::byte* write_ipv6(std::byte* at, const IpAddress& from, const IpAddress& to, IpProtocol protocol,
                      std::uint8_t traffic_class, std::uint8_t hop_limit, std::size_t body_bytes) noexcept;

}  // namespace tributary::transport::ethernet
