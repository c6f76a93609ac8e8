// PlainUdp decides by a few comparisons: it gives the parser's result, or leaves the frame to the parser.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "tests/unit/ethernet/frames.h"
#include "transport/ethernet/plain_udp.h"

namespace tributary::transport::ethernet::test {
namespace {

constexpr std::uint16_t kVlan = 7;

PlainUdp waiting(std::uint16_t vlan = 0) {
  PlainUdp plain(kOurMac, vlan, 7471);
  plain.add(ip("10.0.0.1"));
  plain.add(ip("fd00::1"));
  return plain;
}

/// Returns true if PlainUdp accepts the frame, and checks that the parser then gives the same result.
bool matches(const FrameBytes& bytes, std::uint16_t vlan = 0) {
  PlainDatagram found;
  if (!waiting(vlan).match(bytes, found)) return false;
  const Frame frame = parse_frame(bytes, {.udp_later = true});
  EXPECT_EQ(frame.kind, FrameKind::udp) << to_string(frame.drop);
  EXPECT_EQ(frame.vlan, vlan);
  IpAddress from;
  found.store_from(from);
  EXPECT_EQ(from, frame.from);
  EXPECT_EQ(found.from_port, frame.from_port);
  EXPECT_EQ(found.ecn, frame.ecn);
  EXPECT_EQ(found.body_offset, frame.body_offset);
  EXPECT_EQ(found.body_bytes, frame.body_bytes);
  EXPECT_TRUE(frame.udp_besides);
  EXPECT_EQ(finish(found.udp_besides), finish(frame.udp_besides.value_or(0)));
  EXPECT_EQ(frame.to_mac, kOurMac);
  EXPECT_TRUE(frame.to == ip("10.0.0.1") || frame.to == ip("fd00::1"));
  EXPECT_EQ(frame.to_port, 7471);
  EXPECT_NE(frame.from_mac, kOurMac);
  const auto body = std::span(bytes).subspan(found.body_offset, found.body_bytes);
  EXPECT_EQ(udp_right(found.udp_besides, body), parse_frame(bytes).kind == FrameKind::udp);
  return true;
}

TEST(PlainUdp, IsDistinguishedFromAllOtherFrames) {
  EXPECT_TRUE(matches(udp_frame("10.0.0.2", "10.0.0.1", "some payload")));
  EXPECT_TRUE(matches(udp_frame("10.0.0.2", "10.0.0.1", "", 0, Ecn::congestion_experienced)));
  EXPECT_FALSE(matches(udp_frame("10.0.0.2", "10.0.0.3", "for another")));
  EXPECT_FALSE(matches(udp_frame("127.0.0.1", "10.0.0.1", "from nowhere")));
  EXPECT_FALSE(matches(udp_frame("224.0.0.1", "10.0.0.1", "from a group")));
  FrameBytes own = udp_frame("10.0.0.2", "10.0.0.1", "what a socket sees of its own");
  std::copy(kOurMac.bytes.begin(), kOurMac.bytes.end(), reinterpret_cast<std::uint8_t*>(own.data()) + 6);
  EXPECT_FALSE(matches(own));
  PlainDatagram found;
  EXPECT_FALSE(PlainUdp().match(udp_frame("10.0.0.2", "10.0.0.1", "x"), found)) << "no port is set";
  FrameBytes no_checksum = udp_frame("10.0.0.2", "10.0.0.1", "x");
  no_checksum[40] = no_checksum[41] = std::byte{0};
  EXPECT_FALSE(matches(no_checksum)) << "a datagram without a checksum goes to the parser";
}

TEST(PlainUdp, IsDistinguishedFromAllOtherFramesOverIpv6) {
  EXPECT_TRUE(matches(udp_frame("fd00::2", "fd00::1", "some payload")));
  EXPECT_TRUE(matches(udp_frame("fe80::2", "fd00::1", "", 0, Ecn::congestion_experienced)));
  EXPECT_FALSE(matches(udp_frame("fd00::2", "fd00::3", "for another")));
  for (const char* from : {"::", "::1", "ff02::1"}) {
    EXPECT_FALSE(matches(udp_frame(from, "fd00::1", "from no host"))) << from;
  }
  FrameBytes mapped = udp_frame("fd00::2", "fd00::1", "from what never travels");
  const IpAddress ipv4 = ip("10.0.0.2");
  std::memcpy(mapped.data() + kEthernetBytes + 8, ipv4.data(), ipv4.size());
  EXPECT_FALSE(matches(mapped));
  PlainUdp of_ipv4(kOurMac, 0, 7471);
  of_ipv4.add(ip("10.0.0.1"));
  PlainUdp of_ipv6(kOurMac, 0, 7471);
  of_ipv6.add(ip("fd00::1"));
  PlainDatagram found;
  EXPECT_FALSE(of_ipv4.match(udp_frame("fd00::2", "::", "no address of that family"), found));
  EXPECT_FALSE(of_ipv6.match(udp_frame("10.0.0.2", "0.0.0.0", "no address of that family"), found));
}

TEST(PlainUdp, HasThePortsTagOrNoTag) {
  for (const auto& [from, to] : {std::pair{"10.0.0.2", "10.0.0.1"}, std::pair{"fd00::2", "fd00::1"}}) {
    EXPECT_TRUE(matches(udp_frame(from, to, "tagged", kVlan), kVlan));
    EXPECT_FALSE(matches(udp_frame(from, to, "another tag", kVlan + 1), kVlan));
    EXPECT_FALSE(matches(udp_frame(from, to, "no tag"), kVlan));
    EXPECT_FALSE(matches(udp_frame(from, to, "a tag", kVlan)));
  }
}

TEST(PlainUdp, AgreesWithTheParserAfterAnyChangeOfABitOrTheLength) {
  for (const std::uint16_t vlan : {std::uint16_t{0}, kVlan}) {
    for (const auto& [from, to] : {std::pair{"10.0.0.2", "10.0.0.1"}, std::pair{"fd00::2", "fd00::1"}}) {
      const FrameBytes right = udp_frame(from, to, "some payload", vlan);
      std::size_t matched = 0;
      for (std::size_t bit = 0; bit < right.size() * 8; ++bit) {
        FrameBytes wrong = right;
        wrong[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
        matched += matches(wrong, vlan) ? 1U : 0U;
        if (is_ipv4(ip(to))) repair_ipv4(wrong, kEthernetBytes + (vlan != 0 ? kVlanBytes : 0));
        matched += matches(wrong, vlan) ? 1U : 0U;
      }
      EXPECT_GT(matched, 0U);
      for (std::size_t bytes = 0; bytes < right.size(); ++bytes) {
        EXPECT_FALSE(matches(FrameBytes(right.begin(), right.begin() + static_cast<std::ptrdiff_t>(bytes)), vlan));
      }
      FrameBytes padded = right;
      padded.resize(padded.size() + 18, std::byte{0x55});
      EXPECT_TRUE(matches(padded, vlan));
    }
  }
}

}  // namespace
}  // namespace tributary::transport::ethernet::test
