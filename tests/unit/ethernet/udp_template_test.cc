#include "transport/ethernet/udp_template.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/unit/ethernet/frames.h"
#include "transport/ethernet/bytes.h"

namespace tributary::transport::ethernet::test {
namespace {

UdpFlow flow(const char* from, const char* to, std::uint16_t vlan) {
  return {.from_mac = kTheirMac,
          .to_mac = kOurMac,
          .vlan = vlan,
          .from = ip(from),
          .to = ip(to),
          .from_port = 4000,
          .to_port = 7471,
          .dscp = 46};
}

// The parser checks every checksum by itself, over all bytes.
TEST(UdpTemplate, MakesDatagramsThatAreRightForEveryLength) {
  std::mt19937 random(3);
  for (const UdpFlow& one : {flow("10.0.0.2", "10.0.0.1", 0), flow("10.0.0.2", "10.0.0.1", 9),
                             flow("fd00::2", "fd00::1", 0), flow("fd00::2", "fd00::1", 9)}) {
    for (std::size_t size = 0; size < 200; ++size) {
      FrameBytes payload(size);
      for (auto& byte : payload) byte = static_cast<std::byte>(random());
      const Frame parsed = parse_frame(udp_frame(one, payload));
      EXPECT_EQ(parsed.kind, FrameKind::udp) << size << ": " << to_string(parsed.drop);
      EXPECT_EQ(parsed.body_bytes, size);
      EXPECT_EQ(parsed.vlan, one.vlan);
    }
  }
}

TEST(UdpTemplate, ForbidsFragmentsAndAsksForMarks) {
  const FrameBytes frame = udp_frame(flow("10.0.0.2", "10.0.0.1", 0), bytes_of("x"));
  EXPECT_EQ(load8(frame.data() + 15), 46U << 2U | 2U);
  EXPECT_EQ(load16(frame.data() + 20), 0x4000);
}

// A device expects 0 as IPv4's checksum, and as UDP's the folded sum of the pseudo header; it adds the rest.
TEST(UdpTemplate, LeavesToTheDeviceTheChecksumsThatItComputes) {
  for (const UdpFlow& one : {flow("10.0.0.2", "10.0.0.1", 0), flow("fd00::2", "fd00::1", 0)}) {
    const std::size_t ip_bytes = is_ipv4(one.to) ? kIpv4Bytes : kIpv6Bytes;
    FrameBytes frame = udp_frame(one, bytes_of("payload"), {.ip = true, .udp = true});
    const std::size_t udp_at = kEthernetBytes + ip_bytes;
    store_checksum(frame.data() + udp_at + 6, finish_udp(partial_sum(std::span(frame).subspan(udp_at))));
    if (ip_bytes == kIpv4Bytes) {
      EXPECT_EQ(load16(frame.data() + kEthernetBytes + 10), 0);
      repair_ipv4(frame);
    }
    const Frame parsed = parse_frame(frame);
    EXPECT_EQ(parsed.kind, FrameKind::udp) << to_string(parsed.drop);
  }
}

}  // namespace
}  // namespace tributary::transport::ethernet::test
