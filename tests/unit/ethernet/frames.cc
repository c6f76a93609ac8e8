#include "tests/unit/ethernet/frames.h"

#include <algorithm>
#include <cstring>

#include "transport/ethernet/bytes.h"

namespace tributary::transport::ethernet::test {

IpAddress ip(std::string_view text) {
  return parse_ip(text).value();
}
Prefix prefix(std::string_view text) {
  return parse_prefix(text).value();
}

FrameBytes bytes_of(std::string_view text) {
  FrameBytes bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

FrameBytes udp_frame(const UdpFlow& flow, std::span<const std::byte> payload, ChecksumsByDevice device) {
  const UdpTemplate headers(flow, device);
  FrameBytes frame(headers.bytes() + payload.size());
  std::ranges::copy(payload, frame.begin() + static_cast<std::ptrdiff_t>(headers.bytes()));
  headers.write(frame.data(), payload.size(), partial_sum(payload));
  return frame;
}

FrameBytes udp_frame(std::string_view from, std::string_view to, std::string_view payload, std::uint16_t vlan,
                     Ecn ecn) {
  const UdpFlow flow{.from_mac = kTheirMac,
                     .to_mac = kOurMac,
                     .vlan = vlan,
                     .from = ip(from),
                     .to = ip(to),
                     .from_port = 4000,
                     .to_port = 7471,
                     .ecn = ecn};
  return udp_frame(flow, bytes_of(payload));
}

FrameBytes arp_frame(ArpOperation operation, const Station& sender, const Station& target, const MacAddress& to) {
  FrameBytes frame(128);
  frame.resize(write_arp(frame, 0, operation, sender, target, to));
  return frame;
}

FrameBytes icmp_frame(const Station& from, const Station& to, IcmpKind kind, std::string_view rest,
                      std::uint8_t hop_limit) {
  FrameBytes frame(2048);
  frame.resize(write_icmp(frame, 0, from, to, kind, hop_limit, bytes_of(rest)));
  return frame;
}

void repair_ipv4(FrameBytes& frame, std::size_t at) {
  store16(frame.data() + at + 10, 0);
  store_checksum(frame.data() + at + 10, finish(partial_sum(std::span(frame).subspan(at, kIpv4Bytes))));
}

}  // namespace tributary::transport::ethernet::test
