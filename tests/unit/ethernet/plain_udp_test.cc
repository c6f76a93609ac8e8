// What is told in a few comparisons is what the parser says of it, or is left to the parser.
#include <gtest/gtest.h>

#include <algorithm>

#include "ethernet/plain_udp.h"
#include "frames.h"

namespace tributary::transport::ethernet::test {
namespace {

const PlainUdp kPlain(kOurMac, ip("10.0.0.1"), 7471);

/// True: it matches, and the parser says the same of it.
bool matches(const FrameBytes& bytes) {
  PlainDatagram found;
  if (!kPlain.match(bytes, found)) return false;
  const Frame frame = parse_frame(bytes, {.udp_later = true});
  EXPECT_EQ(frame.kind, FrameKind::udp) << to_string(frame.drop);
  IpAddress from;
  store_mapped(from, found.from);
  EXPECT_EQ(from, frame.from);
  EXPECT_EQ(found.from_port, frame.from_port);
  EXPECT_EQ(found.ecn, frame.ecn);
  EXPECT_EQ(found.body_offset, frame.body_offset);
  EXPECT_EQ(found.body_bytes, frame.body_bytes);
  EXPECT_TRUE(frame.udp_besides);
  EXPECT_EQ(finish(found.udp_besides), finish(frame.udp_besides.value_or(0)));
  EXPECT_EQ(frame.to_mac, kOurMac);
  EXPECT_EQ(frame.to, ip("10.0.0.1"));
  EXPECT_EQ(frame.to_port, 7471);
  EXPECT_NE(frame.from_mac, kOurMac);
  const auto body = std::span(bytes).subspan(found.body_offset, found.body_bytes);
  EXPECT_EQ(udp_right(found.udp_besides, body), parse_frame(bytes).kind == FrameKind::udp);
  return true;
}

TEST(PlainUdp, IsToldFromAllElse) {
  EXPECT_TRUE(matches(udp_frame("10.0.0.2", "10.0.0.1", "some payload")));
  EXPECT_TRUE(matches(udp_frame("10.0.0.2", "10.0.0.1", "", 0, Ecn::congestion_experienced)));
  EXPECT_FALSE(matches(udp_frame("10.0.0.2", "10.0.0.3", "for another")));
  EXPECT_FALSE(matches(udp_frame("10.0.0.2", "10.0.0.1", "tagged", 7)));
  EXPECT_FALSE(matches(udp_frame("127.0.0.1", "10.0.0.1", "from nowhere")));
  EXPECT_FALSE(matches(udp_frame("224.0.0.1", "10.0.0.1", "from a group")));
  EXPECT_FALSE(matches(udp_frame("fd00::2", "fd00::1", "IPv6")));
  FrameBytes own = udp_frame("10.0.0.2", "10.0.0.1", "what a socket sees of its own");
  std::copy(kOurMac.bytes.begin(), kOurMac.bytes.end(), reinterpret_cast<std::uint8_t*>(own.data()) + 6);
  EXPECT_FALSE(matches(own));
  PlainDatagram found;
  EXPECT_FALSE(PlainUdp().match(udp_frame("10.0.0.2", "10.0.0.1", "x"), found)) << "nobody waits";
  FrameBytes no_checksum = udp_frame("10.0.0.2", "10.0.0.1", "x");
  no_checksum[40] = no_checksum[41] = std::byte{0};
  EXPECT_FALSE(matches(no_checksum)) << "nothing to verify: the parser's";
}

TEST(PlainUdp, WithAnyChangedBitOrLengthIsWhatTheParserSays) {
  const FrameBytes right = udp_frame("10.0.0.2", "10.0.0.1", "some payload");
  std::size_t matched = 0;
  for (std::size_t bit = 0; bit < right.size() * 8; ++bit) {
    FrameBytes wrong = right;
    wrong[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    matched += matches(wrong) ? 1U : 0U;
    repair_ipv4(wrong);
    matched += matches(wrong) ? 1U : 0U;
  }
  EXPECT_GT(matched, 0U);
  for (std::size_t bytes = 0; bytes < right.size(); ++bytes) {
    EXPECT_FALSE(matches(FrameBytes(right.begin(), right.begin() + static_cast<std::ptrdiff_t>(bytes)))) << bytes;
  }
  FrameBytes padded = right;
  padded.resize(padded.size() + 18, std::byte{0x55});
  EXPECT_TRUE(matches(padded));
}

}  // namespace
}  // namespace tributary::transport::ethernet::test
