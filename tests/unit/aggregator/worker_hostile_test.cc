// Frames that no honest child sends. The worker goes on after each, other groups do not notice it, and no memory stays
// used.
#include <gmock/gmock.h>

#include <random>

#include "tests/unit/aggregator/worker_rig.h"

namespace tributary::aggregator::test {
namespace {

using ::testing::HasSubstr;

class WorkerHostile : public WorkerTest {
 protected:
  /// Joins two ranks of an honest group, which the worker serves beside the hostile group.
  void SetUp() override {
    root_ = &aggregator("root");
    for (std::uint16_t rank = 0; rank < 2; ++rank) {
      TokenClaims claims = claims_of("root", rank, 2);
      claims.group = kGroup + 1;
      honest_.push_back(&child("honest" + std::to_string(rank), root_->endpoint(), join_of({claims})));
    }
    ASSERT_TRUE(run_until([&] { return honest_[0]->ready && honest_[1]->ready; }));
  }
  void TearDown() override {
    FrameHeader header = contribution(0, kSum);
    header.group = kGroup + 1;
    header.epoch = kEpoch;
    for (std::uint32_t rank = 0; rank < 2; ++rank) honest_[rank]->send(header, bytes_of(floats(rank, 16)));
    ASSERT_TRUE(run_until([&] { return !honest_[0]->results.empty() && !honest_[1]->results.empty(); }));
    EXPECT_EQ(honest_[0]->results[0].payload, bytes_of(sum_of({floats(0, 16), floats(1, 16)})));
    for (Child* rank : honest_) rank->close();
    expect_all_given_back(*root_);
  }
  FrameHeader contribution(std::uint64_t sequence, const Signature& signature) const {
    FrameHeader header;
    header.type = FrameType::contribution;
    header.group = kGroup;
    header.epoch = epoch_;
    header.sequence = header.operation = sequence;
    header.flags = frame_flags::kWantsResult;
    header.set_signature(signature);
    return header;
  }
  /// Returns the error that the honest rank in the hostile rank's lane gets.
  std::string lane_ends_after(const std::function<void(Child&)>& attack) {
    const auto ranks = lane_of(*root_, 2);
    attack(*ranks[0]);
    EXPECT_TRUE(run_until([&] { return ranks[1]->failed.has_value() && ranks[0]->closed.has_value(); }));
    return ranks[1]->failed.value_or("(nothing)");
  }
  void lane_goes_on_after(const std::function<void(Child&)>& attack) {
    const auto ranks = lane_of(*root_, 2);
    attack(*ranks[0]);
    settle();
    for (std::uint32_t rank = 0; rank < 2; ++rank) ranks[rank]->contribute(0, kSum, bytes_of(floats(rank, 16)));
    ASSERT_TRUE(run_until([&] { return ranks[0]->results.size() == 1 && ranks[1]->results.size() == 1; }));
    EXPECT_EQ(ranks[1]->results[0].payload, bytes_of(sum_of({floats(0, 16), floats(1, 16)})));
    for (Child* rank : ranks) rank->leave();
  }

  Host* root_ = nullptr;
  std::vector<Child*> honest_;
};

TEST_F(WorkerHostile, EveryTypeOfFrameBeforeAJoinClosesTheConnection) {
  for (unsigned type = 0; type < 256; ++type) {
    FrameHeader header;
    header.type = static_cast<FrameType>(type);
    if (to_string(header.type) == "unknown" || header.type == FrameType::join) continue;
    Child& stranger = child("stranger", root_->endpoint(), {});
    stranger.send(header);
    ASSERT_TRUE(run_until([&] { return stranger.closed.has_value(); }, std::chrono::seconds(1)))
        << to_string(header.type);
  }
}

TEST_F(WorkerHostile, FramesThatNoChildSendsEndTheLane) {
  for (const FrameType type : {FrameType::join, FrameType::ready, FrameType::alive, FrameType::refuse,
                               FrameType::result, FrameType::hello, FrameType::peer_data}) {
    const auto told = lane_ends_after([&](Child& hostile) {
      FrameHeader header;
      header.type = type;
      hostile.send(header);
    });
    EXPECT_THAT(told, HasSubstr("which no child sends")) << to_string(type);
    next_epoch();
  }
}

TEST_F(WorkerHostile, AContributionOfTheWrongLengthEndsTheLane) {
  const auto too_long = [&](Child& hostile) { hostile.send(contribution(0, kSum), Bytes(kSegmentBytes + 4)); };
  EXPECT_THAT(lane_ends_after(too_long), HasSubstr("contribution of the wrong length"));
  next_epoch();
  const auto half = [&](Child& hostile) { hostile.send(contribution(0, kSum), Bytes(7)); };
  EXPECT_THAT(lane_ends_after(half), HasSubstr("contribution of the wrong length"));
}

TEST_F(WorkerHostile, AContributionBeyondTheWindowEndsTheLane) {
  EXPECT_THAT(lane_ends_after([&](Child& hostile) { hostile.send(contribution(kWindow, kSum), Bytes(64)); }),
              HasSubstr("contribution beyond the window"));
}

TEST_F(WorkerHostile, AContributionBeforeTheLaneIsReadyEndsTheLane) {
  const auto joins = [&](std::uint16_t number) -> Child& {
    return child("rank" + std::to_string(number), root_->endpoint(), join_of({claims_of("root", number, 3)}));
  };
  Child &hostile = joins(0), &honest = joins(1);
  settle();
  hostile.contribute(0, kSum, bytes_of(floats(0, 16)));
  settle();
  Child& last = joins(2);
  ASSERT_TRUE(run_until([&] { return honest.failed.has_value(); }));
  EXPECT_THAT(*honest.failed, HasSubstr("contribution before the lane is ready"));
  EXPECT_EQ(root_->worker->metrics().frames_refused, 1U);
  settle();
  last.close();
}

TEST_F(WorkerHostile, DataWhereThePatternHasNoneEndsTheLane) {
  const auto bare_sum = [&](Child& hostile) {
    FrameHeader header = contribution(0, kSum);
    header.flags |= frame_flags::kBare;
    hostile.send(header);
  };
  EXPECT_THAT(lane_ends_after(bare_sum), HasSubstr("does not fit its collective"));
}

TEST_F(WorkerHostile, DuplicatesAndStaleEpochsChangeNothing) {
  lane_goes_on_after([&](Child& hostile) {
    FrameHeader stale = contribution(0, kMax);
    stale.epoch = epoch_ - 1;
    hostile.send(stale, Bytes(kSegmentBytes));
    FrameHeader foreign = contribution(0, kMax);
    foreign.group = kGroup + 1;
    hostile.send(foreign, Bytes(kSegmentBytesMax));
  });
  EXPECT_EQ(root_->worker->metrics().frames_dropped, 2U);
}

TEST_F(WorkerHostile, ARepeatedContributionIsCountedOnce) {
  const auto ranks = lane_of(*root_, 2);
  for (int i = 0; i < 3; ++i) ranks[0]->contribute(0, kSum, bytes_of(floats(0, 16)));
  settle();
  ranks[1]->contribute(0, kSum, bytes_of(floats(1, 16)));
  ASSERT_TRUE(run_until([&] { return ranks[0]->results.size() == 1 && ranks[1]->results.size() == 1; }));
  ranks[1]->contribute(0, kSum, bytes_of(floats(1, 16)));
  settle();
  EXPECT_EQ(ranks[0]->results.size(), 1U);
  EXPECT_EQ(ranks[0]->results[0].payload, bytes_of(sum_of({floats(0, 16), floats(1, 16)})));
  EXPECT_EQ(root_->worker->metrics().frames_dropped, 3U);
  for (Child* rank : ranks) rank->leave();
}

TEST_F(WorkerHostile, AMalformedFaultReportEndsTheLane) {
  const auto attack = [&](Child& hostile) {
    FrameHeader header;
    header.type = FrameType::fault;
    hostile.send(header, Bytes(kMismatchReportBytes, std::byte{0xFF}));
  };
  EXPECT_THAT(lane_ends_after(attack), HasSubstr("malformed fault report"));
}

TEST_F(WorkerHostile, AChildThatLeavesTwiceDoesNotEndTheLaneForTheOthers) {
  const auto ranks = lane_of(*root_, 3);
  ranks[0]->leave();
  ranks[0]->leave();
  ranks[0]->leave();
  settle();
  EXPECT_FALSE(ranks[1]->closed.has_value());
  EXPECT_EQ(root_->worker->metrics().lanes_ended, 0U);
  ranks[1]->leave();
  ranks[2]->leave();
  EXPECT_TRUE(run_until([&] { return root_->worker->metrics().lanes_ended == 1; }));
}

TEST_F(WorkerHostile, RandomFramesAfterAValidJoinNeverHarmOthers) {
  std::mt19937 random(17);
  for (int round = 0; round < 200; ++round) {
    const auto ranks = lane_of(*root_, 2);
    for (int i = 0; i < 12; ++i) {
      FrameHeader header = contribution(random() % 6, random() % 6 == 0 ? kMax : kSum);
      if (random() % 4 == 0) header.type = static_cast<FrameType>(random() % 9);
      header.flags = static_cast<std::uint16_t>(random() % 4);
      header.epoch += random() % 6 == 0 ? 1U : 0U;
      header.collective = static_cast<Collective>(random() % 8 == 0 ? random() % kCollectiveCount : 0);
      const std::uint32_t limit = std::min(payload_bytes_max(header.type), 2 * kSegmentBytes);
      const std::size_t bytes = random() % 2 == 0 ? std::min(64U, limit) : random() % (limit + 1);
      if (ranks[static_cast<std::size_t>(i) % 2]->channel().closed() || to_string(header.type) == "unknown") continue;
      ranks[static_cast<std::size_t>(i) % 2]->send(header, Bytes(bytes));
      network_.run_for(std::chrono::microseconds(random() % 20));
    }
    for (Child* rank : ranks) rank->close();
    settle();
    next_epoch();
  }
}

}  // namespace
}  // namespace tributary::aggregator::test
