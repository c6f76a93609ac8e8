#include "transport/ethernet/ip_writer.h"

#include <cstring>

#include "transport/ethernet/bytes.h"
#include "transport/ethernet/checksum.h"

namespace tributary::transport::ethernet {

constexpr std::uint16_t kDontFragment = 0x4000;

std::byte* write_ethernet(std::byte* at, const MacAddress& to, const MacAddress& from, std::uint16_t vlan,
                          EtherType type) noexcept {
  store_array(at, to.bytes);
  store_array(at + 6, from.bytes);
  at += 12;
  if (vlan != 0) {
    store16(at, static_cast<std::uint16_t>(EtherType::vlan));
    store16(at + 2, vlan);
    at += kVlanBytes;
  }
  store16(at, static_cast<std::uint16_t>(type));
  return at + 2;
}

std::byte* write_ipv4(std::byte* at, const IpAddress& from, const IpAddress& to, IpProtocol protocol,
                      std::uint8_t traffic_class, std::size_t body_bytes) noexcept {
  store8(at, 0x45);
  store8(at + 1, traffic_class);
  store16(at + 2, static_cast<std::uint16_t>(kIpv4Bytes + body_bytes));
  store16(at + 4, 0);
  store16(at + 6, kDontFragment);
  store8(at + 8, kHopLimit);
  store8(at + 9, static_cast<std::uint8_t>(protocol));
  store16(at + 10, 0);
  store_array(at + 12, ipv4_of(from));
  store_array(at + 16, ipv4_of(to));
  store_checksum(at + 10, finish(partial_sum({at, kIpv4Bytes})));
  return at + kIpv4Bytes;
}

std::byte* write_ipv6(std::byte* at, const IpAddress& from, const IpAddress& to, IpProtocol protocol,
                      std::uint8_t traffic_class, std::uint8_t hop_limit, std::size_t body_bytes) noexcept {
  store32(at, 0x60000000U | std::uint32_t{traffic_class} << 20U);
  store16(at + 4, static_cast<std::uint16_t>(body_bytes));
  store8(at + 6, static_cast<std::uint8_t>(protocol));
  store8(at + 7, hop_limit);
  store_array(at + 8, from);
  store_array(at + 24, to);
  return at + kIpv6Bytes;
}

}  // namespace tributary::transport::ethernet
