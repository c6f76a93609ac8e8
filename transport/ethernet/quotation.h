#pragma once
// The datagram of this host that an ICMP error is about: routers and hosts quote its beginning (RFC 792, RFC 4443 2.4).
// An attacker who invents an error must guess a packet that this host has sent.
#include <cstdint>
#include <optional>
#include <span>

#include "transport/ethernet/parser.h"

namespace tributary::transport::ethernet {

struct Quotation {
  IpAddress from{};
  IpAddress to{};
  std::uint16_t from_port = 0;
  std::uint16_t to_port = 0;
  std::uint32_t payload_offset = 0;  // offset of the quoted payload in the frame; the quotation may be shorter than
                                     // the sent payload, or empty
  std::uint32_t payload_bytes = 0;
  bool port_unreachable = false;     // no process listens at `to` and `to_port`
  std::optional<std::uint32_t> mtu;  // set if the datagram was too long: the greatest length that the path carries
};

/// The quotation in a frame that parse_frame() calls ICMP or ICMPv6; nullopt if the frame is no such error, or the
/// error is not about a UDP datagram.
[[nodiscard]] std::optional<Quotation> parse_quotation(const Frame& frame, std::span<const std::byte> bytes) noexcept;

}  // namespace tributary::transport::ethernet
