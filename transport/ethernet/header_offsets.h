#pragma once
// The bytes at which the fields of the IPv4, IPv6 and UDP headers begin.
#include <cstddef>

namespace tributary::transport::ethernet {

inline constexpr std::size_t kIpv4Total = 2, kIpv4Fragment = 6, kIpv4Ttl = 8, kIpv4Protocol = 9, kIpv4Checksum = 10,
                             kIpv4From = 12, kIpv4To = 16;
inline constexpr std::size_t kIpv6Length = 4, kIpv6Next = 6, kIpv6Hops = 7, kIpv6From = 8, kIpv6To = 24;
inline constexpr std::size_t kUdpLength = 4, kUdpChecksum = 6;

}  // namespace tributary::transport::ethernet
