// A router says that a path carries only shorter packets. The port reports this to the protocol, which knows the
// packets that it has sent. The port believes the router if the protocol says so.
#include <gtest/gtest.h>

#include "tests/dpdk/port/marking_wire.h"
#include "tests/dpdk/port/rings.h"
#include "transport/dpdk/port.h"
#include "transport/ethernet/control_writer.h"
#include "transport/ethernet/icmp.h"
#include "transport/packet/settings.h"

namespace tributary::transport::dpdk::test {
namespace {

using ethernet::parse_ip;

constexpr ethernet::MacAddress kRouterMac{{2, 0, 0, 0, 0, 0xFE}};

struct Family {
  const char *ours, *router, *far;
  std::size_t headers;
};

class PathMtu : public ::testing::TestWithParam<Family> {
 protected:
  static Device& device() {
    static MarkingWire wire;
    wire_ = &wire;
    static const auto opened = [] {
      auto settings = device_settings(wire.devices()[0], "10.8.0.1/24", "fd08::1/64");
      settings.gateways = {parse_ip("10.8.0.254").value(), parse_ip("fd08::fe").value()};
      return Device::open(eal(), settings).value();
    }();
    opened_ = opened;
    return *opened;
  }
  void SetUp() override {
    device();
    port_ = DpdkPort::open(opened_, {.udp_port = 7471}).value();
  }
  /// Makes a router's message about a datagram from the port `from_port` of this process to `far`.
  void say(std::uint16_t from_port, std::uint16_t path_bytes) {
    const bool four = GetParam().headers == 28;
    const std::array<std::byte, 64> said{std::byte{7}};
    const ethernet::UdpTemplate headers({.from_mac = device().host().settings().mac,
                                         .to_mac = kRouterMac,
                                         .from = parse_ip(GetParam().ours).value(),
                                         .to = far_.ip,
                                         .from_port = from_port,
                                         .to_port = far_.port},
                                        {});
    std::vector<std::byte> frame(headers.bytes() + said.size());
    std::ranges::copy(said, frame.end() - said.size());
    headers.write(frame.data(), said.size(), ethernet::partial_sum(said));
    std::vector<std::byte> rest{{}, {}, static_cast<std::byte>(path_bytes >> 8), static_cast<std::byte>(path_bytes)};
    rest.insert(rest.end(), frame.begin() + ethernet::kEthernetBytes, frame.end());
    const auto kind = four ? ethernet::IcmpKind{ethernet::kIcmpUnreachable, ethernet::kIcmpFragmentationNeeded}
                           : ethernet::IcmpKind{ethernet::kIcmp6TooBig};
    std::array<std::byte, 512> word;
    const std::size_t bytes = ethernet::write_icmp(word, 0, {kRouterMac, parse_ip(GetParam().router).value()},
                                                   {device().host().settings().mac, parse_ip(GetParam().ours).value()},
                                                   kind, ethernet::kHopLimit, rest);
    wire_->put(0, device().receive_pool(0).get(), std::span(word).first(bytes));
  }
  std::optional<packet::ReceivedPacket> shown() {
    return port_->receive(into_) == 1 ? std::optional(into_[0]) : std::nullopt;
  }

  static inline MarkingWire* wire_ = nullptr;
  static inline std::shared_ptr<Device> opened_;
  std::array<packet::ReceivedPacket, 32> into_;
  std::unique_ptr<DpdkPort> port_;
  const packet::PacketAddress far_{parse_ip(GetParam().far).value(), 4000};
};

TEST_P(PathMtu, AReportAboutASentDatagramCountsOnceTheProtocolHasVerifiedIt) {
  const std::size_t most = 1500 - GetParam().headers;
  ASSERT_EQ(port_->datagram_bytes_max(far_), most);
  say(7472, 1400);
  EXPECT_FALSE(shown()) << "the quoted datagram came from no port of ours";
  say(7471, 1400);
  const auto word = shown();
  ASSERT_TRUE(word);
  EXPECT_TRUE(word->refused);
  EXPECT_EQ(word->path_bytes, 1400U);
  EXPECT_EQ(word->from, far_);
  ASSERT_EQ(word->bytes.size(), 64U);
  EXPECT_EQ(word->bytes[0], std::byte{7});
  EXPECT_EQ(port_->datagram_bytes_max(far_), most) << "the protocol has not verified the message yet";
  port_->believe_path(far_, word->path_bytes);
  EXPECT_EQ(port_->datagram_bytes_max(far_), 1400 - GetParam().headers);
}

TEST_P(PathMtu, IsNeverBelievedToBeLessThanTheLeastLengthOfTheProtocol) {
  packet::PacketAddress other = far_;
  ++other.ip.back();
  port_->believe_path(other, 576);
  const std::vector<std::byte> bytes(packet::kDatagramBytesMin);
  ASSERT_TRUE(port_->send(other, std::span(bytes).first(64), std::span(bytes).subspan(64)));
  EXPECT_EQ(port_->statistics().unsent_too_long, 0U);
  EXPECT_GE(port_->datagram_bytes_max(other), packet::kDatagramBytesMin);
}

INSTANTIATE_TEST_SUITE_P(Families, PathMtu,
                         ::testing::Values(Family{"10.8.0.1", "10.8.0.254", "192.168.1.1", 28},
                                           Family{"fd08::1", "fd08::fe", "fd01::1", 48}),
                         [](const auto& each) { return each.param.headers == 28 ? "ipv4" : "ipv6"; });

}  // namespace
}  // namespace tributary::transport::dpdk::test
