// A host of DPDK and a host of the kernel on one wire: each must find the other host and accept its checksums.
#include <arpa/inet.h>
#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "tests/dpdk/port/far_socket.h"
#include "tests/dpdk/port/rings.h"
#include "transport/ethernet/checksum.h"

namespace tributary::transport::dpdk::test {
namespace {

using namespace std::chrono_literals;
using packet::PacketAddress;
using packet::ReceivedPacket;

constexpr auto kLimit = 10s;
constexpr std::uint16_t kDescriptors = 2048;  // AF_XDP keeps this many buffers, whatever the settings say

struct Far {
  int family;
  const char* ours;    // address of DPDK's host
  const char* theirs;  // address of the kernel's host
};
constexpr Far kIpv4{AF_INET, "10.6.0.1", "10.6.0.2"};
constexpr Far kIpv6{AF_INET6, "fd06::1", "fd06::2"};

/// The devices of one wire. The test makes the wire once, because DPDK keeps it in use.
struct Wire {
  std::unique_ptr<Veth> veth;
  std::shared_ptr<Device> device;
  std::string missing;
};

Wire make_wire(const std::string& driver) {
  Wire wire;
  wire.veth = Veth::make(wire.missing);
  if (!wire.veth) return wire;
  auto settings = device_settings(driver + "0,iface=" + Veth::kNear, "10.6.0.1/24", "fd06::1/64");
  settings.descriptors = {kDescriptors, kDescriptors};
  auto device = Device::open(eal(), settings);
  if (device) {
    wire.device = std::move(*device);
  } else {
    wire.missing = device.error().message;
  }
  return wire;
}

class KernelPeer : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    wire_ = make_wire(GetParam());
    if (!wire_.device) GTEST_SKIP() << wire_.missing;
    port_ = DpdkPort::open(wire_.device, {.udp_port = 7471}).value();
  }
  void TearDown() override {
    port_.reset();
    if (!wire_.device) return;
    EXPECT_LE(wire_.device->mbufs_in_use(), 2U * kDescriptors) << "only the device's own buffers are in use";
  }

  struct Shown {
    PacketAddress from;
    std::vector<std::byte> bytes;
    bool marked = false;
    bool refused = false;
  };
  /// Polls until the port reports an event, or `over` is true.
  std::optional<Shown> poll_until(const std::function<bool()>& over) {
    for (const TimePoint end = Clock::now() + kLimit; Clock::now() < end;) {
      std::array<ReceivedPacket, 1> into;
      if (port_->receive(into) == 1) {
        return Shown{into[0].from,
                     {into[0].bytes.begin(), into[0].bytes.end()},
                     into[0].congestion_experienced,
                     into[0].refused};
      }
      port_->flush();
      if (over()) return std::nullopt;
    }
    ADD_FAILURE() << "nothing came";
    return std::nullopt;
  }
  std::optional<Shown> poll_one() {
    return poll_until([] { return false; });
  }
  /// Returns the datagram that the socket gets while this thread polls the port.
  std::vector<std::byte> poll_for(const FarSocket& socket) {
    std::optional<std::vector<std::byte>> got;
    const auto shown = poll_until([&] { return (got = socket.receive()).has_value(); });
    EXPECT_FALSE(shown);
    return got.value_or(std::vector<std::byte>{});
  }

  Wire wire_;
  std::unique_ptr<DpdkPort> port_;
};

TEST_P(KernelPeer, ExchangesDatagramsOfEveryLength) {
  for (const Far& far : {kIpv4, kIpv6}) {
    const FarSocket socket(*wire_.veth, far.family, SOCK_DGRAM, 0);
    ASSERT_TRUE(socket.bind(far.theirs, 5000));
    for (const std::size_t size : {std::size_t{1}, std::size_t{2}, std::size_t{63}, std::size_t{1023},
                                   port_->datagram_bytes_max(at(far.theirs, 5000))}) {
      const auto said = pattern(size, 3);
      ASSERT_TRUE(socket.send(far.ours, 7471, said));
      const auto heard = poll_one();
      ASSERT_TRUE(heard) << size;
      EXPECT_EQ(heard->bytes, said);
      EXPECT_EQ(heard->from, at(far.theirs, 5000));
      EXPECT_FALSE(heard->marked);
      const auto answer = pattern(size, 4);
      const std::size_t cut = size / 3;
      ASSERT_TRUE(port_->send(heard->from, std::span(answer).first(cut), std::span(answer).subspan(cut)));
      EXPECT_EQ(poll_for(socket), answer) << size;
    }
  }
}

TEST_P(KernelPeer, IsFoundWhenThePortSendsFirst) {
  for (const Far& far : {kIpv4, kIpv6}) {
    const FarSocket socket(*wire_.veth, far.family, SOCK_DGRAM, 0);
    ASSERT_TRUE(socket.bind(far.theirs, 5001));
    const auto said = pattern(100, 9);
    ASSERT_TRUE(port_->send(at(far.theirs, 5001), said, {}));
    EXPECT_EQ(poll_for(socket), said);
  }
  EXPECT_GE(wire_.device->host().counts().neighbours.resolved, 2U);
}

TEST_P(KernelPeer, MarksAndRefuses) {
  for (const Far& far : {kIpv4, kIpv6}) {
    const FarSocket socket(*wire_.veth, far.family, SOCK_DGRAM, 0);
    ASSERT_TRUE(socket.mark(far.family));
    ASSERT_TRUE(socket.send(far.ours, 7471, pattern(10, 1)));
    const auto marked = poll_one();
    ASSERT_TRUE(marked);
    EXPECT_TRUE(marked->marked);
    const auto said = pattern(64, 2);
    ASSERT_TRUE(port_->send(at(far.theirs, 9), said, {}));  // no host has this address
    const auto refused = poll_one();
    ASSERT_TRUE(refused);
    EXPECT_TRUE(refused->refused);
    EXPECT_EQ(refused->from, at(far.theirs, 9));
    EXPECT_EQ(refused->bytes, said);
  }
}

TEST_P(KernelPeer, IsAnsweredWhenItPings) {
  for (const Far& far : {kIpv4, kIpv6}) {
    const bool four = far.family == AF_INET;
    const FarSocket socket(*wire_.veth, far.family, SOCK_RAW, four ? int{IPPROTO_ICMP} : int{IPPROTO_ICMPV6});
    std::vector<std::byte> echo = pattern(64, 5);
    echo[0] = static_cast<std::byte>(four ? ICMP_ECHO : ICMP6_ECHO_REQUEST);
    echo[1] = echo[2] = echo[3] = std::byte{0};
    // The kernel computes ICMPv6's checksum.
    if (four) ethernet::store_checksum(echo.data() + 2, ethernet::finish(ethernet::partial_sum(echo)));
    ASSERT_TRUE(socket.send(far.ours, 0, echo));
    const std::size_t header = four ? 20 : 0;  // a raw socket also delivers IPv4's header, and messages of other hosts
    std::vector<std::byte> answer;
    do {
      answer = poll_for(socket);
      ASSERT_GT(answer.size(), header);
    } while (answer[header] != static_cast<std::byte>(four ? ICMP_ECHOREPLY : ICMP6_ECHO_REPLY));
    EXPECT_TRUE(std::equal(echo.begin() + 4, echo.end(), answer.begin() + static_cast<std::ptrdiff_t>(header) + 4,
                           answer.end()));
  }
  EXPECT_EQ(wire_.device->host().counts().echoes_answered, 2U);
  EXPECT_GE(wire_.device->host().counts().arp_answered, 1U);
  EXPECT_GE(wire_.device->host().counts().ndp_answered, 1U);
}

TEST(AfPacketQueues, AQueueWithoutAPortIsRefused) {
  const auto started = eal();
  std::string missing;
  const auto veth = Veth::make(missing);
  if (!veth) GTEST_SKIP() << missing;
  auto settings =
      device_settings(std::string("net_af_packet0,qpairs=3,iface=") + Veth::kNear, "10.6.0.1/24", "fd06::1/64");
  const auto refused = Device::open(started, settings);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, ::testing::HasSubstr("3 queues, of which 1 would be served"));
  EXPECT_THAT(refused.error().message, ::testing::HasSubstr("say qpairs=1"));
  settings.queues = 3;
  const auto taken = Device::open(started, settings);
  EXPECT_TRUE(taken) << taken.error().message;
}

INSTANTIATE_TEST_SUITE_P(Drivers, KernelPeer, ::testing::Values("net_af_packet", "net_af_xdp"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace tributary::transport::dpdk::test
