#include "transport/ethernet/quotation.h"

#include "transport/ethernet/bytes.h"
#include "transport/ethernet/icmp.h"

namespace tributary::transport::ethernet {
namespace {

/// Finds out which error the message reports; false: none that concerns this host.
bool read_kind(const std::byte* message, bool ipv4, Quotation& quotation) noexcept {
  const std::uint8_t type = load8(message);
  const std::uint8_t code = load8(message + 1);
  if (ipv4) {
    if (type != kIcmpUnreachable) return false;
    quotation.port_unreachable = code == kIcmpPortUnreachable;
    if (code == kIcmpFragmentationNeeded) quotation.mtu = load16(message + 6);
  } else {
    quotation.port_unreachable = type == kIcmp6Unreachable && code == kIcmp6PortUnreachable;
    if (type == kIcmp6TooBig && code == 0) quotation.mtu = load32(message + 4);
  }
  return quotation.port_unreachable || quotation.mtu;
}

}  // namespace

std::optional<Quotation> parse_quotation(const Frame& frame, std::span<const std::byte> bytes) noexcept {
  if (frame.kind != FrameKind::icmp && frame.kind != FrameKind::icmp6) return std::nullopt;
  const bool ipv4 = frame.kind == FrameKind::icmp;
  const std::size_t ip_bytes = ipv4 ? kIpv4Bytes : kIpv6Bytes;
  const std::size_t least = kIcmpBytes + ip_bytes + kUdpBytes;
  Quotation quotation;
  if (frame.body_bytes < least || !read_kind(bytes.data() + frame.body_offset, ipv4, quotation)) return std::nullopt;
  const std::byte* const ip = bytes.data() + frame.body_offset + kIcmpBytes;
  // This host sends neither options nor extension headers.
  if (load8(ip) >> 4U != (ipv4 ? 4 : 6) || (ipv4 && load8(ip) != 0x45)) return std::nullopt;
  if (static_cast<IpProtocol>(load8(ip + (ipv4 ? 9 : 6))) != IpProtocol::udp) return std::nullopt;
  quotation.from = ipv4 ? mapped(load_array<4>(ip + 12)) : load_array<16>(ip + 8);
  quotation.to = ipv4 ? mapped(load_array<4>(ip + 16)) : load_array<16>(ip + 24);
  quotation.from_port = load16(ip + ip_bytes);
  quotation.to_port = load16(ip + ip_bytes + 2);
  quotation.payload_offset = static_cast<std::uint32_t>(frame.body_offset + least);
  quotation.payload_bytes = static_cast<std::uint32_t>(frame.body_bytes - least);
  return quotation;
}

}  // namespace tributary::transport::ethernet
