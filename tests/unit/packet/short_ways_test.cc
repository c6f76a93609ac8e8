// The short ways for packets of one frame change only how long the code takes. The same run happens with them and
// without them: every datagram, every deadline, every callback and every count must be equal. Virtual time and fixed
// seeds make the two runs comparable to the last bit.
#include <array>
#include <deque>

#include "tests/unit/packet/ends.h"
#include "tests/unit/packet/sealed_keys.h"

namespace tributary::transport::packet::test {
namespace {

using namespace std::chrono_literals;
using transport::test::sealed_keys;

constexpr std::size_t kChildren = 4;
constexpr std::uint64_t kWindowMax = 96;
constexpr std::uint64_t kFrames = 600;

struct Case {
  const char* name;
  LinkSettings link;
  std::uint64_t window = 8;  // window of each child, in segments
  std::size_t window_bytes = 1U << 20;
  bool breaks = false;  // true: again and again no packet arrives for some time
  PacketSecurity security = PacketSecurity::off;
};

/// Records events in their order.
class Story {
 public:
  void tell(std::string_view what, std::uint64_t number, std::span<const std::byte> bytes = {}) {
    lines_.push_back(std::string(what) + " " + std::to_string(number) + " " + std::to_string(hash(bytes)));
  }
  [[nodiscard]] const std::vector<std::string>& lines() const { return lines_; }

 private:
  static std::uint64_t hash(std::span<const std::byte> bytes) {
    std::uint64_t hash = 0xCBF29CE484222325ULL + bytes.size();
    for (const std::byte byte : bytes) hash = (hash ^ static_cast<std::uint64_t>(byte)) * 0x100000001B3ULL;
    return hash;
  }
  std::vector<std::string> lines_;
};

/// Returns mostly the size of one packet; sometimes zero, a few bytes, several packets, or a little more than one
/// packet.
std::size_t bytes_of(std::uint64_t sequence) {
  constexpr std::array<std::size_t, 5> kOdd{0, 40, 300, 5000, 1345};
  return sequence % 9 == 5 ? kOdd[sequence / 9 % kOdd.size()] : 1024;
}

/// A child of a lane. It sends a window of contributions ahead of its results.
class Child : public ChannelHandler {
 public:
  Child(std::uint64_t number, std::uint64_t window, Story& story) : number_(number), window_(window), story_(story) {}
  void on_open(Channel&) override { feed(); }
  Placement on_header(Channel&, const FrameHeader& header) override {
    place_.resize(header.payload_bytes);
    return Accept{place_};
  }
  void on_frame(Channel&, const FrameHeader& header, std::span<std::byte> payload) override {
    EXPECT_EQ(header.sequence, results);
    EXPECT_EQ(payload.size(), bytes_of(results));
    for (const std::byte byte : payload) ASSERT_EQ(byte, static_cast<std::byte>(6 * results + 10));
    ++results;
    story_.tell("result", number_, payload);
    feed();
  }
  void on_sent(Channel&, std::uint64_t cookie) override { story_.tell("child's sent", cookie); }
  void on_closed(Channel&, const Error& error) override { ADD_FAILURE() << error.message; }
  void feed() {
    for (; next_ < std::min(results + window_, kFrames); ++next_) {
      auto& payload = payloads_[next_ % payloads_.size()];
      payload.assign(bytes_of(next_), static_cast<std::byte>(next_ * number_ + number_ + 1));
      ASSERT_TRUE(channel->send(header_of(next_), payload, next_));
    }
  }
  std::uint64_t results = 0;
  std::unique_ptr<Channel> channel;

 private:
  const std::uint64_t number_, window_;
  Story& story_;
  std::uint64_t next_ = 0;
  // The array has twice the window, because a result may come before the acknowledgement.
  std::array<std::vector<std::byte>, 2 * kWindowMax> payloads_;
  std::vector<std::byte> place_;
};

/// Adds up the children's contributions and sends the sum to all children, like a lane. Sometimes it takes a
/// contribution by a copy, or wants no contribution for some time.
class Root : public Acceptor {
 public:
  explicit Root(Story& story) : story_(story) {}
  ChannelHandler* on_accept(std::unique_ptr<Channel> channel) override {
    ends_.push_back(std::make_unique<End>(*this, ends_.size(), std::move(channel)));
    return ends_.back().get();
  }
  void go_on() {
    for (const auto& end : ends_) {
      if (std::exchange(end->stopped, false)) end->channel->resume();
    }
  }

 private:
  struct End : ChannelHandler {
    End(Root& of, std::size_t number_of, std::unique_ptr<Channel> its)
        : root(of), number(number_of), channel(std::move(its)) {}
    bool takes_in_place(Channel&, const FrameHeader& header) override {
      return in_place = header.sequence % 7 != 3 && header.sequence % 50 != 49;
    }
    Placement on_header(Channel&, const FrameHeader& header) override {
      in_place = false;
      if (header.sequence % 50 == 49 && refused < header.sequence) {
        refused = header.sequence;
        stopped = true;
        return NotYet{};
      }
      place.resize(header.payload_bytes);
      return Accept{place};
    }
    void on_frame(Channel&, const FrameHeader& header, std::span<std::byte> payload) override {
      EXPECT_EQ(header.sequence, came++);
      root.story_.tell("contribution", number, payload);
      root.add(header.sequence, payload);
      if (in_place) kept.emplace_back(payload);
      while (kept.size() > header.sequence % 4) {
        channel->give_back(kept.front());
        kept.pop_front();
      }
    }
    void on_sent(Channel&, std::uint64_t cookie) override { root.story_.tell("sent", number * kFrames + cookie); }
    void on_closed(Channel&, const Error& error) override { ADD_FAILURE() << error.message; }
    Root& root;
    const std::size_t number;
    std::unique_ptr<Channel> channel;
    std::uint64_t came = 0, refused = 0;
    bool in_place = false, stopped = false;
    std::vector<std::byte> place;
    std::deque<std::span<const std::byte>> kept;
  };
  struct Slot {
    std::size_t count = 0;
    std::vector<std::byte> sum;
  };
  void add(std::uint64_t sequence, std::span<const std::byte> payload) {
    Slot& slot = slots_[sequence % slots_.size()];
    if (slot.count == 0) slot.sum.assign(payload.size(), std::byte{0});
    ASSERT_EQ(slot.sum.size(), payload.size());
    for (std::size_t i = 0; i < payload.size(); ++i) {
      slot.sum[i] =
          static_cast<std::byte>(std::to_integer<unsigned>(slot.sum[i]) + std::to_integer<unsigned>(payload[i]));
    }
    if (++slot.count < kChildren) return;
    slot.count = 0;
    for (const auto& end : ends_) {
      ASSERT_TRUE(end->channel->send(header_of(sequence, FrameType::result), slot.sum, sequence));
    }
  }

  Story& story_;
  std::vector<std::unique_ptr<End>> ends_;
  std::array<Slot, 2 * kWindowMax> slots_;
};

struct Told {
  Story story;
  PacketStatistics root, children;
};

Told tell(const Case& its, std::uint64_t seed, bool short_ways) {
  Told told;
  SimPackets network(seed, its.link);
  PacketSettings settings{.window_bytes = its.window_bytes, .short_ways = short_ways, .seed = seed};
  if (its.security != PacketSecurity::off) settings.keys = sealed_keys(its.security);
  PacketTransport server(network.opener(1), settings, network.time());
  PacketTransport client(network.opener(2), settings, network.time());
  network.watch = [&](const PacketAddress&, const PacketAddress& to, std::span<const std::byte> bytes) {
    told.story.tell("at", static_cast<std::uint64_t>(network.now().time_since_epoch().count()));
    told.story.tell("datagram", to.port, bytes);
  };
  Root root(told.story);
  const auto listener = server.listen({SimPackets::host(1), 4000}, root).value();
  std::vector<std::unique_ptr<Child>> children;
  for (std::size_t i = 0; i < kChildren; ++i) {
    children.push_back(std::make_unique<Child>(i, its.window, told.story));
    children.back()->channel = client.connect(listener->local(), *children.back(), 10s);
  }
  const auto done = [&] {
    root.go_on();
    if (its.breaks) network.link().lost = network.now().time_since_epoch() / 5ms % 8 == 7 ? 1000 : its.link.lost;
    told.story.tell("deadline", static_cast<std::uint64_t>(server.next_deadline().time_since_epoch().count()));
    told.story.tell("deadline", static_cast<std::uint64_t>(client.next_deadline().time_since_epoch().count()));
    return std::ranges::all_of(children, [](const auto& child) { return child->results == kFrames; });
  };
  EXPECT_TRUE(network.run_until({&server, &client}, done, 300s));
  network.run_until({&server, &client}, [] { return false; }, 100ms);
  told.root = server.statistics();
  told.children = client.statistics();
  return told;
}

/// Returns all counts except the counts of the short and long ways.
std::vector<std::uint64_t> counts(PacketStatistics statistics) {
  statistics.short_sent = statistics.short_received = 0;
  static_assert(sizeof statistics % sizeof(std::uint64_t) == 0);
  std::vector<std::uint64_t> all(sizeof statistics / sizeof(std::uint64_t));
  std::memcpy(all.data(), &statistics, sizeof statistics);
  return all;
}

/// A receiver that takes all frames, without a copy if it can.
class Taker : public Acceptor, public ChannelHandler {
 public:
  ChannelHandler* on_accept(std::unique_ptr<Channel> channel) override {
    channel_ = std::move(channel);
    return this;
  }
  bool takes_in_place(Channel&, const FrameHeader&) override { return true; }
  Placement on_header(Channel&, const FrameHeader& header) override {
    place_.resize(header.payload_bytes);
    return Accept{place_};
  }
  void on_frame(Channel&, const FrameHeader& header, std::span<std::byte> payload) override {
    sequences.push_back(header.sequence);
    bytes += payload.size();
  }
  void on_closed(Channel&, const Error&) override {}
  std::vector<std::uint64_t> sequences;
  std::size_t bytes = 0;

 private:
  std::unique_ptr<Channel> channel_;
  std::vector<std::byte> place_;
};

TEST(ShortWay, DoesNotTakeAPayloadForAFrame) {
  SimPackets network(1);
  PacketTransport server(network.opener(1), {.seed = 1}, network.time());
  PacketTransport client(network.opener(2), {.seed = 2}, network.time());
  Taker taker;
  Source source(0, 0);
  const auto listener = server.listen({SimPackets::host(1), 4000}, taker).value();
  source.channel = client.connect(listener->local(), source, 10s);
  constexpr std::size_t kFirstPiece = 1472 - kPacketHeaderBytes - kFrameHeaderBytes;
  FrameHeader forged = header_of(99);
  forged.payload_bytes = kFirstPiece;  // header and payload together are as long as the second packet
  std::vector<std::byte> payload(5000);
  encode(forged, std::span(payload).subspan<kFirstPiece, kFrameHeaderBytes>());
  for (std::uint64_t i = 0; i < 30; ++i) ASSERT_TRUE(source.channel->send(header_of(i), payload, i));
  EXPECT_TRUE(network.run_until({&server, &client}, [&] { return taker.sequences.size() >= 30; }, 1s));
  for (std::size_t i = 0; i < taker.sequences.size(); ++i) EXPECT_EQ(taker.sequences[i], i);
  EXPECT_EQ(taker.bytes, 30 * payload.size());
}

class ShortWays : public ::testing::TestWithParam<Case> {};

TEST_P(ShortWays, HaveTheSameEffectAsTheLongWay) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const Told with = tell(GetParam(), seed, true);
    const Told without = tell(GetParam(), seed, false);
    ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed;
    const auto& a = with.story.lines();
    const auto& b = without.story.lines();
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
      ASSERT_EQ(a[i], b[i]) << "seed " << seed << " at " << i;
    EXPECT_EQ(a.size(), b.size());
    EXPECT_EQ(counts(with.root), counts(without.root));
    EXPECT_EQ(counts(with.children), counts(without.children));
    EXPECT_EQ(without.root.short_sent + without.root.short_received, 0U);
    if (GetParam().security != PacketSecurity::off) continue;
    EXPECT_GT(with.root.short_sent, kFrames / 4) << "otherwise the test shows nothing";
    EXPECT_GT(with.root.short_received, kFrames / 4);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Networks, ShortWays,
    ::testing::Values(
        Case{"Clean", {}}, Case{"Lossy", {.lost = 20}}, Case{"Overtaking", {.overtaken = 100}},
        Case{"Repeating", {.repeated = 100}}, Case{"Damaging", {.damaged = 30}},
        Case{"Marking", {.bytes_per_second = 2e7, .mark_bytes = 4000}},
        Case{"Narrow", {.bytes_per_second = 1e7, .queue_bytes = 20000}},
        Case{"Everything",
             {.bytes_per_second = 5e7, .mark_bytes = 8000, .lost = 10, .repeated = 20, .overtaken = 50, .damaged = 10}},
        Case{"Breaking", {.overtaken = 20}, 8, 1U << 20, true}, Case{"Wide", {.latency = 200us, .lost = 2}, kWindowMax},
        Case{"WideAndMarking", {.bytes_per_second = 1e8, .mark_bytes = 30000, .latency = 100us}, kWindowMax},
        Case{"ShortOfCredit", {.lost = 5}, 32, 9000},
        Case{.name = "Sealed", .link = {.lost = 10, .overtaken = 50}, .security = PacketSecurity::authenticate},
        Case{.name = "Encrypted", .link = {.lost = 10, .repeated = 50}, .security = PacketSecurity::encrypt}),
    [](const auto& its) { return its.param.name; });

}  // namespace
}  // namespace tributary::transport::packet::test
