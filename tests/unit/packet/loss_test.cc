// A connection under heavy loss stands still only for a bounded time. Time is virtual and seeds are fixed, so every run
// is the same.
#include "tests/unit/packet/ends.h"
#include "transport/packet/receive_stream.h"

namespace tributary::transport::packet::test {
namespace {

using namespace std::chrono_literals;

/// Answers each frame with a frame of the same size, a given number of times.
class Player : public ChannelHandler {
 public:
  Player(std::size_t payload_bytes, std::uint64_t frames) : payload_(payload_bytes, std::byte{5}), left_(frames) {}
  Placement on_header(Channel&, const FrameHeader& header) override {
    place_.resize(header.payload_bytes);
    return Accept{place_};
  }
  void on_frame(Channel&, const FrameHeader& header, std::span<std::byte>) override {
    EXPECT_EQ(header.sequence, came++);
    serve();
  }
  void on_closed(Channel&, const Error& error) override { ADD_FAILURE() << error.message; }
  void serve() {
    if (left_ == 0) return;
    --left_;
    channel->send_copy(header_of(sent_++), payload_);
  }
  std::uint64_t came = 0;
  std::unique_ptr<Channel> channel;

 private:
  std::vector<std::byte> payload_, place_;
  std::uint64_t sent_ = 0;
  std::uint64_t left_;
};

/// Accepts connections for a Player.
class AcceptsFor : public Acceptor {
 public:
  explicit AcceptsFor(Player& player) : player_(player) {}
  ChannelHandler* on_accept(std::unique_ptr<Channel> channel) override {
    player_.channel = std::move(channel);
    return &player_;
  }

 private:
  Player& player_;
};

class MuchIsLost : public ::testing::TestWithParam<std::uint64_t> {};

// If three of ten packets are lost in each direction, five of ten round trips fail. If each time-out doubled and sent
// only one packet, the connection would sometimes stand still for three seconds.
TEST_P(MuchIsLost, NoConnectionStandsStillForLong) {
  constexpr std::uint64_t kFrames = 60;
  Random random(GetParam());
  const LinkSettings link{.bytes_per_second = 1.25e8,
                          .latency = std::chrono::microseconds(5 + random.below(100)),
                          .lost = 300,
                          .repeated = static_cast<std::uint32_t>(random.below(30)),
                          .overtaken = static_cast<std::uint32_t>(random.below(100))};
  SimPackets network(GetParam(), link);
  PacketSettings settings;
  settings.seed = GetParam();
  PacketTransport server(network.opener(1), settings, network.time());
  PacketTransport client(network.opener(2), settings, network.time());
  const std::size_t payload_bytes = 1000 + random.below(60'000);
  Player up(payload_bytes, kFrames), down(payload_bytes, kFrames);
  AcceptsFor acceptor(down);
  const auto listener = server.listen({SimPackets::host(1), 0}, acceptor).value();
  up.channel = client.connect(listener->local(), up, 20s);
  up.serve();
  ASSERT_TRUE(network.run_until({&server, &client}, [&] { return down.came > 0; }, 20s)) << "seed " << GetParam();
  Duration longest{};
  TimePoint moved = network.now();
  std::uint64_t before = 0;
  EXPECT_TRUE(network.run_until(
      {&server, &client},
      [&] {
        if (const std::uint64_t came = up.came + down.came; came != before) {
          before = came;
          moved = network.now();
        }
        longest = std::max(longest, network.now() - moved);
        return up.came == kFrames;
      },
      120s))
      << "seed " << GetParam() << ": " << up.came << " of " << kFrames;
  EXPECT_LT(longest, 2500ms) << "seed " << GetParam();  // one seed of two hundred stands still for more than 1.5 s
}

INSTANTIATE_TEST_SUITE_P(Seeds, MuchIsLost, ::testing::Range<std::uint64_t>(1, 101));

/// A receiver that accepts no frame until `willing` is set.
class Reluctant : public ChannelHandler {
 public:
  Placement on_header(Channel&, const FrameHeader& header) override {
    if (!willing) return NotYet{};
    place_.resize(header.payload_bytes);
    return Accept{place_};
  }
  void on_frame(Channel&, const FrameHeader&, std::span<std::byte>) override { ++frames; }
  void on_closed(Channel&, const Error& error) override { ADD_FAILURE() << error.message; }
  bool willing = false;
  std::uint64_t frames = 0;
  std::unique_ptr<Channel> channel;

 private:
  std::vector<std::byte> place_;
};

TEST(Credit, LostCreditIsAskedFor) {
  SimPackets network(3);
  PacketSettings settings;
  settings.seed = 3;
  settings.window_bytes = 64 << 10;
  settings.kept_bytes_max = 64 * kChunkBytes;
  PacketTransport server(network.opener(1), settings, network.time());
  PacketTransport client(network.opener(2), settings, network.time());
  Reluctant reader;
  class One : public Acceptor {
   public:
    explicit One(Reluctant& reader) : reader_(reader) {}
    ChannelHandler* on_accept(std::unique_ptr<Channel> channel) override {
      reader_.channel = std::move(channel);
      return &reader_;
    }

   private:
    Reluctant& reader_;
  } acceptor(reader);
  const auto listener = server.listen({SimPackets::host(1), 0}, acceptor).value();
  Source source(1000, 1000);
  source.channel = client.connect(listener->local(), source, 10s);
  const std::vector<PacketTransport*> both{&server, &client};
  (void)network.run_until(both, [] { return false; }, 300ms);  // fills the window
  ASSERT_NE(reader.channel, nullptr);
  ASSERT_EQ(reader.frames, 0U);

  reader.willing = true;
  network.link().lost = 1000;  // the packet with its new credit is lost
  reader.channel->resume();
  (void)network.run_until(both, [&] { return reader.frames > 0; }, 10ms);
  (void)network.run_until(both, [] { return false; }, 1ms);
  network.link().lost = 0;

  const TimePoint begin = network.now();
  ASSERT_TRUE(network.run_until(both, [&] { return reader.frames == 1000; }, 10s));
  EXPECT_LT(network.now() - begin, 450ms) << "the stream goes on before the next sign of life";
}

}  // namespace
}  // namespace tributary::transport::packet::test
