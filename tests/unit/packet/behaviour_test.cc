// Promises of the packet protocol beyond a channel's contract, for restarts, silence, forgeries and odd paths.
#include "tests/unit/packet/packets.h"
#include "transport/packet/receive_stream.h"

namespace tributary::transport::packet::test {
namespace {

using namespace std::chrono_literals;

TEST_F(Packets, ARestartedPeerIsNoticedAtOnce) {
  start();
  Source source(1000, 1);
  connect(source);
  const std::uint16_t port = listener_->local().port;
  network_.link().lost = 1000;  // the other side dies without sending a close
  listener_.reset();
  server_.reset();
  for (auto& sink : sinks_.all) sink->channel.reset();
  network_.link().lost = 0;
  start_server(port);
  const TimePoint begin = network_.now();
  ASSERT_TRUE(run([&] { return source.closed.has_value(); }));
  EXPECT_EQ(source.closed->code, Errc::peer_gone);
  EXPECT_LT(network_.now() - begin, 1500ms) << "the server answers the client's next sign of life by a reset";
  EXPECT_EQ(client_->statistics().resets_received, 1U);
}

TEST_F(Packets, ASilentPeerIsGoneWithinSeconds) {
  start();
  Source source(1000);
  connect(source);
  network_.link().lost = 1000;
  const TimePoint begin = network_.now();
  ASSERT_TRUE(run([&] { return source.closed.has_value() && sinks_.all[0]->closed; }));
  EXPECT_EQ(source.closed->code, Errc::peer_gone);
  EXPECT_LT(network_.now() - begin, 8s);
  EXPECT_GT(network_.now() - begin, 4s);
}

TEST_F(Packets, AnIdleConnectionStaysOpen) {
  start({.lost = 50});
  Source source(1000, 1);
  connect(source);
  run([] { return false; }, 120s);
  EXPECT_FALSE(source.closed) << source.closed->message;
}

TEST_F(Packets, OpensWithinASecondWhereOnePacketInFiveIsLost) {
  start({.lost = 200});
  for (int i = 0; i < 2000; ++i) {
    Source source(10, 1);
    source.channel = client_->connect(listener_->local(), source, 1333ms);
    ASSERT_TRUE(run([&] { return source.opened || source.closed.has_value(); }));
    ASSERT_TRUE(source.opened) << "connection " << i << ": " << source.closed->message;
    source.channel.reset();
    sinks_.all.clear();
  }
}

TEST_F(Packets, GarbageAndGuessesDoNoHarm) {
  start();
  Source source(1000);
  connect(source);
  auto stranger = network_.opener(9)({}).value();
  Random random(5);
  for (int i = 0; i < 5000; ++i) {
    PacketHeader header;
    header.type = static_cast<PacketType>(1 + random.below(8));
    header.flags = static_cast<std::uint16_t>(random.below(16));
    header.connection = (random.next() << 24) | random.below(3);
    header.number = random.next();
    header.bitmap = random.next();
    header.received = static_cast<std::uint32_t>(random.next());
    header.largest = static_cast<std::uint32_t>(random.next());
    const auto payload =
        pattern(random.below(2) == 0 ? kHandshakeBytes : random.below(900), static_cast<std::uint64_t>(i));
    forge(*stranger, header, payload);
    if (i % 100 == 0) run([] { return false; }, 1ms);
  }
  const std::uint64_t frames = sinks_.all[0]->frames;
  ASSERT_TRUE(run([&] { return sinks_.all[0]->frames > frames + 1000; }));
  EXPECT_FALSE(source.closed);
  EXPECT_EQ(server_->statistics().connections, 1U);
}

/// An attacker that sees the packets and sends them again later.
TEST_F(Packets, RepeatsOfEverythingDoNoHarm) {
  start({.repeated = 1000});
  Source source(3000, 2000);
  connect(source);
  ASSERT_TRUE(run([&] { return sinks_.all[0]->frames == 2000 && source.sent == 2000; }));
  EXPECT_GT(server_->statistics().repeats, 1000U);
}

TEST_F(Packets, OnePayloadUnderManyHeadersHasTheRightChecksumEachTime) {
  start();
  Source source(1000, 300);  // one packet per frame, all from the same memory
  connect(source);
  ASSERT_TRUE(run([&] { return source.sent == 300; }));
  EXPECT_EQ(server_->statistics().rejects[static_cast<std::size_t>(PacketReject::checksum)], 0U);
  EXPECT_EQ(client_->statistics().packets_sent_again, 0U);
}

TEST_F(Packets, IsSentToThePortThatServesItsGroup) {
  start();
  Sinks others;
  other_ = std::make_unique<PacketTransport>(network_.opener(1), settings(3), network_.time());
  auto worker = other_->listen({SimPackets::host(1), 0}, others).value();
  listener_.reset();
  Claim claimed;
  listener_ = server_
                  ->listen_for({SimPackets::host(1), 0},
                               [&](const Claim& claim) {
                                 claimed = claim;
                                 return worker->local().port;
                               })
                  .value();
  Source source(1000, 3);
  source.channel = client_->connect(listener_->local(), source, 10s);
  source.feed();
  ASSERT_TRUE(run([&] { return others.all.size() == 1 && others.all[0]->frames == 3; }));
  EXPECT_EQ(claimed.group, 77U) << "the group comes from the first frame";
  EXPECT_EQ(source.channel->peer(), to_string(listener_->local()));
  EXPECT_EQ(server_->statistics().connections, 0U);
}

TEST_F(Packets, APathThatSwallowsLargePacketsIsUsedWithSmallOnes) {
  start({.datagram_bytes = 8972, .swallow_above = 1400});
  Source source(100'000, 20);
  source.channel = client_->connect(listener_->local(), source, 10s);
  ASSERT_TRUE(run([&] { return sinks_.all.size() == 1 && sinks_.all[0]->frames == 20; }));
  EXPECT_FALSE(source.closed);
}

TEST_F(Packets, AReportOfANarrowPathIsBelievedIfItQuotesAPacketOfTheConnection) {
  start({.datagram_bytes = 8972});
  struct Seen {
    std::size_t longest = 0;
    std::vector<std::byte> last;
    PacketAddress here, there;
  };
  const auto seen = std::make_shared<Seen>();
  network_.watch = [seen](const PacketAddress& from, const PacketAddress& to, std::span<const std::byte> bytes) {
    if (to.ip == SimPackets::address(1, 0).ip) {
      *seen = {std::max(seen->longest, bytes.size()), {bytes.begin(), bytes.end()}, from, to};
    }
  };
  Source source(50000);
  connect(source);
  const auto longest_soon = [&] {
    run([] { return false; }, 20ms);
    seen->longest = 0;
    const std::uint64_t frames = sinks_.all[0]->frames;
    EXPECT_TRUE(run([&] { return sinks_.all[0]->frames > frames + 50; }));
    return seen->longest;
  };
  ASSERT_EQ(longest_soon(), 8972U);
  auto quoted = std::vector(seen->last.begin(), seen->last.begin() + kPacketHeaderBytes);
  const auto [here, there] = std::pair(seen->here, seen->there);
  auto other_name = quoted;
  other_name[offsetof(PacketHeader, connection)] ^= std::byte{1};
  network_.say_narrow(here, there, other_name, 1500);
  network_.say_narrow(here, SimPackets::address(3, there.port), quoted, 1500);
  network_.say_narrow(here, there, std::vector(quoted.begin(), quoted.begin() + 8), 1500);
  network_.say_narrow(here, there, {}, 1500);
  EXPECT_EQ(longest_soon(), 8972U) << "a sender that has not seen the connection's packets is not believed";
  // Some routers quote only so many bytes.
  quoted.resize(offsetof(PacketHeader, connection) + sizeof(PacketHeader::connection));
  network_.say_narrow(here, there, quoted, 1500);
  EXPECT_EQ(longest_soon(), 1472U);
  EXPECT_FALSE(source.closed);
}

TEST_F(Packets, DeadlinesThatWereAskedForTooLateAreNotRememberedForLong) {
  start();
  Source source(100, 1);
  connect(source);
  const std::vector<std::byte> word(100);
  for (std::uint64_t i = 1; i < 5000; ++i) {  // each frame makes the other side's next deadline earlier
    source.channel->send_copy(header_of(i), word);
    run([] { return false; }, 300us);
  }
  EXPECT_EQ(sinks_.all[0]->frames, 5000U);
  EXPECT_LE(client_->statistics().deadlines_max, 100U);
  EXPECT_LE(server_->statistics().deadlines_max, 100U);
}

TEST_F(Packets, AReaderThatStopsBoundsWhatIsKept) {
  class Stopped : public Acceptor, public ChannelHandler {
   public:
    ChannelHandler* on_accept(std::unique_ptr<Channel> accepted) override {
      channel = std::move(accepted);
      return this;
    }
    Placement on_header(Channel&, const FrameHeader&) override { return NotYet{}; }
    void on_frame(Channel&, const FrameHeader&, std::span<std::byte>) override {}
    void on_closed(Channel&, const Error&) override {}
    std::unique_ptr<Channel> channel;
  } stopped;
  start();
  other_ = std::make_unique<PacketTransport>(network_.opener(1), settings(3), network_.time());
  auto listener = other_->listen({SimPackets::host(1), 0}, stopped).value();
  Source source(100'000);
  source.channel = client_->connect(listener->local(), source, 10s);
  run([] { return false; }, 30s);
  EXPECT_FALSE(source.closed) << "waiting is no error";
  EXPECT_LT(client_->statistics().bytes_sent, 3U << 20) << "it sends no more than the credit, and some questions";
}

/// Readers stop one after another: the receiver keeps their unread bytes, and promises only the rest of the memory to
/// the other senders.
TEST_F(Packets, AReceiverThatIsShortOfMemorySaysSoAndDropsNothing) {
  class Stopped : public Acceptor, public ChannelHandler {
   public:
    ChannelHandler* on_accept(std::unique_ptr<Channel> accepted) override {
      channels.push_back(std::move(accepted));
      return this;
    }
    Placement on_header(Channel&, const FrameHeader&) override { return NotYet{}; }
    void on_frame(Channel&, const FrameHeader&, std::span<std::byte>) override {}
    void on_closed(Channel&, const Error&) override {}
    std::vector<std::unique_ptr<Channel>> channels;
  } stopped;
  start();
  auto little = settings(3);
  little.kept_bytes_max = 512U << 10U;  // less than the window of one connection
  other_ = std::make_unique<PacketTransport>(network_.opener(1), little, network_.time());
  auto listener = other_->listen({SimPackets::host(1), 0}, stopped).value();
  std::vector<std::unique_ptr<Source>> sources;
  for (int i = 0; i < 4; ++i) {
    sources.push_back(std::make_unique<Source>(100'000));
    sources.back()->channel = client_->connect(listener->local(), *sources.back(), 10s);
    run([] { return false; }, 2s);
  }
  EXPECT_EQ(other_->statistics().no_room, 0U) << "more was promised than can be kept";
  EXPECT_EQ(client_->statistics().packets_sent_again, 0U);
  EXPECT_EQ(stopped.channels.size(), 4U);
  EXPECT_GT(client_->statistics().bytes_sent, 256U << 10U) << "all the memory is used";
  for (const auto& source : sources) EXPECT_FALSE(source->closed);
}

/// A receiver that takes every payload without a copy, reads it late, and gives some back out of order.
class Keeper : public Acceptor, public ChannelHandler {
 public:
  ChannelHandler* on_accept(std::unique_ptr<Channel> accepted) override {
    channel = std::move(accepted);
    return this;
  }
  bool takes_in_place(Channel&, const FrameHeader& header) override {
    return in_place_ = wants && header.sequence % 5 != 4;
  }
  Placement on_header(Channel&, const FrameHeader& header) override {
    in_place_ = false;
    place_.assign(header.payload_bytes, std::byte{0});
    return Accept{place_};
  }
  void on_frame(Channel&, const FrameHeader& header, std::span<std::byte> payload) override {
    EXPECT_EQ(header.sequence, frames++);
    if (!std::exchange(in_place_, false)) return check(payload);
    kept.emplace_back(payload);
    if (kept.size() < 24) return;
    std::ranges::reverse(kept);
    give_all_back();
  }
  void on_closed(Channel&, const Error&) override { ended = true; }
  void give_all_back() {
    for (const auto one : std::exchange(kept, {})) {
      check(one);
      channel->give_back(one);
    }
  }
  static void check(std::span<const std::byte> payload) {
    EXPECT_EQ(payload.size(), 1024U);
    EXPECT_TRUE(std::ranges::all_of(payload, [](std::byte b) { return b == std::byte{7}; }));
  }
  bool wants = true;
  bool ended = false;
  std::uint64_t frames = 0;
  std::vector<std::span<const std::byte>> kept;
  std::unique_ptr<Channel> channel;

 private:
  bool in_place_ = false;
  std::vector<std::byte> place_;
};

TEST_F(Packets, PayloadsThatAreWholeInAPacketMayStayThere) {
  start({.lost = 20, .repeated = 20, .overtaken = 20});
  Keeper keeper;
  other_ = std::make_unique<PacketTransport>(network_.opener(1), settings(3), network_.time());
  auto listener = other_->listen({SimPackets::host(1), 0}, keeper).value();
  Source source(1024, 1000);
  source.channel = client_->connect(listener->local(), source, 10s);
  ASSERT_TRUE(run([&] { return keeper.frames == 1000; }));
  EXPECT_GT(other_->statistics().frames_in_place, 100U) << "frames that come in order stay in place";
  EXPECT_EQ(network_.kept, keeper.kept.size());
  keeper.give_all_back();
  EXPECT_EQ(network_.kept, 0U);
}

TEST_F(Packets, PayloadsAreCopiedWhenNoMoreBuffersCanBeSpared) {
  start();
  network_.kept_max = 10;
  Keeper keeper;
  other_ = std::make_unique<PacketTransport>(network_.opener(1), settings(3), network_.time());
  auto listener = other_->listen({SimPackets::host(1), 0}, keeper).value();
  Source source(1024, 200);
  source.channel = client_->connect(listener->local(), source, 10s);
  ASSERT_TRUE(run([&] { return keeper.frames == 200; }));
  EXPECT_EQ(other_->statistics().frames_in_place, 10U);
  EXPECT_EQ(network_.kept, 10U);
}

TEST_F(Packets, AKeptPayloadOutlivesTheConnectionAndNotTheChannel) {
  start();
  Keeper keeper;
  other_ = std::make_unique<PacketTransport>(network_.opener(1), settings(3), network_.time());
  auto listener = other_->listen({SimPackets::host(1), 0}, keeper).value();
  Source source(1024, 10);
  source.channel = client_->connect(listener->local(), source, 10s);
  ASSERT_TRUE(run([&] { return keeper.frames == 10 && source.sent == 10; }));
  source.channel.reset();
  ASSERT_TRUE(run([&] { return keeper.ended; }));
  ASSERT_FALSE(keeper.kept.empty());
  for (const auto one : keeper.kept) Keeper::check(one);
  EXPECT_EQ(network_.kept, keeper.kept.size());
  keeper.channel.reset();
  EXPECT_EQ(network_.kept, 0U);
}

class Chaos : public ::testing::TestWithParam<std::uint64_t> {};

/// An end that sends frames of random sizes, and overwrites their memory as soon as it may. It reads frames at random
/// times.
class Talker : public ChannelHandler {
 public:
  Talker(SimPackets& network, std::uint64_t seed, std::uint64_t frames)
      : network_(network), random_(seed), frames_(frames) {}
  void on_open(Channel&) override { feed(); }
  Placement on_header(Channel&, const FrameHeader& header) override {
    if (random_.below(6) == 0) {
      wants_more_at_ = network_.now() + std::chrono::microseconds(random_.below(300));
      return NotYet{};
    }
    place_.assign(header.payload_bytes, std::byte{0});
    return Accept{place_};
  }
  void on_frame(Channel&, const FrameHeader& header, std::span<std::byte> payload) override {
    ASSERT_EQ(header.sequence, came);
    ASSERT_TRUE(std::ranges::equal(payload, pattern(size_of_frame(came), came))) << "frame " << came;
    ++came;
  }
  void on_sent(Channel&, std::uint64_t cookie) override {
    ASSERT_EQ(buffers_.begin()->first, cookie) << "on_sent comes in the order of the sends";
    std::ranges::fill(buffers_.begin()->second, std::byte{0xDD});
    buffers_.erase(buffers_.begin());
    feed();
  }
  void on_closed(Channel&, const Error& error) override { FAIL() << error.message; }
  void feed() {
    while (next_ < frames_) {
      auto& buffer = buffers_[next_] = pattern(size_of_frame(next_), next_);
      if (next_ % 7 == 6) {
        channel->send_copy(header_of(next_), buffer);
        buffers_.erase(next_);
      } else if (!channel->send(header_of(next_), buffer, next_)) {
        buffers_.erase(next_);
        return;
      }
      ++next_;
    }
  }
  void wake() {
    if (network_.now() < wants_more_at_) return;
    wants_more_at_ = TimePoint::max();
    channel->resume();
  }
  static std::size_t size_of_frame(std::uint64_t number) {
    const std::size_t sizes[] = {0, 16, 200, 1000, 1344, 5000, 40'000, 300};
    return sizes[number * 2654435761U % 8];
  }
  std::uint64_t came = 0;
  std::unique_ptr<Channel> channel;

 private:
  SimPackets& network_;
  Random random_;
  std::uint64_t frames_;
  std::uint64_t next_ = 0;
  std::map<std::uint64_t, std::vector<std::byte>> buffers_;
  std::vector<std::byte> place_;
  TimePoint wants_more_at_ = TimePoint::max();
};

TEST_P(Chaos, BringsEveryByteOnceAndInOrder) {
  constexpr std::uint64_t kFrames = 400;
  Random random(GetParam());
  const auto some = [&](std::uint64_t most) { return static_cast<std::uint32_t>(random.below(most)); };
  LinkSettings link{.bytes_per_second = 1e7 * static_cast<double>(1 + some(200)),
                    .queue_bytes = 30'000 + some(300'000),
                    .mark_bytes = 10'000 + some(100'000),
                    .latency = std::chrono::microseconds(1 + some(400)),
                    .datagram_bytes = std::size_t{1232} + some(9000),
                    .lost = some(100),
                    .repeated = some(50),
                    .overtaken = some(100),
                    .damaged = some(50)};
  PacketSettings settings;
  settings.seed = GetParam();
  settings.window_bytes = 40'000 + some(1 << 20);
  settings.kept_bytes_max = (4 + some(40)) * kChunkBytes;
  SimPackets network(GetParam(), link);
  PacketTransport server(network.opener(1), settings, network.time());
  PacketTransport client(network.opener(2), settings, network.time());
  Talker up(network, 1, kFrames);
  Talker down(network, 2, kFrames);
  class One : public Acceptor {
   public:
    explicit One(Talker& talker) : talker_(talker) {}
    ChannelHandler* on_accept(std::unique_ptr<Channel> channel) override {
      talker_.channel = std::move(channel);
      talker_.feed();
      return &talker_;
    }

   private:
    Talker& talker_;
  } acceptor(down);
  const auto listener = server.listen({SimPackets::host(1), 0}, acceptor).value();
  up.channel = client.connect(listener->local(), up, 10s);
  EXPECT_TRUE(network.run_until(
      {&server, &client},
      [&] {
        if (up.channel) up.wake();
        if (down.channel) down.wake();
        return (up.came == kFrames && down.came == kFrames) || ::testing::Test::HasFailure();
      },
      120s))
      << "seed " << GetParam() << ": " << up.came << " and " << down.came << " of " << kFrames;
}

INSTANTIATE_TEST_SUITE_P(Seeds, Chaos, ::testing::Range<std::uint64_t>(1, 101));

}  // namespace
}  // namespace tributary::transport::packet::test
