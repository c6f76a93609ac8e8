// Promises of SimNetwork beyond the contract, about virtual time, the seed and faults.
#include "tributary/transport/sim_network.h"

#include "tests/unit/transport/peer.h"

namespace tributary::transport::test {
namespace {

using namespace std::chrono_literals;

/// A server and clients on hosts of their own; each client sends one request after the other, and the server answers
/// each.
struct PingPong {
  explicit PingPong(SimNetwork& net, int count, std::uint64_t rounds) : network(net) {
    acceptor.prepare = [](Peer& peer) {
      peer.when_frame = [&peer](Channel& channel, const Received& frame) {
        (void)peer;
        channel.send_copy(header_of(frame.header.sequence, FrameType::result), frame.payload);
      };
    };
    listener = network.transport("server").listen({"", 7471}, acceptor).value();
    for (int i = 0; i < count; ++i) {
      auto& peer = *clients.emplace_back(std::make_unique<Peer>());
      peer.when_frame = [this, rounds](Channel& channel, const Received& frame) {
        ++answers;
        if (frame.header.sequence + 1 < rounds) channel.send_copy(header_of(frame.header.sequence + 1), frame.payload);
      };
      peer.channel = network.transport("client" + std::to_string(i)).connect({"server", 7471}, peer, 1s);
      peer.channel->send_copy(header_of(0), pattern(600, static_cast<std::uint64_t>(i)));
    }
  }
  SimNetwork& network;
  PeerAcceptor acceptor;
  std::unique_ptr<Listener> listener;
  std::vector<std::unique_ptr<Peer>> clients;
  std::size_t answers = 0;
};

class SimNetworkTest : public ::testing::Test {
 protected:
  void connect(SimNetwork& network) {
    listener_ = network.transport("b").listen({"b", 1}, acceptor_).value();
    client_.channel = network.transport("a").connect({"b", 1}, client_, 1s);
    ASSERT_TRUE(network.run_until([&] { return client_.opened && acceptor_.peers.size() == 1; }, network.now() + 1s));
  }
  Peer& server() { return *acceptor_.peers.front(); }
  PeerAcceptor acceptor_;
  Peer client_;
  std::unique_ptr<Listener> listener_;
};

std::pair<std::uint64_t, std::uint64_t> run_chaos(std::uint64_t seed) {
  SimNetwork network({.seed = seed});
  PingPong load(network, 10, 200);
  network.slow_down("client3", 50us);
  network.call_at(network.now() + 300us, [&] { network.cut("client1", "server"); });
  network.call_at(network.now() + 400us, [&] { network.partition("client2"); });
  network.call_at(network.now() + 500us, [&] { network.kill("client4"); });
  network.call_at(network.now() + 900us, [&] { network.heal("client2"); });
  EXPECT_TRUE(network.run_until_idle());
  return {network.trace_hash(), network.statistics().events};
}

}  // namespace

TEST_F(SimNetworkTest, RunsTheSameWayWithTheSameSeedAndAnotherWithAnother) {
  const auto first = run_chaos(7);
  EXPECT_EQ(first, run_chaos(7));
  EXPECT_NE(first.first, run_chaos(8).first);
}

TEST_F(SimNetworkTest, MovesTimeOnlyByEvents) {
  SimNetwork network({.link = {.latency = 10us, .jitter = 0us}, .split_percent = 0});
  connect(network);
  const TimePoint before = network.now();
  client_.channel->send_copy(header_of(0), pattern(10, 0));
  EXPECT_EQ(network.transport("a").now(), before);
  ASSERT_TRUE(network.run_until([&] { return server().frames.size() == 1; }, before + 1s));
  EXPECT_EQ(network.now() - before, 10us);
  network.run_for(5ms);
  EXPECT_EQ(network.now() - before, 5ms + 10us);
  EXPECT_TRUE(network.idle()) << "the connect limit is no event once the connection is open";
}

TEST_F(SimNetworkTest, AFrameTakesTheTimeThatTheLinksRateGives) {
  SimNetwork network({.link = {.latency = 1us, .jitter = 0us, .bytes_per_second = 1'000'000'000}, .split_percent = 0});
  connect(network);
  const TimePoint before = network.now();
  const auto payload = pattern(1'000'000 - 64, 0);
  for (std::uint64_t i = 0; i < 5; ++i) ASSERT_TRUE(client_.channel->send(header_of(i), payload, i));
  ASSERT_TRUE(network.run_until([&] { return server().frames.size() == 5; }, before + 1s));
  EXPECT_NEAR(std::chrono::duration<double>(network.now() - before).count(), 0.005001, 1e-6);
}

TEST_F(SimNetworkTest, DrivesTheNetworkFromABlockingPoll) {
  SimNetwork network;
  listener_ = network.transport("b").listen({"b", 0}, acceptor_).value();
  Transport& a = network.transport("a");
  client_.channel = a.connect(listener_->local(), client_, 1s);
  const TimePoint before = network.now();
  EXPECT_EQ(a.poll(1s), 1U);
  EXPECT_TRUE(client_.opened);
  EXPECT_LT(network.now() - before, 1ms);
  EXPECT_EQ(a.poll(2s), 0U);
  EXPECT_GE(network.now() - before, 2s) << "a network with nothing to do waits in virtual time";
}

TEST_F(SimNetworkTest, RunsAHostsStepInPlaceOfPollingAndAtItsWakeUpTime) {
  SimNetwork network;
  connect(network);
  int runs = 0;
  network.on_due("b", [&] {
    ++runs;
    network.transport("b").poll({});
  });
  client_.channel->send_copy(header_of(0), {});
  network.run_until_idle();
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(server().frames.size(), 1U);
  const TimePoint before = network.now();
  network.wake_at("b", before + 5ms);
  network.wake_at("b", before + 3ms);
  network.run_until_idle();
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(network.now(), before + 3ms) << "the earliest time counts";
}

TEST_F(SimNetworkTest, ReadsBorrowedPayloadsWhenTheyArrive) {
  SimNetwork network({.early_sent_percent = 0});
  connect(network);
  auto payload = pattern(100, 1);
  ASSERT_TRUE(client_.channel->send(header_of(0), payload, 0));
  std::ranges::copy(pattern(100, 2), payload.begin());
  network.run_until_idle();
  EXPECT_EQ(server().frames[0].payload, pattern(100, 2))
      << "the sums must show a sender that changes its payload too early";
}

TEST_F(SimNetworkTest, LosesFramesAfterOnSentWhenAConnectionBreaks) {
  SimNetwork network({.early_sent_percent = 100});
  connect(network);
  std::vector<std::vector<std::byte>> payloads(10, pattern(100, 1));
  for (std::uint64_t i = 0; i < 10; ++i) ASSERT_TRUE(client_.channel->send(header_of(i), payloads[i], i));
  ASSERT_TRUE(network.run_until([&] { return !client_.sent.empty(); }, network.now() + 1s));
  network.cut(*client_.channel);
  network.run_until_idle();
  EXPECT_GT(network.statistics().lost_after_sent, 0U);
  EXPECT_LT(server().frames.size(), 10U);
  EXPECT_EQ(client_.closed->code, Errc::peer_gone);
  EXPECT_EQ(server().closed->code, Errc::peer_gone);
}

TEST_F(SimNetworkTest, LeavesHalfWrittenPayloadsBehindACut) {
  std::uint64_t half_written = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SimNetwork network({.seed = seed, .split_percent = 100});
    PeerAcceptor acceptor;
    Peer client;
    const auto listener = network.transport("b").listen({"b", 1}, acceptor).value();
    client.channel = network.transport("a").connect({"b", 1}, client, 1s);
    const auto payload = pattern(1000, seed);
    ASSERT_TRUE(client.channel->send(header_of(0), payload, 0));
    network.run_until([&] { return !acceptor.peers.empty() && acceptor.peers[0]->headers == 1; }, network.now() + 1s);
    network.cut("a", "b");
    network.run_until_idle();
    ASSERT_TRUE(acceptor.peers[0]->closed.has_value());
    ASSERT_TRUE(acceptor.peers[0]->frames.empty());
    half_written += network.statistics().half_written;
  }
  EXPECT_GT(half_written, 20U);
}

TEST_F(SimNetworkTest, NeverCallsAKilledHostAgainAndTellsTheOthers) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SimNetwork network({.seed = seed});
    auto victim = std::make_unique<PeerAcceptor>();
    auto buffer = std::make_unique<std::vector<std::byte>>(pattern(5000, 1));
    auto listener = network.transport("victim").listen({"", 5}, *victim).value();
    Peer other;
    other.channel = network.transport("other").connect({"victim", 5}, other, 1s);
    const auto payload = pattern(5000, 2);
    for (std::uint64_t i = 0; i < 10; ++i) ASSERT_TRUE(other.channel->send(header_of(i), payload, i));
    victim->when_accepted = [&](Peer& peer) {
      for (std::uint64_t i = 0; i < 10; ++i) ASSERT_TRUE(peer.channel->send(header_of(i), *buffer, i));
    };
    for (std::uint64_t i = 0; i < seed; ++i) network.step();
    network.kill("victim");
    std::ranges::fill(*buffer, std::byte{0});
    victim.reset();  // handlers, channels and buffers of the killed process go at once
    buffer.reset();
    listener.reset();
    EXPECT_FALSE(network.alive("victim"));
    ASSERT_TRUE(network.run_until_idle());
    ASSERT_TRUE(other.closed.has_value());
    EXPECT_TRUE(other.closed->code == Errc::peer_gone || other.closed->code == Errc::unreachable);
    for (const Received& frame : other.frames) EXPECT_EQ(frame.payload, pattern(5000, 1));

    Transport& reborn = network.restart("victim");
    PeerAcceptor successor;
    const auto second = reborn.listen({"", 5}, successor).value();
    Peer again;
    again.channel = network.transport("other").connect({"victim", 5}, again, 1s);
    ASSERT_TRUE(network.run_until([&] { return again.opened && successor.accepted == 1; }, network.now() + 1s));
  }
}

TEST_F(SimNetworkTest, SurvivesAKillFromInsideTheVictimsOwnCallback) {
  SimNetwork network;
  connect(network);
  server().when_frame = [&](Channel&, const Received&) { network.kill("b"); };
  for (std::uint64_t i = 0; i < 5; ++i) client_.channel->send_copy(header_of(i), pattern(100, i));
  network.run_until_idle();
  EXPECT_EQ(server().frames.size(), 1U);
  EXPECT_TRUE(client_.closed.has_value());
  EXPECT_FALSE(server().closed.has_value());
}

TEST_F(SimNetworkTest, AKilledHostCanNeitherListenNorConnect) {
  SimNetwork network;
  Transport& transport = network.transport("a");
  network.kill("a");
  EXPECT_FALSE(transport.listen({"", 1}, acceptor_));
  client_.channel = transport.connect({"b", 1}, client_, 1s);
  EXPECT_TRUE(client_.channel->closed());
  EXPECT_EQ(transport.poll(1s), 0U);
  network.run_until_idle();
  EXPECT_FALSE(client_.closed.has_value());
}

TEST_F(SimNetworkTest, FramesHeldBackByAPartitionArriveAfterItAndNoHostLearnsOfIt) {
  SimNetwork network;
  connect(network);
  network.partition("b");
  for (std::uint64_t i = 0; i < 20; ++i) client_.channel->send_copy(header_of(i), pattern(100, i));
  Peer late;
  late.channel = network.transport("a").connect({"b", 1}, late, 50ms);
  network.run_for(1s);
  EXPECT_TRUE(server().frames.empty());
  EXPECT_FALSE(client_.closed.has_value());
  ASSERT_TRUE(late.closed.has_value());
  EXPECT_EQ(late.closed->code, Errc::unreachable);
  EXPECT_NE(late.closed->message.find("50 ms"), std::string::npos) << late.closed->message;
  network.heal("b");
  network.run_until_idle();
  ASSERT_EQ(server().frames.size(), 20U);
  for (std::uint64_t i = 0; i < 20; ++i) EXPECT_EQ(server().frames[i].header.sequence, i);
  EXPECT_EQ(acceptor_.accepted, 1U);
}

TEST_F(SimNetworkTest, APartitionSeparatesOnlyTheTwoHosts) {
  SimNetwork network;
  connect(network);
  Peer third;
  third.channel = network.transport("c").connect({"b", 1}, third, 1s);
  network.run_until_idle();
  network.partition("a", "b");
  client_.channel->send_copy(header_of(0), {});
  third.channel->send_copy(header_of(0), {});
  network.run_until_idle();
  EXPECT_TRUE(server().frames.empty());
  EXPECT_EQ(acceptor_.peers[1]->frames.size(), 1U);
  network.heal("b", "a");
  network.run_until_idle();
  EXPECT_EQ(server().frames.size(), 1U);
}

TEST_F(SimNetworkTest, HoldsCallbacksOfAPausedHostButStillAcceptsForIt) {
  SimNetwork network;
  connect(network);
  network.pause("b");
  client_.channel->send_copy(header_of(0), pattern(100, 0));
  Peer second;
  second.channel = network.transport("a").connect({"b", 1}, second, 1s);
  network.run_for(10ms);
  EXPECT_TRUE(server().frames.empty());
  EXPECT_TRUE(second.opened) << "the kernel of a hung process still opens connections";
  EXPECT_EQ(acceptor_.accepted, 1U);
  network.resume("b");
  network.run_until_idle();
  EXPECT_EQ(server().frames.size(), 1U);
  EXPECT_EQ(acceptor_.accepted, 2U);
}

TEST_F(SimNetworkTest, ASlowHostTakesMoreTime) {
  SimNetwork network;
  connect(network);
  const TimePoint before = network.now();
  network.slow_down("b", 1ms);
  server().when_frame = [](Channel& channel, const Received& frame) {
    channel.send_copy(header_of(frame.header.sequence, FrameType::result), {});
  };
  client_.when_frame = [](Channel& channel, const Received& frame) {
    if (frame.header.sequence < 9) channel.send_copy(header_of(frame.header.sequence + 1), {});
  };
  client_.channel->send_copy(header_of(0), {});
  network.run_until([&] { return client_.frames.size() == 10; }, before + 1s);
  EXPECT_GT(network.now() - before, 4ms);
  EXPECT_LT(network.now() - before, 16ms);
}

TEST_F(SimNetworkTest, ForgetsConnectionsWhoseChannelsAreGone) {
  SimNetwork network;
  PeerAcceptor acceptor;
  const auto listener = network.transport("b").listen({"b", 1}, acceptor).value();
  for (int round = 0; round < 50; ++round) {
    std::vector<std::unique_ptr<Peer>> clients;
    for (int i = 0; i < 20; ++i) {
      clients.push_back(std::make_unique<Peer>());
      clients.back()->channel = network.transport("a").connect({i % 5 == 4 ? "nowhere" : "b", 1}, *clients.back(), 1s);
      clients.back()->channel->send_copy(header_of(0), pattern(10, 0));
    }
    for (int i = 0; i < round; ++i) network.step();
    clients.clear();
    acceptor.peers.clear();
    network.run_until_idle();
    acceptor.peers.clear();
  }
  EXPECT_EQ(network.statistics().connections, 0U);
  EXPECT_TRUE(network.idle());
}

TEST_F(SimNetworkTest, RefusesOrBreaksTheWantedNumberOfConnectionsBeforeTheirFirstFrame) {
  SimNetwork network({.seed = 5});
  acceptor_.prepare = [](Peer& peer) {
    peer.when_frame = [](Channel& channel, const Received& frame) { channel.send_copy(frame.header, {}); };
  };
  listener_ = network.transport("b").listen({"b", 1}, acceptor_).value();
  const auto connect_all = [&](std::uint32_t percent) {
    network.refuse_connections("b", percent);
    std::vector<std::unique_ptr<Peer>> clients;
    for (int i = 0; i < 200; ++i) {
      auto& client = *clients.emplace_back(std::make_unique<Peer>());
      client.channel = network.transport("a").connect({"b", 1}, client, 1s);
      client.channel->send_copy(header_of(0), pattern(10, 0));
    }
    network.run_for(500ms);
    return clients;
  };
  std::size_t answered = 0, refused = 0, broken = 0;
  for (const auto& client : connect_all(50)) {
    EXPECT_NE(!client->frames.empty(), client->closed.has_value()) << "either a frame comes, or the end";
    answered += client->frames.size();
    if (!client->closed) continue;
    ++(client->closed->code == Errc::unreachable ? refused : broken);
  }
  EXPECT_GT(answered, 60U);
  EXPECT_GT(refused, 25U);
  EXPECT_GT(broken, 25U);
  EXPECT_EQ(network.statistics().refused, refused + broken);
  for (const auto& client : connect_all(100)) EXPECT_TRUE(client->frames.empty());
  for (const auto& client : connect_all(0)) EXPECT_EQ(client->frames.size(), 1U);
}

TEST_F(SimNetworkTest, LetsTheFirstFrameOfEachConnectionBeOverheard) {
  SimNetwork network;
  std::vector<std::pair<std::string, std::vector<std::byte>>> heard;
  network.overhear([&](const Endpoint&, const Endpoint& to, const FrameHeader&, std::span<const std::byte> payload) {
    heard.emplace_back(to_string(to), std::vector(payload.begin(), payload.end()));
  });
  connect(network);
  client_.channel->send_copy(header_of(0), pattern(10, 1));
  client_.channel->send_copy(header_of(1), pattern(10, 2));
  server().channel->send_copy(header_of(0), pattern(10, 3));
  ASSERT_TRUE(
      network.run_until([&] { return server().frames.size() == 2 && client_.frames.size() == 1; }, network.now() + 1s));
  ASSERT_EQ(heard.size(), 1U);
  EXPECT_EQ(heard[0], std::pair(std::string("b:1"), pattern(10, 1)));
}

TEST_F(SimNetworkTest, StopsAProgramThatStepsFromInsideACallback) {
  SimNetwork network;
  network.call_at(network.now(), [&] { EXPECT_THROW(network.step(), std::logic_error); });
  network.run_until_idle();
}

}  // namespace tributary::transport::test
