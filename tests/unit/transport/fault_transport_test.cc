// The effect of each fault of a FaultyTransport, over memory and over TCP.
#include "tests/unit/transport/memory_world.h"
#include "tests/unit/transport/peer.h"
#include "tests/unit/transport/tcp_world.h"

namespace tributary::transport::test {
namespace {

using namespace std::chrono_literals;

/// A world of either kind whose two sides have one plan.
struct FaultyWorld {
  std::unique_ptr<World> world;
  FaultyTransport& server() { return dynamic_cast<FaultyTransport&>(world->server()); }
  FaultyTransport& client() { return dynamic_cast<FaultyTransport&>(world->client()); }
};

FaultyWorld make(bool over_tcp, const FaultPlan& plan) {
  if (over_tcp) return {std::make_unique<FaultyTcpWorld>(TcpSettings{}, plan)};
  return {std::make_unique<FaultyMemoryWorld>(plan.seed, plan)};
}

class FaultyTransportTest : public ::testing::TestWithParam<bool> {
 protected:
  void start(const FaultPlan& plan) {
    world_ = make(GetParam(), plan);
    listener_ = world_.server().listen(world_.world->server_address(0), acceptor_).value();
    client_.channel = world_.client().connect(listener_->local(), client_, 5s);
    ASSERT_TRUE(run_until([&] { return client_.opened && acceptor_.peers.size() == 1; }));
  }
  void send(std::uint64_t count) {
    for (; next_ < count; ++next_) client_.channel->send_copy(header_of(next_), pattern(1000, next_));
  }
  bool run_until(const std::function<bool()>& done) { return world_.world->run_until(done); }
  Peer& server() { return *acceptor_.peers.front(); }

  FaultyWorld world_;
  PeerAcceptor acceptor_;
  Peer client_;
  std::unique_ptr<Listener> listener_;
  std::uint64_t next_ = 0;
};

}  // namespace

TEST_P(FaultyTransportTest, CutsTheNthFrameInMidPayload) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    start({seed, {{.fault = Fault::cut, .nth = 4}}});
    send(10);
    ASSERT_TRUE(run_until([&] { return server().closed.has_value() && client_.closed.has_value(); }));
    EXPECT_EQ(server().frames.size(), 3U);
    EXPECT_EQ(server().headers, 4U);
    EXPECT_EQ(server().closed->code, Errc::peer_gone);
    EXPECT_EQ(client_.closed->code, Errc::peer_gone);
    const auto whole = pattern(1000, 3);
    const auto written = std::ranges::mismatch(server().buffer, whole).in1 - server().buffer.begin();
    EXPECT_LT(written, 1000) << "a part of the payload is missing";
    EXPECT_EQ(server().buffer.back(), std::byte{0xEE}) << "the rest of the place stays as it was";
    EXPECT_EQ(world_.server().count(Fault::cut), 1U);
    listener_.reset();
    client_.channel.reset();
    acceptor_.peers.clear();
    client_ = Peer{};
    next_ = 0;
  }
}

TEST_P(FaultyTransportTest, HoldsAFrameAndAllBehindItUntilItIsReleased) {
  start({1, {{.fault = Fault::hold, .nth = 3}}});
  send(10);
  ASSERT_TRUE(run_until([&] { return server().frames.size() == 2; }));
  world_.world->settle();
  EXPECT_EQ(server().headers, 2U);
  server().channel->resume();
  world_.world->settle();
  EXPECT_EQ(server().headers, 2U) << "the user's resume() does not release a held frame";
  world_.server().release_held();
  ASSERT_TRUE(run_until([&] { return server().frames.size() == 10; }));
}

TEST_P(FaultyTransportTest, DelaysOnlyFramesOfItsType) {
  start({1, {{.fault = Fault::delay, .per_thousand = 1000, .type = FrameType::result, .delay_max = 300us}}});
  send(10);
  ASSERT_TRUE(run_until([&] { return server().frames.size() == 10; }));
  EXPECT_EQ(world_.server().count(Fault::delay), 0U);
  server().channel->send_copy(header_of(0, FrameType::result), {});
  ASSERT_TRUE(run_until([&] { return client_.frames.size() == 1; }));
  EXPECT_EQ(world_.client().count(Fault::delay), 1U);
}

TEST_P(FaultyTransportTest, RefusesSendsWithoutLosingAnything) {
  start({1, {{.fault = Fault::refuse, .per_thousand = 500}}});
  const auto payload = pattern(100, 1);
  std::uint64_t next = 0;
  const auto feed = [&] {
    while (next < 200 && client_.channel->send(header_of(next), payload, next)) ++next;
  };
  client_.when_sent = [&](std::uint64_t) { feed(); };
  feed();
  ASSERT_TRUE(run_until([&] { return server().frames.size() == 200; }));
  EXPECT_GT(world_.client().count(Fault::refuse), 20U);
  for (std::uint64_t i = 0; i < 200; ++i) EXPECT_EQ(server().frames[i].header.sequence, i);
}

TEST_P(FaultyTransportTest, SendsAFrameTwiceAndReportsItOnce) {
  start({1, {{.fault = Fault::duplicate, .nth = 2}}});
  const auto payload = pattern(100, 1);
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(client_.channel->send(header_of(i), payload, i));
  ASSERT_TRUE(run_until([&] { return server().frames.size() == 4 && client_.sent.size() == 3; }));
  const std::vector<std::uint64_t> expected{0, 1, 1, 2};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(server().frames[i].header.sequence, expected[i]);
    EXPECT_EQ(server().frames[i].payload, payload);
  }
}

TEST_P(FaultyTransportTest, ChangesOneByteOfAHeader) {
  std::size_t noticed = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    start({seed, {{.fault = Fault::corrupt, .nth = 2}}});
    send(3);
    ASSERT_TRUE(run_until([&] { return server().closed.has_value() || server().frames.size() == 3; }));
    EXPECT_EQ(world_.client().count(Fault::corrupt), 1U);
    if (server().closed) {
      EXPECT_EQ(server().closed->code, Errc::corrupt);
      EXPECT_EQ(server().frames.size(), 1U);
      ++noticed;
    } else {
      EXPECT_EQ(server().frames[1].payload, pattern(1000, 1)) << "the payload is not touched";
      FrameHeader sent = header_of(1);
      sent.payload_bytes = 1000;
      const auto* a = reinterpret_cast<const std::byte*>(&sent);
      const auto* b = reinterpret_cast<const std::byte*>(&server().frames[1].header);
      EXPECT_EQ(std::inner_product(a, a + sizeof sent, b, 0, std::plus<>(), std::not_equal_to<>()), 1);
    }
    listener_.reset();
    client_.channel.reset();
    acceptor_.peers.clear();
    client_ = Peer{};
    next_ = 0;
  }
  EXPECT_GT(noticed, 0U);
  EXPECT_LT(noticed, 30U);
}

TEST_P(FaultyTransportTest, ForgetsAChannelThatIsDestroyedWhileItIsHeld) {
  start({1, {{.fault = Fault::hold, .nth = 1}, {.fault = Fault::delay, .nth = 1}}});
  send(1);
  ASSERT_TRUE(run_until([&] { return world_.server().count(Fault::hold) == 1; }));
  acceptor_.peers.clear();
  world_.server().release_held();
  ASSERT_TRUE(run_until([&] { return client_.closed.has_value(); }));
}

INSTANTIATE_TEST_SUITE_P(Over, FaultyTransportTest, ::testing::Bool(),
                         [](const auto& over) { return over.param ? "tcp" : "memory"; });

TEST(FaultyTransport, RunsTheSameWayWithTheSameSeed) {
  const auto run = [](std::uint64_t seed) {
    const FaultPlan plan{seed,
                         {{.fault = Fault::delay, .per_thousand = 100},
                          {.fault = Fault::duplicate, .per_thousand = 100},
                          {.fault = Fault::cut, .nth = 90}}};
    FaultyWorld world = make(false, plan);
    PeerAcceptor acceptor;
    Peer client;
    const auto listener = world.server().listen({"server", 1}, acceptor).value();
    client.channel = world.client().connect({"server", 1}, client, 1s);
    for (std::uint64_t i = 0; i < 100; ++i) client.channel->send_copy(header_of(i), pattern(100, i));
    EXPECT_TRUE(world.world->run_until([&] { return client.closed.has_value(); }));
    std::vector<std::uint64_t> seen;
    for (const Received& frame : acceptor.peers[0]->frames) seen.push_back(frame.header.sequence);
    seen.push_back(static_cast<std::uint64_t>(world.client().now().time_since_epoch().count()));
    return seen;
  };
  EXPECT_EQ(run(5), run(5));
  EXPECT_NE(run(5), run(6));
}

}  // namespace tributary::transport::test
