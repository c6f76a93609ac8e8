// A DPDK transport sets congestion marks in the IP header, and reads the marks of other packets. The sender reacts to
// them as over the kernel's UDP.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>

#include "tests/dpdk/port/marking_wire.h"
#include "tests/dpdk/port/rings.h"
#include "tests/unit/transport/counter.h"
#include "tests/unit/transport/peer.h"
#include "tributary/transport/dpdk.h"

namespace tributary::transport::test {
namespace {

using namespace std::chrono_literals;
using dpdk::test::Mark;
using dpdk::test::MarkingWire;

constexpr std::size_t kServer = 0, kClient = 1;

/// The devices stay for all tests, because DPDK has names for only a few of them.
struct Rig {
  static std::shared_ptr<DpdkDevice> open(const std::string& name, const char* ipv4, const char* ipv6) {
    return DpdkDevice::open({.device = name, .addresses = {ipv4, ipv6}, .descriptors = 512}).value();
  }
  const std::shared_ptr<dpdk::Eal> eal = dpdk::test::eal();
  MarkingWire wire;
  const std::shared_ptr<DpdkDevice> server = open(wire.devices()[kServer], "10.5.0.1/24", "fd05::1/64");
  const std::shared_ptr<DpdkDevice> client = open(wire.devices()[kClient], "10.5.0.2/24", "fd05::2/64");
};

Rig& rig() {
  static Rig one;
  return one;
}

struct Case {
  const char* host;
  bool ecn;
};

class DpdkEcn : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    // Carries the last packets of the previous test's connections.
    rig().wire.carry(kClient, Mark::capable);
    rig().wire.carry(kServer, Mark::capable);
    rig().wire.said.clear();
    listener_ = server_.listen({GetParam().host, 0}, taker_).value();
    giver_.channel = client_.connect(listener_->local(), giver_, 10s);
  }
  /// Gives both transports and the wire a turn. Returns the number of datagrams that the client had sent.
  std::size_t turn(Mark mark) {
    // One poll() takes and sends one burst; the whole window is several bursts.
    for (int burst = 0; burst < 8; ++burst) client_.poll({});
    const std::size_t sent = rig().wire.carry(kClient, mark);
    for (int burst = 0; burst < 8; ++burst) server_.poll({});
    rig().wire.carry(kServer, mark);
    return sent;
  }
  void send_twenty(Mark mark) {
    constexpr std::uint64_t kFrames = 20;
    const std::vector<std::byte> payload(500, std::byte{1});
    for (std::uint64_t i = 0; i < kFrames; ++i) giver_.channel->send_copy(header_of(i), payload);
    for (const TimePoint end = Clock::now() + 20s; taker_.frames < kFrames && Clock::now() < end;) turn(mark);
    EXPECT_EQ(taker_.frames, kFrames);
  }
  /// Keeps the client sending. The greatest number of datagrams in one of the last ten turns shows the window. Ends
  /// when `good` accepts this number, or after a time limit.
  bool flood_until(Mark mark, const std::function<bool(std::size_t)>& good) {
    const std::vector<std::byte> payload(1000, std::byte{1});
    std::deque<std::size_t> sent;
    for (const TimePoint end = Clock::now() + 20s; Clock::now() < end;) {
      while (queued_ < taker_.frames + 300) giver_.channel->send_copy(header_of(queued_++), payload);
      sent.push_back(turn(mark));
      if (sent.size() > 10) sent.pop_front();
      if (sent.size() == 10 && good(*std::ranges::max_element(sent))) return true;
    }
    return false;
  }

  static DpdkSettings settings() {
    // Delay must have no effect here, because it is the delay of this machine.
    return {.delay_target = 10s, .window_initial = 10, .ecn = GetParam().ecn};
  }
  DpdkTransport server_{rig().server, settings()};
  DpdkTransport client_{rig().client, settings()};
  Counter taker_, giver_;
  std::unique_ptr<Listener> listener_;
  std::uint64_t queued_ = 0;
};

TEST_P(DpdkEcn, IsReportedExactlyIfTheDeviceHasIt) {
  send_twenty(Mark::capable);
  EXPECT_EQ(rig().wire.said, (std::set<Mark>{GetParam().ecn ? Mark::capable : Mark::not_capable}));
  EXPECT_EQ(server_.statistics().marked, 0U);
}

TEST_P(DpdkEcn, ReadsTheMarksOfTheNetwork) {
  send_twenty(Mark::congested);
  EXPECT_GT(server_.statistics().marked, 0U);
}

TEST_P(DpdkEcn, AMarkMakesTheSendersWindowSmaller) {
  ASSERT_TRUE(flood_until(Mark::capable, [](std::size_t most) { return most >= 25; }))
      << "without marks the window grows as far as the credit allows";
  EXPECT_EQ(server_.statistics().marked, 0U);
  // The window falls to two packets, and a turn may send it twice.
  ASSERT_TRUE(flood_until(Mark::congested, [](std::size_t most) { return most <= 4; }))
      << "all packets are marked, so the window shrinks";
  ASSERT_TRUE(flood_until(Mark::capable, [](std::size_t most) { return most >= 20; })) << "the window grows again";
}

INSTANTIATE_TEST_SUITE_P(Settings, DpdkEcn,
                         ::testing::Values(Case{"10.5.0.1", true}, Case{"10.5.0.1", false}, Case{"fd05::1", true},
                                           Case{"fd05::1", false}),
                         [](const auto& one) {
                           return std::string(one.param.host[0] == '1' ? "ipv4" : "ipv6") +
                                  (one.param.ecn ? "_on" : "_off");
                         });

}  // namespace
}  // namespace tributary::transport::test
