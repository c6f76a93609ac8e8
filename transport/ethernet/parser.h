#pragma once
// Recognizes a frame. A pure function of its bytes: no state, no writes, and every length is checked before use.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "transport/ethernet/addresses.h"
#include "transport/ethernet/frame.h"

namespace tributary::transport::ethernet {

enum class FrameKind : std::uint8_t { dropped, udp, arp, icmp, icmp6 };

/// The reason why a frame is dropped. Each reason has a count.
enum class Drop : std::uint8_t {
  none,
  runt,           // frame shorter than its headers say
  group_source,   // the source is a group address, which no station has
  vlan,           // the frame is tagged twice
  ether_type,     // the frame is neither IP nor ARP
  ip_version,     // the IP header's version differs from Ethernet's type
  ip_options,     // the packet has IPv4 options or IPv6 extension headers
  ip_fragment,    // a part of a larger datagram: the packet protocol sends no parts
  ip_length,      // the IP header's lengths do not fit the frame
  ip_checksum,    // the checksum of IPv4's header is wrong
  ip_source,      // no host can have the source: multicast, loopback, unspecified
  protocol,       // the packet is neither UDP nor ICMP
  udp_length,     // UDP's length differs from the IP header's length
  udp_port,       // the source is port 0
  udp_checksum,   // UDP's checksum is wrong, or missing over IPv6
  icmp_checksum,  // the checksum of ICMP or ICMPv6 is wrong
  arp_format,     // the ARP message is not for IPv4 over Ethernet
};
inline constexpr std::size_t kDrops = 17;
[[nodiscard]] std::string_view to_string(Drop drop) noexcept;

/// The checks that a device has made already.
struct CheckedByDevice {
  bool ip = false;
  bool udp = false;
  bool udp_later = false;  // the caller verifies UDP's checksum: see Frame::udp_besides
};

struct Frame {
  FrameKind kind = FrameKind::dropped;
  Drop drop = Drop::none;
  Ecn ecn = Ecn::not_capable;
  std::uint8_t hop_limit = 0;
  std::uint16_t vlan = 0;  // 0: untagged, or tagged only for its priority
  std::uint16_t from_port = 0;
  std::uint16_t to_port = 0;
  std::uint32_t body_offset = 0;             // offset of UDP's payload, the whole ICMP message or the ARP message
  std::uint32_t body_bytes = 0;              // length of this part, without Ethernet's padding
  std::optional<std::uint64_t> udp_besides;  // if UDP's checksum must still be verified: sum of the bytes that it
                                             // covers, except the body
  MacAddress from_mac;
  MacAddress to_mac;
  IpAddress from{};  // IP frames only
  IpAddress to{};
};

[[nodiscard]] Frame parse_frame(std::span<const std::byte> bytes, CheckedByDevice checked = {}) noexcept;

}  // namespace tributary::transport::ethernet
