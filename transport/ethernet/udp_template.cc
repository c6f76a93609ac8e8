#include "transport/ethernet/udp_template.h"

#include <cstring>

#include "transport/ethernet/bytes.h"
#include "transport/ethernet/header_offsets.h"
#include "transport/ethernet/ip_writer.h"

namespace tributary::transport::ethernet {

UdpTemplate::UdpTemplate(const UdpFlow& flow, ChecksumsByDevice device) noexcept
    : ipv4_(is_ipv4(flow.to)), device_(device) {
  const auto traffic_class = static_cast<std::uint8_t>(flow.dscp << 2U | static_cast<unsigned>(flow.ecn));
  std::byte* const begin = headers_.data();
  std::byte* const ip =
      write_ethernet(begin, flow.to_mac, flow.from_mac, flow.vlan, ipv4_ ? EtherType::ipv4 : EtherType::ipv6);
  std::byte* const udp = ipv4_ ? write_ipv4(ip, flow.from, flow.to, IpProtocol::udp, traffic_class, 0)
                               : write_ipv6(ip, flow.from, flow.to, IpProtocol::udp, traffic_class, kHopLimit, 0);
  store16(udp, flow.from_port);
  store16(udp + 2, flow.to_port);
  ip_at_ = static_cast<std::uint8_t>(ip - begin);
  bytes_ = static_cast<std::uint8_t>(udp + kUdpBytes - begin);
  if (ipv4_) {
    store16(ip + kIpv4Total, 0);
    store16(ip + kIpv4Checksum, 0);
    ip_sum_ = partial_sum({ip, kIpv4Bytes});
  }
  udp_sum_ = pseudo_header_sum(flow.from, flow.to, static_cast<std::uint8_t>(IpProtocol::udp), 0);
  if (!device.udp) udp_sum_ += partial_sum({udp, kUdpBytes});
}

void UdpTemplate::write(std::byte* at, std::size_t payload_bytes, PartialSum payload_sum) const noexcept {
  constexpr std::size_t kUsual = kEthernetBytes + kIpv4Bytes + kUdpBytes;
  if (bytes_ == kUsual) {
    std::memcpy(at, headers_.data(), kUsual);  // the compiler knows this length, and makes a few moves of it
  } else {
    std::memcpy(at, headers_.data(), bytes_);
  }
  std::byte* const ip = at + ip_at_;
  std::byte* const udp = at + bytes_ - kUdpBytes;
  const auto udp_bytes = static_cast<std::uint16_t>(kUdpBytes + payload_bytes);
  if (ipv4_) {
    const auto total = static_cast<std::uint16_t>(kIpv4Bytes + udp_bytes);
    store16(ip + kIpv4Total, total);
    if (!device_.ip) store_checksum(ip + kIpv4Checksum, finish(ip_sum_ + __builtin_bswap16(total)));
  } else {
    store16(ip + kIpv6Length, udp_bytes);
  }
  store16(udp + kUdpLength, udp_bytes);
  const PartialSum length = __builtin_bswap16(udp_bytes);
  // The device adds the datagram to the pseudo header's sum. Without such a device this function adds the length twice:
  // for the pseudo header and for UDP's header.
  const std::uint16_t checksum = device_.udp ? static_cast<std::uint16_t>(~finish(udp_sum_ + length))
                                             : finish_udp(udp_sum_ + 2 * length + payload_sum);
  store_checksum(udp + kUdpChecksum, checksum);
}

}  // namespace tributary::transport::ethernet
