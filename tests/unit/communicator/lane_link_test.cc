// A rank's end of a lane, and an aggregator that lies: a result out of order, or an unexpected result, ends the lane
// and changes no buffer.
#include "client/collectives/in_network/lane_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "tributary/protocol/numerics.h"
#include "tributary/transport/sim_network.h"

namespace tributary::client {
namespace {

using namespace std::chrono_literals;

constexpr Signature kSum{Collective::all_reduce, DType::int32, ReduceOp::sum, 0, 16};
constexpr Signature kExact{Collective::all_reduce, DType::float32, kExactSum, 0, 6};
constexpr std::uint32_t kWindow = 8;
constexpr std::size_t kOperations = 20;

/// An aggregator that takes contributions and sends the frames that the test chooses.
class LyingAggregator final : public transport::Acceptor, public transport::ChannelHandler {
 public:
  transport::ChannelHandler* on_accept(std::unique_ptr<transport::Channel> channel) override {
    channel_ = std::move(channel);
    return this;
  }
  transport::Placement on_header(transport::Channel&, const FrameHeader& header) override {
    bytes_.resize(header.payload_bytes);
    return transport::Accept{bytes_};
  }
  void on_frame(transport::Channel&, const FrameHeader& header, std::span<std::byte>) override {
    if (header.type == FrameType::ask && tells_word(header.count)) ++words;
    if (header.type == FrameType::contribution) contributions.push_back(header);
    if (header.type == FrameType::join) say({.type = FrameType::ready}, 0);
  }
  void on_closed(transport::Channel&, const Error& error) override { closed = error; }
  void say(FrameHeader header, std::size_t payload_bytes) {
    const std::vector<std::byte> payload(payload_bytes, std::byte{7});
    channel_->send_copy(header, payload);
  }
  /// Returns the result that belongs to a contribution.
  [[nodiscard]] FrameHeader result_of(std::size_t contribution) const {
    FrameHeader result = contributions.at(contribution);
    result.type = FrameType::result;
    result.flags = 0;
    return result;
  }
  std::vector<FrameHeader> contributions;
  std::size_t words = 0;
  std::optional<Error> closed;

 private:
  std::vector<std::byte> bytes_;
  std::unique_ptr<transport::Channel> channel_;
};

/// A rank that starts operations of one segment each.
class Caller final : public LaneUser {
 public:
  explicit Caller(std::size_t operations, const Signature& signature = kSum) {
    for (std::size_t i = 0; i < operations; ++i) {
      auto& o = *operations_.emplace_back(std::make_unique<Operation>());
      buffers_.emplace_back(2 * kSum.count);
      o.number = i;
      o.signature = signature;
      o.segments = 1;
      o.send = reinterpret_cast<const std::byte*>(buffers_.back().data());
      o.recv = reinterpret_cast<std::byte*>(buffers_.back().data() + kSum.count);
    }
  }
  Operation* started_operation(std::uint64_t number) override {
    return number < operations_.size() ? operations_[number].get() : nullptr;
  }
  std::uint64_t first_operation_kept() const override { return 0; }
  void lane_ready(std::uint32_t) override { ready = true; }
  void lane_failed(std::uint32_t, const std::string& why) override { failed = why; }
  transport::TimePoint lane_progress(const Operation&) override { return {}; }
  void lane_fault(const MismatchReport&) override {}
  void segments_finished(Operation& operation) override { ended.push_back(operation.number); }
  bool ready = false;
  std::optional<std::string> failed;
  std::vector<std::uint64_t> ended;

 private:
  std::vector<std::unique_ptr<Operation>> operations_;
  std::vector<std::vector<std::int32_t>> buffers_;
};

class LaneLinkTest : public testing::Test {
 protected:
  explicit LaneLinkTest(bool rates_known = false, bool one_level = true, const Signature& signature = kSum)
      : caller_(kOperations, signature) {
    LaneDescriptor descriptor;
    descriptor.window = kWindow;
    descriptor.segment_bytes = 256;
    descriptor.entries.push_back({.aggregator = {"aggregator", 7471}, .aggregator_name = "aggregator", .tokens = {}});
    const LaneSettings settings{.lane = 0,
                                .rank = 1,
                                .nranks = 2,
                                .group = 9,
                                .epoch = 3,
                                .one_level = one_level,
                                .rates_known = rates_known,
                                .trace = trace_,
                                .troubles = std::make_shared<OwnTroubles>()};
    lane_ = std::make_unique<LaneLink>(caller_, descriptor, settings);
    listener_ = *network_.transport("aggregator").listen({"aggregator", 7471}, aggregator_);
    lane_->connect(network_.transport("rank"), 5s);
    settle();
    lane_->pump({});
    settle();
  }
  void settle() { network_.run_for(10ms); }
  /// Sends the next result, changed by `change`.
  void send_changed(const std::function<void(FrameHeader&, std::size_t&)>& change) {
    FrameHeader result = aggregator_.result_of(lane_->prefix());
    std::size_t bytes = kSum.count * sizeof(std::int32_t);
    change(result, bytes);
    aggregator_.say(result, bytes);
    settle();
  }

  transport::SimNetwork network_;
  LyingAggregator aggregator_;
  std::shared_ptr<SegmentTrace> trace_ = std::make_shared<SegmentTrace>(64);
  Caller caller_;
  std::unique_ptr<transport::Listener> listener_;
  std::unique_ptr<LaneLink> lane_;
};

TEST_F(LaneLinkTest, ATraceHasTheMomentsOfSegments) {
  send_changed([](FrameHeader&, std::size_t&) {});
  trace_->begin(transport::Clock::now() + 1h);
  send_changed([](FrameHeader&, std::size_t&) {});
  const auto recording = trace_->take();
  ASSERT_EQ(recording.events.size(), 2U);
  const SegmentEvent& down = recording.events[0];
  EXPECT_EQ(down.moment, SegmentMoment::came_down);
  EXPECT_EQ(down.sequence, 1U);
  EXPECT_EQ(down.operation, 1U);
  const SegmentEvent& up = recording.events[1];
  EXPECT_EQ(up.moment, SegmentMoment::sent_up);
  EXPECT_EQ(up.sequence, 1U + kWindow);
  for (const SegmentEvent& e : recording.events) {
    EXPECT_EQ(e.group, 9U);
    EXPECT_EQ(e.epoch, 3U);
    EXPECT_EQ(e.lane, 0U);
    EXPECT_EQ(e.member, 1U);
    EXPECT_EQ(e.bytes, kSum.count * sizeof(std::int32_t));
  }
}

TEST_F(LaneLinkTest, AFloodOfQuestionsGetsAFewAnswers) {
  for (int i = 0; i < 10'000; ++i) aggregator_.say({.type = FrameType::alive, .count = kWantsWord}, 0);
  settle();
  EXPECT_GE(aggregator_.words, OwnTroubles::kAnswersMax);
  EXPECT_LE(aggregator_.words, 10 * OwnTroubles::kAnswersMax) << "in some seconds of a busy machine";
}

TEST_F(LaneLinkTest, ContributesAWindowAndTakesResultsInSequence) {
  ASSERT_TRUE(caller_.ready);
  ASSERT_EQ(aggregator_.contributions.size(), kWindow);
  for (std::uint64_t i = 0; i < kOperations - kWindow; ++i) {
    send_changed([](FrameHeader&, std::size_t&) {});
    EXPECT_EQ(lane_->prefix(), i + 1);
    EXPECT_EQ(aggregator_.contributions.size(), i + 1 + kWindow);
  }
  EXPECT_EQ(caller_.ended.size(), kOperations - kWindow);
  EXPECT_FALSE(caller_.failed);
}

class LaneLinkWithRates : public LaneLinkTest {
 protected:
  LaneLinkWithRates() : LaneLinkTest(true) {}
};

TEST_F(LaneLinkWithRates, BeginsWithHalfOfItsReservation) {
  ASSERT_TRUE(caller_.ready);
  EXPECT_EQ(aggregator_.contributions.size(), kWindow / 2);
}

/// Partial sums of 6 float32 fit in 256 bytes, in a tree of several levels.
class LaneLinkOfSeveralLevels : public LaneLinkTest {
 protected:
  LaneLinkOfSeveralLevels() : LaneLinkTest(true, false, kExact) {}
};

TEST_F(LaneLinkOfSeveralLevels, HasAsManyBytesOfShortSegmentsInFlightAsTheLinkNeeds) {
  ASSERT_TRUE(caller_.ready);
  EXPECT_EQ(aggregator_.contributions.size(), kWindow) << "never more than the reservation";
  EXPECT_EQ(aggregator_.contributions[0].payload_bytes, 6 * sizeof(float));
}

struct Lie {
  const char* name;
  std::function<void(FrameHeader&, std::size_t&)> change;
  const char* reason;
};

std::vector<Lie> lies() {
  const char* const kSequence = "a result out of sequence";
  return {
      {"the next but one", [](FrameHeader& h, std::size_t&) { h.sequence += 1; }, kSequence},
      {"the last of the window", [](FrameHeader& h, std::size_t&) { h.sequence += kWindow - 1; }, kSequence},
      {"the same slot, a round later", [](FrameHeader& h, std::size_t&) { h.sequence += kWindow; }, kSequence},
      {"the same entry, two rounds later",
       [](FrameHeader& h, std::size_t&) { h.sequence += std::uint64_t{2} * kWindow; }, kSequence},
      {"one that was there already", [](FrameHeader& h, std::size_t&) { h.sequence -= 1; }, kSequence},
      {"the same slot, a round before", [](FrameHeader& h, std::size_t&) { h.sequence -= kWindow; }, kSequence},
      {"another epoch", [](FrameHeader& h, std::size_t&) { h.epoch += 1; }, "a result of another lane"},
      {"another group", [](FrameHeader& h, std::size_t&) { h.group += 1; }, "a result of another lane"},
      {"another lane", [](FrameHeader& h, std::size_t&) { h.lane += 1; }, "a result of another lane"},
      {"another operation", [](FrameHeader& h, std::size_t&) { h.operation += 1; }, "a result for another operation"},
      {"another segment", [](FrameHeader& h, std::size_t&) { h.segment += 1; }, "a result for another operation"},
      {"another call", [](FrameHeader& h, std::size_t&) { h.op = ReduceOp::max; }, "a result for another operation"},
      {"bare",
       [](FrameHeader& h, std::size_t& bytes) {
         h.flags = frame_flags::kBare;
         bytes = 0;
       },
       "a result without its data"},
      {"too short", [](FrameHeader&, std::size_t& bytes) { bytes -= 4; }, "a result of the wrong length"},
      {"too long", [](FrameHeader&, std::size_t& bytes) { bytes += 4; }, "a result of the wrong length"},
      {"longer than a segment", [](FrameHeader&, std::size_t& bytes) { bytes = 300; }, "a result of the wrong length"},
  };
}

TEST_F(LaneLinkTest, EveryLieAboutAResultEndsTheLaneAndIsNoResult) {
  const std::size_t honest = 5;
  for (const Lie& lie : lies()) {
    SCOPED_TRACE(lie.name);
    // Each case has a lane of its own.
    struct One : LaneLinkTest {
      void TestBody() override {}
      using LaneLinkTest::aggregator_;
      using LaneLinkTest::caller_;
      using LaneLinkTest::lane_;
      using LaneLinkTest::send_changed;
    } one;
    for (std::size_t i = 0; i < honest; ++i) one.send_changed([](FrameHeader&, std::size_t&) {});
    ASSERT_FALSE(one.caller_.failed);
    one.send_changed(lie.change);
    EXPECT_EQ(one.lane_->prefix(), honest);
    EXPECT_EQ(one.caller_.ended.size(), honest);
    ASSERT_TRUE(one.caller_.failed);
    EXPECT_NE(one.caller_.failed->find(lie.reason), std::string::npos) << *one.caller_.failed;
  }
}

TEST_F(LaneLinkTest, AResultThatNobodyContributedToIsRefused) {
  FrameHeader result = aggregator_.result_of(0);
  for (std::size_t i = 0; i < kOperations; ++i) send_changed([](FrameHeader&, std::size_t&) {});
  ASSERT_EQ(lane_->prefix(), kOperations);
  ASSERT_EQ(lane_->contributed(), kOperations);
  result.sequence = result.operation = kOperations;
  aggregator_.say(result, kSum.count * sizeof(std::int32_t));
  settle();
  EXPECT_EQ(lane_->prefix(), kOperations);
  ASSERT_TRUE(caller_.failed);
  EXPECT_NE(caller_.failed->find("a result out of sequence"), std::string::npos) << *caller_.failed;
}

/// An aggregator of another protocol version closes the connection when it reads the join, or answers in frames of its
/// own version.
class OtherVersion final : public transport::Acceptor, public transport::ChannelHandler {
 public:
  explicit OtherVersion(bool answers) : answers_(answers) {}
  transport::ChannelHandler* on_accept(std::unique_ptr<transport::Channel> channel) override {
    channel_ = std::move(channel);
    return this;
  }
  transport::Placement on_header(transport::Channel&, const FrameHeader&) override {
    if (!answers_) return transport::Reject{{Errc::corrupt, "not this version"}};
    FrameHeader ready{.type = FrameType::ready};
    ready.version = kProtocolVersion - 1;
    channel_->send_copy(ready, {});
    return transport::NotYet{};
  }
  void on_frame(transport::Channel&, const FrameHeader&, std::span<std::byte>) override {}
  void on_closed(transport::Channel&, const Error&) override {}

 private:
  bool answers_;
  std::unique_ptr<transport::Channel> channel_;
};

/// Returns the reason that a rank gives for losing a lane to such an aggregator.
std::string lane_ends_because(bool answers) {
  transport::SimNetwork network;
  OtherVersion aggregator(answers);
  Caller caller(1);
  LaneDescriptor descriptor;
  descriptor.window = kWindow;
  descriptor.segment_bytes = 256;
  descriptor.entries.push_back({.aggregator = {"aggregator", 7471}, .aggregator_name = "leaf", .tokens = {}});
  LaneLink lane(caller, descriptor, {.lane = 0, .rank = 1, .nranks = 2, .group = 9, .epoch = 3});
  const auto listener = *network.transport("aggregator").listen({"aggregator", 7471}, aggregator);
  lane.connect(network.transport("rank"), 5s);
  network.run_for(10ms);
  EXPECT_FALSE(caller.ready);
  return caller.failed.value_or("the lane has not failed");
}

TEST(LaneToAnotherVersion, TheReasonSaysThatVersionsMayDiffer) {
  EXPECT_THAT(lane_ends_because(false), testing::HasSubstr("aggregator leaf"));
  EXPECT_THAT(lane_ends_because(false), testing::HasSubstr("runs another version of Tributary"));
  EXPECT_THAT(lane_ends_because(true),
              testing::HasSubstr("its protocol version is not " + std::to_string(kProtocolVersion)));
}

}  // namespace
}  // namespace tributary::client
