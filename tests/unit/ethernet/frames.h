#pragma once
// Makes frames of another host on the link, for tests that change and parse them.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "transport/ethernet/control_writer.h"
#include "transport/ethernet/parser.h"
#include "transport/ethernet/udp_template.h"

namespace tributary::transport::ethernet::test {

using FrameBytes = std::vector<std::byte>;

inline constexpr MacAddress kOurMac{{0x02, 0, 0, 0, 0, 0x01}};
inline constexpr MacAddress kTheirMac{{0x02, 0, 0, 0, 0, 0x02}};

IpAddress ip(std::string_view text);
Prefix prefix(std::string_view text);
FrameBytes bytes_of(std::string_view text);

/// Returns a datagram from `from` to `to`, from port 4000 to port 7471.
FrameBytes udp_frame(std::string_view from, std::string_view to, std::string_view payload, std::uint16_t vlan = 0,
                     Ecn ecn = Ecn::capable_0);
/// Returns a datagram of the given flow.
FrameBytes udp_frame(const UdpFlow& flow, std::span<const std::byte> payload, ChecksumsByDevice device = {});
FrameBytes arp_frame(ArpOperation operation, const Station& sender, const Station& target,
                     const MacAddress& to = kBroadcastMac);
FrameBytes icmp_frame(const Station& from, const Station& to, IcmpKind kind, std::string_view rest,
                      std::uint8_t hop_limit = kHopLimit);
/// Makes IPv4's header checksum right again after a change.
void repair_ipv4(FrameBytes& frame, std::size_t at = kEthernetBytes);

}  // namespace tributary::transport::ethernet::test
