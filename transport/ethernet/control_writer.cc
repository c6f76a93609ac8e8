#include "transport/ethernet/control_writer.h"

#include <cstring>

#include "transport/ethernet/bytes.h"
#include "transport/ethernet/checksum.h"
#include "transport/ethernet/icmp.h"
#include "transport/ethernet/ip_writer.h"

namespace tributary::transport::ethernet {
namespace {

constexpr std::size_t kIcmpPrefixBytes = 4;  // type, code, checksum

/// Writes the part of a neighbour message that follows its checksum: flags or zeros, the target, and the option with
/// this host's MAC address.
struct NeighbourRest {
  std::array<std::byte, kNeighbourBytes - kIcmpPrefixBytes + kAddressOptionBytes> bytes{};

  NeighbourRest(std::uint32_t flags, const IpAddress& target, NeighbourOption option, const MacAddress& mac) {
    store32(bytes.data(), flags);
    store_array(bytes.data() + 4, target);
    store8(bytes.data() + 20, static_cast<std::uint8_t>(option));
    store8(bytes.data() + 21, 1);  // the option's length in units of 8 bytes
    store_array(bytes.data() + 22, mac.bytes);
  }
};

}  // namespace

std::size_t write_arp(std::span<std::byte> out, std::uint16_t vlan, ArpOperation operation, const Station& sender,
                      const Station& target, const MacAddress& to) {
  const std::size_t bytes = kEthernetBytes + (vlan != 0 ? kVlanBytes : 0) + kArpBytes;
  if (out.size() < bytes) return 0;
  std::byte* const at = write_ethernet(out.data(), to, sender.mac, vlan, EtherType::arp);
  store16(at, 1);  // Ethernet
  store16(at + 2, static_cast<std::uint16_t>(EtherType::ipv4));
  store8(at + 4, 6);
  store8(at + 5, 4);
  store16(at + 6, static_cast<std::uint16_t>(operation));
  store_array(at + 8, sender.mac.bytes);
  store_array(at + 14, ipv4_of(sender.ip));
  store_array(at + 18, target.mac.bytes);
  store_array(at + 24, ipv4_of(target.ip));
  return bytes;
}

std::size_t write_icmp(std::span<std::byte> out, std::uint16_t vlan, const Station& from, const Station& to,
                       IcmpKind kind, std::uint8_t hop_limit, std::span<const std::byte> rest) {
  const bool ipv4 = is_ipv4(to.ip);
  const std::size_t message_bytes = kIcmpPrefixBytes + rest.size();
  const std::size_t bytes =
      kEthernetBytes + (vlan != 0 ? kVlanBytes : 0) + (ipv4 ? kIpv4Bytes : kIpv6Bytes) + message_bytes;
  if (out.size() < bytes || message_bytes > 0xFFFF - kIpv4Bytes) return 0;
  std::byte* at = write_ethernet(out.data(), to.mac, from.mac, vlan, ipv4 ? EtherType::ipv4 : EtherType::ipv6);
  at = ipv4 ? write_ipv4(at, from.ip, to.ip, IpProtocol::icmp, 0, message_bytes)
            : write_ipv6(at, from.ip, to.ip, IpProtocol::icmp6, 0, hop_limit, message_bytes);
  store8(at, kind.type);
  store8(at + 1, kind.code);
  store16(at + 2, 0);
  std::memcpy(at + kIcmpPrefixBytes, rest.data(), rest.size());
  PartialSum sum = partial_sum({at, message_bytes});
  if (!ipv4) {
    sum += pseudo_header_sum(from.ip, to.ip, static_cast<std::uint8_t>(IpProtocol::icmp6),
                             static_cast<std::uint32_t>(message_bytes));
  }
  store_checksum(at + 2, finish(sum));
  return bytes;
}

std::size_t write_solicitation(std::span<std::byte> out, std::uint16_t vlan, const Station& sender,
                               const IpAddress& target, const std::optional<MacAddress>& at) {
  const IpAddress group = solicited_node_of(target);
  const Station to{at ? *at : multicast_mac_of(group), at ? target : group};
  const NeighbourRest rest(0, target, NeighbourOption::source_address, sender.mac);
  return write_icmp(out, vlan, sender, to, {kNeighbourSolicitation}, kNeighbourHopLimit, rest.bytes);
}

std::size_t write_advertisement(std::span<std::byte> out, std::uint16_t vlan, const Station& sender, const Station& to,
                                bool solicited) {
  const std::uint32_t flags = kAdvertisementOverride | (solicited ? kAdvertisementSolicited : 0);
  const NeighbourRest rest(flags, sender.ip, NeighbourOption::target_address, sender.mac);
  return write_icmp(out, vlan, sender, to, {kNeighbourAdvertisement}, kNeighbourHopLimit, rest.bytes);
}

}  // namespace tributary::transport::ethernet
