#pragma once
// The layout of the frames that this host sends and reads: Ethernet (IEEE 802.3, 802.1Q), IPv4 (RFC 791), IPv6 (RFC
// 8200), UDP (RFC 768), ARP (RFC 826), ICMP (RFC 792, 4443, 4861).
#include <cstddef>
#include <cstdint>

namespace tributary::transport::ethernet {

inline constexpr std::size_t kEthernetBytes = 14;
inline constexpr std::size_t kVlanBytes = 4;
inline constexpr std::size_t kIpv4Bytes = 20;  // without options: a datagram with options is dropped
inline constexpr std::size_t kIpv6Bytes = 40;
inline constexpr std::size_t kUdpBytes = 8;
inline constexpr std::size_t kArpBytes = 28;
inline constexpr std::size_t kIcmpBytes = 8;
inline constexpr std::size_t kUdpHeadersBytesMax = kEthernetBytes + kVlanBytes + kIpv6Bytes + kUdpBytes;

enum class EtherType : std::uint16_t { ipv4 = 0x0800, arp = 0x0806, vlan = 0x8100, ipv6 = 0x86DD };
enum class IpProtocol : std::uint8_t { icmp = 1, udp = 17, fragment = 44, icmp6 = 58 };

/// The two ECN bits (RFC 3168, 5).
enum class Ecn : std::uint8_t { not_capable = 0, capable_1 = 1, capable_0 = 2, congestion_experienced = 3 };

inline constexpr std::uint8_t kHopLimit = 64;
inline constexpr std::uint8_t kNeighbourHopLimit = 255;  // in neighbour discovery: proves that no router forwarded it

}  // namespace tributary::transport::ethernet
