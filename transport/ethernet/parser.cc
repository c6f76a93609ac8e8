#include "transport/ethernet/parser.h"

#include <cstring>

#include "transport/ethernet/bytes.h"
#include "transport/ethernet/checksum.h"
#include "transport/ethernet/header_offsets.h"

namespace tributary::transport::ethernet {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::uint16_t kVlanNumber = 0x0FFF;
constexpr std::uint16_t kMoreFragmentsAndOffset = 0x3FFF;

/// True if an IPv4 address can belong to a single host: not the unspecified one, loopback, a group or the broadcast
/// address.
bool is_host(std::uint32_t ip) noexcept {
  return ip != 0 && ip >> 24U != 127 && ip >> 28U != 0xE && ip != 0xFFFFFFFFU;
}

/// `addresses` is the checksum's partial sum of both addresses, as in the pseudo header.
Drop parse_udp(Bytes bytes, PartialSum addresses, CheckedByDevice checked, Frame& frame) noexcept {
  if (frame.body_bytes < kUdpBytes) return Drop::udp_length;
  const Bytes datagram = bytes.subspan(frame.body_offset, frame.body_bytes);
  if (load16(datagram.data() + kUdpLength) != frame.body_bytes) return Drop::udp_length;
  const bool has_checksum = load16(datagram.data() + kUdpChecksum) != 0;
  if (!has_checksum && !is_ipv4(frame.from)) return Drop::udp_checksum;
  if (has_checksum && !checked.udp) {
    const PartialSum besides = addresses + __builtin_bswap16(static_cast<std::uint16_t>(IpProtocol::udp)) +
                               __builtin_bswap32(frame.body_bytes) + sum_of_words<kUdpBytes>(datagram.data());
    if (checked.udp_later) {
      frame.udp_besides = besides;
    } else if (!udp_right(besides, datagram.subspan(kUdpBytes))) {
      return Drop::udp_checksum;
    }
  }
  frame.from_port = load16(datagram.data());
  frame.to_port = load16(datagram.data() + 2);
  if (frame.from_port == 0) return Drop::udp_port;
  frame.body_offset += kUdpBytes;
  frame.body_bytes -= std::uint32_t{kUdpBytes};
  frame.kind = FrameKind::udp;
  return Drop::none;
}

Drop parse_icmp(Bytes bytes, Frame& frame) noexcept {
  if (frame.body_bytes < kIcmpBytes) return Drop::ip_length;
  if (finish(partial_sum(bytes.subspan(frame.body_offset, frame.body_bytes))) != 0) return Drop::icmp_checksum;
  frame.kind = FrameKind::icmp;
  return Drop::none;
}

Drop parse_icmp6(Bytes bytes, Frame& frame) noexcept {
  if (frame.body_bytes < kIcmpBytes) return Drop::ip_length;
  const PartialSum sum =
      pseudo_header_sum(frame.from, frame.to, static_cast<std::uint8_t>(IpProtocol::icmp6), frame.body_bytes) +
      partial_sum(bytes.subspan(frame.body_offset, frame.body_bytes));
  if (finish(sum) != 0) return Drop::icmp_checksum;
  frame.kind = FrameKind::icmp6;
  return Drop::none;
}

/// `at` is the offset of the IP header.
Drop parse_ipv4(Bytes bytes, std::size_t at, CheckedByDevice checked, Frame& frame) noexcept {
  if (bytes.size() - at < kIpv4Bytes) return Drop::runt;
  const std::byte* const ip = bytes.data() + at;
  const std::uint8_t version_and_words = load8(ip);
  if (version_and_words >> 4U != 4) return Drop::ip_version;
  if ((version_and_words & 0x0FU) != kIpv4Bytes / 4) {
    return (version_and_words & 0x0FU) > kIpv4Bytes / 4 ? Drop::ip_options : Drop::ip_length;
  }
  const std::size_t total = load16(ip + kIpv4Total);
  if (total < kIpv4Bytes || total > bytes.size() - at) return Drop::ip_length;
  if ((load16(ip + kIpv4Fragment) & kMoreFragmentsAndOffset) != 0) return Drop::ip_fragment;
  if (!checked.ip && finish(sum_of_words<kIpv4Bytes>(ip)) != 0) return Drop::ip_checksum;
  if (!is_host(load32(ip + kIpv4From))) return Drop::ip_source;
  frame.from = mapped(load_array<4>(ip + kIpv4From));
  frame.to = mapped(load_array<4>(ip + kIpv4To));
  frame.ecn = static_cast<Ecn>(load8(ip + 1) & 3U);
  frame.hop_limit = load8(ip + kIpv4Ttl);
  frame.body_offset = static_cast<std::uint32_t>(at + kIpv4Bytes);
  frame.body_bytes = static_cast<std::uint32_t>(total - kIpv4Bytes);
  switch (static_cast<IpProtocol>(load8(ip + kIpv4Protocol))) {
    case IpProtocol::udp:
      return parse_udp(bytes, sum_of_words<8>(ip + kIpv4From), checked, frame);
    case IpProtocol::icmp:
      return parse_icmp(bytes, frame);
    default:
      return Drop::protocol;
  }
}

/// RFC 8200's extension headers, which may stand between IPv6's header and UDP's.
bool is_extension(std::uint8_t next) noexcept {
  return next == 0 || next == 43 || next == 50 || next == 51 || next == 60 || next == 135;
}

Drop parse_ipv6(Bytes bytes, std::size_t at, CheckedByDevice checked, Frame& frame) noexcept {
  if (bytes.size() - at < kIpv6Bytes) return Drop::runt;
  const std::byte* const ip = bytes.data() + at;
  const std::uint32_t first = load32(ip);
  if (first >> 28U != 6) return Drop::ip_version;
  const std::size_t length = load16(ip + kIpv6Length);
  if (length > bytes.size() - at - kIpv6Bytes) return Drop::ip_length;
  frame.from = load_array<16>(ip + kIpv6From);
  frame.to = load_array<16>(ip + kIpv6To);
  // Mapped addresses never travel (RFC 6890, 2.2.3); here the parser would take them for IPv4 addresses.
  if (is_ipv4(frame.from) || is_ipv4(frame.to) || is_multicast(frame.from) || is_loopback(frame.from)) {
    return Drop::ip_source;
  }
  frame.ecn = static_cast<Ecn>((first >> 20U) & 3U);
  frame.hop_limit = load8(ip + kIpv6Hops);
  frame.body_offset = static_cast<std::uint32_t>(at + kIpv6Bytes);
  frame.body_bytes = static_cast<std::uint32_t>(length);
  const std::uint8_t next = load8(ip + kIpv6Next);
  switch (static_cast<IpProtocol>(next)) {
    case IpProtocol::udp:
      return is_unspecified(frame.from) ? Drop::ip_source
                                        : parse_udp(bytes, sum_of_words<32>(ip + kIpv6From), checked, frame);
    case IpProtocol::icmp6:
      return parse_icmp6(bytes, frame);
    case IpProtocol::fragment:
      return Drop::ip_fragment;
    default:
      return is_extension(next) ? Drop::ip_options : Drop::protocol;
  }
}

/// Takes ARP for IPv4 over Ethernet only: hardware type 1, addresses of 6 and 4 bytes.
Drop parse_arp(Bytes bytes, std::size_t at, Frame& frame) noexcept {
  constexpr std::uint64_t kIpv4OverEthernet = 0x0001'0800'0604;
  if (bytes.size() - at < kArpBytes) return Drop::runt;
  const std::byte* const arp = bytes.data() + at;
  if ((std::uint64_t{load32(arp)} << 16U | load16(arp + 4)) != kIpv4OverEthernet) return Drop::arp_format;
  frame.body_offset = static_cast<std::uint32_t>(at);
  frame.body_bytes = kArpBytes;
  frame.kind = FrameKind::arp;
  return Drop::none;
}

Drop parse(Bytes bytes, CheckedByDevice checked, Frame& frame) noexcept {
  if (bytes.size() < kEthernetBytes) return Drop::runt;
  frame.to_mac.bytes = load_array<6>(bytes.data());
  frame.from_mac.bytes = load_array<6>(bytes.data() + 6);
  if (frame.from_mac.is_group()) return Drop::group_source;
  std::size_t at = kEthernetBytes;
  auto type = static_cast<EtherType>(load16(bytes.data() + 12));
  if (type == EtherType::vlan) {
    if (bytes.size() < kEthernetBytes + kVlanBytes) return Drop::runt;
    frame.vlan = load16(bytes.data() + at) & kVlanNumber;
    type = static_cast<EtherType>(load16(bytes.data() + at + 2));
    at += kVlanBytes;
  }
  switch (type) {
    case EtherType::ipv4:
      return parse_ipv4(bytes, at, checked, frame);
    case EtherType::ipv6:
      return parse_ipv6(bytes, at, checked, frame);
    case EtherType::arp:
      return parse_arp(bytes, at, frame);
    case EtherType::vlan:
      return Drop::vlan;
    default:
      return Drop::ether_type;
  }
}

}  // namespace

Frame parse_frame(std::span<const std::byte> bytes, CheckedByDevice checked) noexcept {
  Frame frame;
  frame.drop = parse(bytes, checked, frame);
  if (frame.drop != Drop::none) frame.kind = FrameKind::dropped;
  return frame;
}

std::string_view to_string(Drop drop) noexcept {
  static constexpr std::array<std::string_view, kDrops> kNames{
      "none",       "runt",        "group_source", "vlan",          "ether_type", "ip_version",
      "ip_options", "ip_fragment", "ip_length",    "ip_checksum",   "ip_source",  "protocol",
      "udp_length", "udp_port",    "udp_checksum", "icmp_checksum", "arp_format"};
  return kNames[static_cast<std::size_t>(drop)];
}

}  // namespace tributary::transport::ethernet
