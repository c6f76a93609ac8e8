// Two flows, one with the short ways and one without, get the same random frames, packets and times. After every step,
// both must have sent the same packets and have the same deadline.
#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "transport/packet/flow.h"
#include "transport/random/random.h"

namespace tributary::transport::packet {
namespace {

using namespace std::chrono_literals;

class KeepingSink final : public PacketSink {
 public:
  bool send_packet(const DataHeader& header, std::span<std::byte> head, std::span<const std::byte> rest) override {
    if (room == 0) return false;
    --room;
    sent.push_back(header.fields());
    sent.back().payload_bytes = static_cast<std::uint16_t>(head.size() - kPacketHeaderBytes + rest.size());
    bytes.insert(bytes.end(), head.begin() + kPacketHeaderBytes, head.end());
    bytes.insert(bytes.end(), rest.begin(), rest.end());
    return true;
  }
  std::size_t room = 0;
  std::vector<PacketHeader> sent;
  std::vector<std::byte> bytes;
};

class TakingReader final : public StreamReader {
 public:
  std::size_t take(std::span<const std::byte> bytes) override { return bytes.size(); }
};

/// A flow and all objects that it needs.
struct Side {
  explicit Side(bool short_ways) : settings{.short_ways = short_ways} { flow.open(9, 50'000, 1472, 0, TimePoint{1h}); }
  bool receive(const Arrival& arrival, TimePoint now) {
    if (!flow.expects(arrival)) return flow.receive(arrival, reader, now);
    flow.take_expected(arrival, now);
    return true;
  }
  PacketSettings settings;
  ChunkPool pool{1U << 20U};
  PacketStatistics statistics;
  Flow flow{settings, pool, statistics};
  KeepingSink sink;
  TakingReader reader;
};

/// Plays the other end of both flows: remembers the packets that it has seen, and acknowledges them.
class Story {
 public:
  explicit Story(std::uint64_t seed) : random_(seed) {}
  void step() {
    now_ += Duration(random_.below(20'000));
    switch (random_.below(8)) {
      case 0:
      case 1:
        return push();
      case 2:
      case 3:
      case 4:
        return transmit();
      case 5:
        return random_.below(40) == 0 ? fall_silent() : tell();
      default:
        return tell();
    }
  }
  void compare() {
    ASSERT_EQ(with_.sink.sent.size(), without_.sink.sent.size());
    for (std::size_t i = 0; i < with_.sink.sent.size(); ++i) {
      ASSERT_EQ(std::memcmp(&with_.sink.sent[i], &without_.sink.sent[i], sizeof(PacketHeader)), 0) << i;
    }
    ASSERT_EQ(with_.sink.bytes, without_.sink.bytes);
    ASSERT_EQ(with_.flow.deadline(), without_.flow.deadline());
    ASSERT_EQ(with_.flow.wants_to_send(now_), without_.flow.wants_to_send(now_));
    ASSERT_EQ(with_.flow.congestion().window(), without_.flow.congestion().window());
    ASSERT_EQ(with_.flow.frames().acknowledged(), without_.flow.frames().acknowledged());
    for (const PacketHeader& header : with_.sink.sent) arrive(header);
    for (Side* side : {&with_, &without_}) {
      side->sink.sent.clear();
      side->sink.bytes.clear();
    }
  }
  [[nodiscard]] const PacketStatistics& counts() const { return with_.statistics; }

 private:
  void push() {
    const std::size_t bytes = random_.below(5) == 0 ? random_.below(4000) : 1024;
    for (auto count = random_.below(6); count > 0; --count) {
      for (Side* side : {&with_, &without_}) side->flow.frames().push_borrowed({}, std::span(payload_).first(bytes), 0);
    }
  }
  void transmit() {
    const auto packets = 1 + random_.below(6);
    const std::size_t room = random_.below(10) == 0 ? random_.below(4) : 100;
    for (Side* side : {&with_, &without_}) {
      side->sink.room = room;
      static_cast<void>(side->flow.transmit(side->sink, packets, now_));
    }
  }
  /// Lets a few time-outs of the flows pass.
  void fall_silent() {
    for (auto count = 1 + random_.below(4); count > 0; --count) {
      now_ = std::max(now_, std::min(with_.flow.deadline(), now_ + 1s));
      for (Side* side : {&with_, &without_}) static_cast<void>(side->flow.on_time(now_));
      transmit();
      compare();
    }
  }
  /// Loses a packet of the flows, or records it at the other end, which does not keep packets that come early.
  void arrive(const PacketHeader& header) {
    const std::uint64_t offset = expand(header.offset, received_);
    if (random_.below(30) == 0 || offset > received_) return;
    seen_.note(header.number);
    received_ = std::max(received_, offset + header.payload_bytes);
  }
  /// Sends a packet from the other end: mostly the next packet, with the next bytes; it may be marked, or overtaken.
  void tell() {
    PacketHeader header;
    header.number = number_++;
    header.payload_bytes = random_.below(3) == 0 ? 0 : 1088;
    header.offset = static_cast<std::uint32_t>(offset_);
    offset_ += header.payload_bytes;
    header.received = static_cast<std::uint32_t>(received_);
    header.credit = random_.below(6) == 0 ? 3000 : 200'000;
    header.flags = seen_.empty() ? std::uint16_t{0} : packet_flags::kAcks;
    header.flags |= random_.below(50) == 0 ? packet_flags::kPing : std::uint16_t{0};
    if (random_.below(3000) == 0) header.flags |= packet_flags::kFin;  // a false end: the sender goes on
    header.largest = static_cast<std::uint32_t>(seen_.largest());
    header.bitmap = seen_.bitmap();
    late_.push_back(header);
    if (random_.below(20) == 0) return;
    if (random_.below(10) == 0) std::swap(late_.front(), late_.back());
    for (; !late_.empty(); late_.pop_front()) {
      const Arrival arrival{.header = late_.front(),
                            .payload = std::span(payload_).first(late_.front().payload_bytes),
                            .marked = random_.below(50) == 0,
                            .at = now_};
      EXPECT_EQ(with_.receive(arrival, now_), without_.receive(arrival, now_));
      for (Side* side : {&with_, &without_}) {
        while (side->flow.frames().next_sent()) continue;
      }
    }
  }

  Random random_;
  Side with_{true}, without_{false};
  TimePoint now_{1h};
  std::vector<std::byte> payload_ = std::vector<std::byte>(5000, std::byte{3});
  ReceivedNumbers seen_;
  std::uint64_t received_ = 0;
  std::uint64_t number_ = 1, offset_ = 0;
  std::deque<PacketHeader> late_;
};

TEST(FlowShortWay, HasTheSameEffectAsTheLongWay) {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  std::uint64_t timeouts = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Story story(seed);
    for (int i = 0; i < 3000; ++i) {
      story.step();
      story.compare();
      ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed << " step " << i;
    }
    sent += story.counts().short_sent;
    received += story.counts().short_received;
    timeouts += story.counts().timeouts;
  }
  EXPECT_GT(sent, 2000U);
  EXPECT_GT(received, 2000U);
  EXPECT_GT(timeouts, 100U);
}

}  // namespace
}  // namespace tributary::transport::packet
