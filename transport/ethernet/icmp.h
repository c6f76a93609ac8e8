#pragma once
// The numbers of the ICMP and ICMPv6 messages that this host understands (RFC 792, 4443, 4861).
#include <cstddef>
#include <cstdint>

namespace tributary::transport::ethernet {

inline constexpr std::uint8_t kIcmpEchoReply = 0, kIcmpUnreachable = 3, kIcmpEchoRequest = 8;
inline constexpr std::uint8_t kIcmpPortUnreachable = 3, kIcmpFragmentationNeeded = 4;  // codes of kIcmpUnreachable
inline constexpr std::uint8_t kIcmp6Unreachable = 1, kIcmp6PortUnreachable = 4;        // a type and its code
inline constexpr std::uint8_t kIcmp6TooBig = 2, kIcmp6EchoRequest = 128, kIcmp6EchoReply = 129;
inline constexpr std::uint8_t kNeighbourSolicitation = 135, kNeighbourAdvertisement = 136;

enum class NeighbourOption : std::uint8_t { source_address = 1, target_address = 2 };
inline constexpr std::size_t kNeighbourBytes = 24;  // length of both messages before their options
inline constexpr std::size_t kAddressOptionBytes = 8;
inline constexpr std::uint32_t kAdvertisementSolicited = 1U << 30U;
inline constexpr std::uint32_t kAdvertisementOverride = 1U << 29U;

}  // namespace tributary::transport::ethernet
