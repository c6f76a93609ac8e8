// The worker names a child for which the others wait.
#include <gmock/gmock.h>

#include <algorithm>

#include "aggregator/worker/late_causes.h"
#include "aggregator/worker/operation_progress.h"
#include "tests/unit/aggregator/worker_rig.h"
#include "tributary/protocol/rank_troubles.h"

namespace tributary::aggregator::test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

class WorkerStraggler : public WorkerTest {
 protected:
  WorkerSettings noting() {
    return {.on_straggler = [notices = notices_](const StragglerNotice& notice) { notices->push_back(notice); }};
  }
  /// Makes an operation in which rank `late` calls `lag` after the others.
  void operate(const std::vector<Child*>& ranks, std::uint32_t late, std::chrono::milliseconds lag) {
    for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
      if (rank != late) ranks[rank]->contribute(sequence_, kSum, bytes_of(floats(rank, 16, sequence_)));
    }
    network_.run_for(lag);
    ranks[late]->contribute(sequence_, kSum, bytes_of(floats(late, 16, sequence_)));
    ASSERT_TRUE(
        run_until([&] { return std::ranges::all_of(ranks, [&](Child* c) { return c->result_of(sequence_); }); }));
    ++sequence_;
  }

  /// Shared, because workers outlive this member and tell of their lanes' ends.
  std::shared_ptr<std::vector<StragglerNotice>> notices_ = std::make_shared<std::vector<StragglerNotice>>();
  std::uint64_t sequence_ = 0;
};

TEST_F(WorkerStraggler, ALateRankIsNamedOnceAndThenOnTimeAgain) {
  Host& root = aggregator("root", 64U << 20, noting());
  const auto ranks = lane_of(root, 4);
  for (int i = 0; i < 2; ++i) operate(ranks, 2, 812ms);
  ASSERT_EQ(notices_->size(), 1U);
  EXPECT_EQ(notices_->at(0).who, "rank 2");
  EXPECT_EQ(notices_->at(0).others, 3U);
  EXPECT_EQ(notices_->at(0).group, kGroup);
  EXPECT_TRUE(notices_->at(0).late);
  EXPECT_NE(notices_->at(0).cause, LateCause::slow_data);
  EXPECT_EQ(root.worker->metrics().stragglers, 1U);
  const LaneStatus lane = root.worker->lanes().at(0);
  EXPECT_TRUE(lane.of_children.at(2).late);
  EXPECT_EQ(lane.of_children.at(2).cause, LateCause::late_call);
  EXPECT_EQ(lane.of_children.at(1).cause, LateCause::unknown) << "it is not late";
  EXPECT_EQ(lane.of_children.at(2).lag.last, 2U);
  EXPECT_GE(lane.of_children.at(2).lag.longest, 811ms);
  EXPECT_FALSE(lane.of_children.at(1).late);

  for (int i = 0; i < 300; ++i) {
    operate(ranks, static_cast<std::uint32_t>(i % 4), 0ms);
    network_.run_for(100ms);
  }
  ASSERT_EQ(notices_->size(), 2U);
  EXPECT_FALSE(notices_->at(1).late);
  EXPECT_EQ(root.worker->metrics().stragglers, 0U);
}

TEST_F(WorkerStraggler, ARankThatWaitsForAProcessorIsNamedWithThisCause) {
  Host& root = aggregator("root", 64U << 20, noting());
  const auto ranks = lane_of(root, 4);
  FrameHeader word;
  word.type = FrameType::ask;
  word.count = encode(RankWord{.troubles = {.processor_wait = 90}});
  ranks[2]->send(word);
  for (int i = 0; i < 2; ++i) operate(ranks, 2, 812ms);
  ASSERT_EQ(notices_->size(), 1U);
  EXPECT_EQ(notices_->at(0).who, "rank 2");
  EXPECT_EQ(notices_->at(0).cause, LateCause::no_cpu);
  EXPECT_EQ(ranks[2]->alive, 0U) << "the word is no question";
  EXPECT_EQ(root.worker->metrics().asked, 0U);
}

TEST_F(WorkerStraggler, ARankThatDoesNotCallAtAllIsNamedWhileTheOthersWait) {
  Host& root = aggregator("root", 64U << 20, noting());
  const auto ranks = lane_of(root, 4);
  for (std::uint32_t rank = 0; rank < 3; ++rank) ranks[rank]->contribute(0, kSum, bytes_of(floats(rank, 16)));
  network_.run_for(1500ms);
  ASSERT_EQ(notices_->size(), 1U);
  EXPECT_EQ(notices_->at(0).who, "rank 3");
  const LaneStatus lane = root.worker->lanes().at(0);
  EXPECT_THAT(lane.waits_for, ElementsAre("rank 3"));
  EXPECT_GE(lane.waits_since, 1400ms);
  const ChildStatus& late = lane.of_children.at(3);
  EXPECT_EQ(late.rank, 3U);
  EXPECT_EQ(late.operations_behind, 1U);
  EXPECT_EQ(late.waited_for, lane.waits_since);
  EXPECT_GT(late.late_for, 0ms);
  EXPECT_EQ(late.cause, LateCause::silent);
  EXPECT_EQ(lane.of_children.at(0).operations_behind, 0U);
}

TEST_F(WorkerStraggler, ARankThatLivesAndHasNotCalledIsNamedWithThisCause) {
  Host& root = aggregator("root", 64U << 20, noting());
  const auto ranks = lane_of(root, 4);
  for (std::uint32_t rank = 0; rank < 3; ++rank) ranks[rank]->contribute(0, kSum, bytes_of(floats(rank, 16)));
  ASSERT_TRUE(run_until([&] { return ranks[3]->words_wanted > 0; }));
  FrameHeader word;
  word.type = FrameType::ask;
  word.count = encode(RankWord{.idle = true});
  ranks[3]->send(word);
  ASSERT_TRUE(run_until([&] { return !notices_->empty(); }));
  EXPECT_EQ(notices_->at(0).who, "rank 3");
  EXPECT_EQ(notices_->at(0).cause, LateCause::not_called);
  for (std::uint32_t rank = 0; rank < 3; ++rank) EXPECT_EQ(ranks[rank]->words_wanted, 0U) << "rank " << rank;
}

TEST_F(WorkerStraggler, ARankThatDoesNotAnswerIsAskedAFewTimesAndOthersTellWhatTheySee) {
  Host& root = aggregator("root", 64U << 20, noting());
  const auto ranks = lane_of(root, 4);
  for (std::uint32_t rank = 0; rank < 3; ++rank) ranks[rank]->contribute(0, kSum, bytes_of(floats(rank, 16)));
  ASSERT_TRUE(run_until([&] { return ranks[1]->seen_wanted == std::vector<std::uint32_t>{3, 3}; }));
  FrameHeader word;
  word.type = FrameType::ask;
  word.count = encode(Sighting{.processor_wait = 97});
  for (word.segment = 3; word.segment < 100; word.segment += 50) ranks[1]->send(word);
  ASSERT_TRUE(run_until([&] { return !notices_->empty(); }));
  EXPECT_EQ(notices_->at(0).who, "rank 3");
  EXPECT_EQ(notices_->at(0).cause, LateCause::no_cpu);
  network_.run_for(60s);
  EXPECT_EQ(ranks[3]->words_wanted, 1U + LateCauses::kRepeatsMax);
  EXPECT_TRUE(ranks[3]->seen_wanted.empty());
  EXPECT_EQ(ranks[0]->seen_wanted.size(), kWitnessQuestionsMax);
  EXPECT_EQ(root.worker->metrics().asked, 0U);
}

TEST_F(WorkerStraggler, AnAggregatorThatLooksForNobodyNamesNobody) {
  WorkerSettings settings = noting();
  settings.late_ranks = false;
  Host& root = aggregator("root", 64U << 20, settings);
  const auto ranks = lane_of(root, 4);
  for (int i = 0; i < 2; ++i) operate(ranks, 2, 812ms);
  EXPECT_TRUE(notices_->empty());
  EXPECT_EQ(ranks[2]->words_wanted, 0U);
  EXPECT_EQ(root.worker->lanes().at(0).of_children.at(2).lag.contributions, 0U);
}

TEST_F(WorkerStraggler, TheLeafNamesTheRankAndTheRootNamesTheLeaf) {
  Host& left = aggregator("left", 64U << 20, noting());
  Host& right = aggregator("right", 64U << 20, noting());
  Host& root = aggregator("root", 64U << 20, noting());
  const auto ranks = two_levels(left, right, root, 4);
  for (int i = 0; i < 2; ++i) operate(ranks, 6, 900ms);
  std::vector<std::string> who;
  for (const StragglerNotice& notice : *notices_) who.push_back(notice.who);
  EXPECT_THAT(who, testing::UnorderedElementsAre("rank 6", "aggregator right"));
}

TEST_F(WorkerStraggler, TheEndOfTheLaneEndsTheNotice) {
  Host& root = aggregator("root", 64U << 20, noting());
  const auto ranks = lane_of(root, 4);
  for (int i = 0; i < 2; ++i) operate(ranks, 2, 812ms);
  for (Child* rank : ranks) rank->leave();
  network_.run_for(10s);
  ASSERT_EQ(notices_->size(), 2U);
  EXPECT_FALSE(notices_->at(1).late);
  EXPECT_EQ(root.worker->metrics().stragglers, 0U);
}

TEST(OperationProgress, CountsFromTheFirstOperationThatItSaw) {
  OperationProgress progress(3);
  EXPECT_EQ(progress.behind(1), 0U);
  progress.contributed(0, 500);
  progress.contributed(0, 501);
  progress.contributed(1, 500);
  EXPECT_EQ(progress.behind(0), 0U);
  EXPECT_EQ(progress.behind(1), 1U);
  EXPECT_EQ(progress.behind(2), 2U);
}

TEST(OperationProgress, HoldsWithAnyNumbersFromTheNetwork) {
  OperationProgress progress(2);
  progress.contributed(0, UINT64_MAX);
  progress.contributed(1, 0);
  EXPECT_EQ(progress.behind(0), 0U) << "the number after the greatest is 0";
  EXPECT_EQ(progress.behind(1), 0U);
  OperationProgress other(2);
  other.contributed(0, 5);
  other.contributed(0, 3);
  other.contributed(1, UINT64_MAX - 1);
  EXPECT_EQ(other.behind(0), UINT64_MAX - 6);
}

}  // namespace
}  // namespace tributary::aggregator::test
