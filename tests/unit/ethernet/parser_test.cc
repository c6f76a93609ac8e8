#include <gtest/gtest.h>

#include <functional>

#include "tests/unit/ethernet/frames.h"
#include "transport/ethernet/bytes.h"
#include "transport/ethernet/icmp.h"

namespace tributary::transport::ethernet::test {
namespace {

struct Family {
  const char* name;
  const char* from;
  const char* to;
  std::size_t ip_bytes;
};
constexpr Family kIpv4{"ipv4", "10.0.0.2", "10.0.0.1", kIpv4Bytes};
constexpr Family kIpv6{"ipv6", "fd00::2", "fd00::1", kIpv6Bytes};

class ParsesUdp : public ::testing::TestWithParam<Family> {
 protected:
  [[nodiscard]] FrameBytes frame(std::string_view payload, std::uint16_t vlan = 0, Ecn ecn = Ecn::capable_0) const {
    return udp_frame(GetParam().from, GetParam().to, payload, vlan, ecn);
  }
  [[nodiscard]] std::size_t udp_at() const { return kEthernetBytes + GetParam().ip_bytes; }
};

TEST_P(ParsesUdp, WithAllThatTheProtocolAboveWants) {
  const FrameBytes bytes = frame("hello");
  const Frame parsed = parse_frame(bytes);
  ASSERT_EQ(parsed.kind, FrameKind::udp) << to_string(parsed.drop);
  EXPECT_EQ(parsed.from, ip(GetParam().from));
  EXPECT_EQ(parsed.to, ip(GetParam().to));
  EXPECT_EQ(parsed.from_port, 4000);
  EXPECT_EQ(parsed.to_port, 7471);
  EXPECT_EQ(parsed.from_mac, kTheirMac);
  EXPECT_EQ(parsed.to_mac, kOurMac);
  EXPECT_EQ(parsed.hop_limit, kHopLimit);
  EXPECT_EQ(parsed.ecn, Ecn::capable_0);
  EXPECT_EQ(parsed.vlan, 0);
  const auto payload = std::span(bytes).subspan(parsed.body_offset, parsed.body_bytes);
  EXPECT_EQ(FrameBytes(payload.begin(), payload.end()), bytes_of("hello"));
}

TEST_P(ParsesUdp, WithATagPaddingAnEmptyPayloadAndAMark) {
  EXPECT_EQ(parse_frame(frame("x", 42)).vlan, 42);
  EXPECT_EQ(parse_frame(frame("")).kind, FrameKind::udp);
  EXPECT_EQ(parse_frame(frame("")).body_bytes, 0U);
  FrameBytes padded = frame("hi");
  padded.resize(padded.size() + 20, std::byte{0x55});
  EXPECT_EQ(parse_frame(padded).body_bytes, 2U);
  EXPECT_EQ(parse_frame(frame("x", 0, Ecn::congestion_experienced)).ecn, Ecn::congestion_experienced);
}

TEST_P(ParsesUdp, AndFindsEveryChangedBit) {
  const FrameBytes right = frame("some payload");
  for (std::size_t bit = (kEthernetBytes + (GetParam().ip_bytes == kIpv4Bytes ? 0 : 8)) * 8; bit < right.size() * 8;
       ++bit) {
    FrameBytes wrong = right;
    wrong[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    const Frame parsed = parse_frame(wrong);
    EXPECT_NE(parsed.kind, FrameKind::udp) << "bit " << bit;
  }
}

TEST_P(ParsesUdp, ButTrustsADeviceThatHasCheckedIt) {
  FrameBytes wrong = frame("some payload");
  wrong.back() ^= std::byte{1};
  EXPECT_EQ(parse_frame(wrong).drop, Drop::udp_checksum);
  EXPECT_EQ(parse_frame(wrong, {.ip = true, .udp = true}).kind, FrameKind::udp);
}

TEST_P(ParsesUdp, NotIfTheFrameIsCutShort) {
  const FrameBytes whole = frame("some payload");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(parse_frame(std::span(whole).first(size)).kind, FrameKind::dropped) << size;
  }
}

TEST_P(ParsesUdp, NotWithAWrongLength) {
  for (const std::uint16_t length : std::array<std::uint16_t, 5>{0, 7, 19, 21, 0xFFFF}) {
    FrameBytes wrong = frame("some payload");  // 20 bytes with UDP's header
    store16(wrong.data() + udp_at() + 4, length);
    EXPECT_EQ(parse_frame(wrong).drop, Drop::udp_length) << length;
  }
}

TEST_P(ParsesUdp, NotFromAStationThatIsAGroupNorFromPortZero) {
  FrameBytes group = frame("x");
  group[6] |= std::byte{1};
  EXPECT_EQ(parse_frame(group).drop, Drop::group_source);
  FrameBytes zero = frame("x");
  store16(zero.data() + udp_at(), 0);
  EXPECT_EQ(parse_frame(zero, {.ip = true, .udp = true}).drop, Drop::udp_port);
}

INSTANTIATE_TEST_SUITE_P(Families, ParsesUdp, ::testing::Values(kIpv4, kIpv6),
                         [](const auto& each) { return each.param.name; });

TEST(Parser, TakesUdpWithoutAChecksumOnlyOverIpv4) {
  FrameBytes four = udp_frame("10.0.0.2", "10.0.0.1", "x");
  store16(four.data() + kEthernetBytes + kIpv4Bytes + 6, 0);
  EXPECT_EQ(parse_frame(four).kind, FrameKind::udp);
  FrameBytes six = udp_frame("fd00::2", "fd00::1", "x");
  store16(six.data() + kEthernetBytes + kIpv6Bytes + 6, 0);
  EXPECT_EQ(parse_frame(six).drop, Drop::udp_checksum);
}

/// Returns a frame with an error in its IP header, and with a right header checksum.
Drop drop_of(const Family& family, const std::function<void(std::byte* ip)>& spoil) {
  FrameBytes frame = udp_frame(family.from, family.to, "payload");
  spoil(frame.data() + kEthernetBytes);
  if (family.ip_bytes == kIpv4Bytes) repair_ipv4(frame);
  return parse_frame(frame).drop;
}

TEST(Parser, DropsAllOfIpv4ExceptPlainDatagrams) {
  EXPECT_EQ(drop_of(kIpv4, [](std::byte* at) { store8(at, 0x65); }), Drop::ip_version);
  EXPECT_EQ(drop_of(kIpv4, [](std::byte* at) { store8(at, 0x46); }), Drop::ip_options);
  EXPECT_EQ(drop_of(kIpv4, [](std::byte* at) { store8(at, 0x44); }), Drop::ip_length);
  EXPECT_EQ(drop_of(kIpv4, [](std::byte* at) { store16(at + 2, 19); }), Drop::ip_length);
  EXPECT_EQ(drop_of(kIpv4, [](std::byte* at) { store16(at + 2, 1500); }), Drop::ip_length);
  EXPECT_EQ(drop_of(kIpv4, [](std::byte* at) { store16(at + 6, 0x2000); }), Drop::ip_fragment);
  EXPECT_EQ(drop_of(kIpv4, [](std::byte* at) { store16(at + 6, 0x0001); }), Drop::ip_fragment);
  EXPECT_EQ(drop_of(kIpv4, [](std::byte* at) { store8(at + 9, 6); }), Drop::protocol);
  EXPECT_EQ(drop_of(kIpv4, [](std::byte* at) { store8(at + 12, 224); }), Drop::ip_source);
  EXPECT_EQ(drop_of(kIpv4, [](std::byte* at) { store8(at + 12, 127); }), Drop::ip_source);
  EXPECT_EQ(drop_of(kIpv4, [](std::byte* at) { store32(at + 12, 0); }), Drop::ip_source);
  FrameBytes wrong = udp_frame("10.0.0.2", "10.0.0.1", "payload");
  wrong[kEthernetBytes + 8] ^= std::byte{1};
  EXPECT_EQ(parse_frame(wrong).drop, Drop::ip_checksum);
}

TEST(Parser, DropsAllOfIpv6ExceptPlainDatagrams) {
  EXPECT_EQ(drop_of(kIpv6, [](std::byte* at) { store8(at, 0x40); }), Drop::ip_version);
  EXPECT_EQ(drop_of(kIpv6, [](std::byte* at) { store16(at + 4, 1500); }), Drop::ip_length);
  EXPECT_EQ(drop_of(kIpv6, [](std::byte* at) { store8(at + 6, 44); }), Drop::ip_fragment);
  EXPECT_EQ(drop_of(kIpv6, [](std::byte* at) { store8(at + 6, 0); }), Drop::ip_options);
  EXPECT_EQ(drop_of(kIpv6, [](std::byte* at) { store8(at + 6, 60); }), Drop::ip_options);
  EXPECT_EQ(drop_of(kIpv6, [](std::byte* at) { store8(at + 6, 6); }), Drop::protocol);
  EXPECT_EQ(drop_of(kIpv6, [](std::byte* at) { store8(at + 8, 0xFF); }), Drop::ip_source);
  EXPECT_EQ(drop_of(kIpv6, [](std::byte* at) { store_array(at + 8, IpAddress{}); }), Drop::ip_source);
  EXPECT_EQ(drop_of(kIpv6, [](std::byte* at) { store_array(at + 8, mapped({10, 0, 0, 2})); }), Drop::ip_source);
}

TEST(Parser, DropsFramesThatAreNeitherIpNorArp) {
  FrameBytes frame = udp_frame("10.0.0.2", "10.0.0.1", "x");
  store16(frame.data() + 12, 0x88CC);
  EXPECT_EQ(parse_frame(frame).drop, Drop::ether_type);
  FrameBytes twice = udp_frame("10.0.0.2", "10.0.0.1", "x", 7);
  store16(twice.data() + 16, 0x8100);
  EXPECT_EQ(parse_frame(twice).drop, Drop::vlan);
}

TEST(Parser, FindsArpAndIcmp) {
  const FrameBytes arp = arp_frame(ArpOperation::request, {kTheirMac, ip("10.0.0.2")}, {{}, ip("10.0.0.1")});
  EXPECT_EQ(parse_frame(arp).kind, FrameKind::arp);
  FrameBytes other = arp;
  store16(other.data() + kEthernetBytes, 6);  // IEEE 802
  EXPECT_EQ(parse_frame(other).drop, Drop::arp_format);
  FrameBytes echo = icmp_frame({kTheirMac, ip("10.0.0.2")}, {kOurMac, ip("10.0.0.1")}, {kIcmpEchoRequest}, "....ping");
  EXPECT_EQ(parse_frame(echo).kind, FrameKind::icmp);
  echo.back() ^= std::byte{1};
  EXPECT_EQ(parse_frame(echo).drop, Drop::icmp_checksum);
  FrameBytes echo6 = icmp_frame({kTheirMac, ip("fd00::2")}, {kOurMac, ip("fd00::1")}, {kIcmp6EchoRequest}, "....ping");
  EXPECT_EQ(parse_frame(echo6).kind, FrameKind::icmp6);
  echo6.back() ^= std::byte{1};
  EXPECT_EQ(parse_frame(echo6).drop, Drop::icmp_checksum);
}

TEST(Parser, NamesEveryDrop) {
  for (std::size_t i = 0; i < kDrops; ++i) EXPECT_FALSE(to_string(static_cast<Drop>(i)).empty());
}

}  // namespace
}  // namespace tributary::transport::ethernet::test
