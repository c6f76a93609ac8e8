// Ranks that disagree, die, hang or leave: the worker tells the other ranks in time, and keeps no memory for the lane.
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/unit/aggregator/worker_rig.h"

namespace tributary::aggregator::test {
namespace {

using ::testing::HasSubstr;

class WorkerFailure : public WorkerTest {};

TEST_F(WorkerFailure, RanksThatDisagreeAreNamedToAllOfThemWithWhatEachAskedFor) {
  Host& root = aggregator("root");
  const auto ranks = lane_of(root, 3);
  ranks[0]->contribute(0, kSum, bytes_of(floats(0, 16)));
  settle();
  ranks[2]->contribute(0, kMax, bytes_of(floats(2, 16)));
  ASSERT_TRUE(run_until([&] { return std::ranges::all_of(ranks, [](Child* c) { return c->fault.has_value(); }); }));
  for (const Child* rank : ranks) {
    EXPECT_EQ(rank->fault, (MismatchReport{.operation = 0, .rank_a = 0, .rank_b = 2, .a = kSum, .b = kMax}));
    EXPECT_TRUE(rank->results.empty());
  }
  expect_all_given_back(root);
  EXPECT_EQ(root.worker->metrics().faults, 1U);
  EXPECT_EQ(root.worker->metrics().lanes_failed, 0U);
}

TEST_F(WorkerFailure, ADisagreementBelowOneLeafReachesTheRanksOfAllLeaves) {
  Host &left = aggregator("left"), &right = aggregator("right"), &root = aggregator("root");
  const auto ranks = two_levels(left, right, root, 2);
  ranks[2]->contribute(0, kSum, bytes_of(floats(2, 16)));
  ranks[3]->contribute(0, kMax, bytes_of(floats(3, 16)));
  // Frames that are under way at the same time do not change the error that every rank reads.
  for (std::uint64_t sequence = 1; sequence < kWindow; ++sequence) {
    for (Child* rank : ranks) rank->contribute(sequence, kSum, bytes_of(floats(0, 16)));
  }
  ASSERT_TRUE(run_until([&] { return std::ranges::all_of(ranks, [](Child* c) { return c->fault.has_value(); }); }));
  for (const Child* rank : ranks) {
    EXPECT_EQ(rank->fault, ranks[0]->fault);
    EXPECT_EQ(rank->fault->rank_a + rank->fault->rank_b, 5U);
  }
  for (Host* host : {&left, &right, &root}) expect_all_given_back(*host);
}

TEST_F(WorkerFailure, ADisagreementBetweenLeavesNamesTheLowestRankBelowEach) {
  Host &left = aggregator("left"), &right = aggregator("right"), &root = aggregator("root");
  const auto ranks = two_levels(left, right, root, 2);
  for (std::uint32_t rank = 0; rank < 4; ++rank)
    ranks[rank]->contribute(0, rank < 2 ? kSum : kMax, bytes_of(floats(rank, 16)));
  ASSERT_TRUE(run_until([&] { return std::ranges::all_of(ranks, [](Child* c) { return c->fault.has_value(); }); }));
  for (const Child* rank : ranks) EXPECT_EQ(rank->fault->rank_a + rank->fault->rank_b, 2U);
}

TEST_F(WorkerFailure, WhenTheRootDiesWhileAFaultIsUnderWayTheReportStillReachesTheLeafsRanks) {
  Host &left = aggregator("left"), &right = aggregator("right"), &root = aggregator("root");
  const auto ranks = two_levels(left, right, root, 2);
  network_.partition("root");
  ranks[0]->contribute(0, kSum, bytes_of(floats(0, 16)));
  ranks[1]->contribute(0, kMax, bytes_of(floats(1, 16)));
  settle();
  EXPECT_FALSE(ranks[0]->fault.has_value());
  network_.kill("root");
  network_.heal("root");
  EXPECT_TRUE(run_until([&] { return ranks[0]->fault && ranks[1]->fault; }));
}

TEST_F(WorkerFailure, AChildThatDiesFailsTheLaneNamesItAndFreesTheMemory) {
  Host& root = aggregator("root");
  const auto ranks = lane_of(root, 3);
  for (Child* rank : {ranks[0], ranks[1]}) rank->contribute(0, kSum, bytes_of(floats(1, 16)));
  settle();
  network_.kill("rank2");
  ASSERT_TRUE(run_until([&] { return ranks[0]->failed && ranks[1]->failed; }));
  EXPECT_THAT(*ranks[0]->failed, HasSubstr("rank 2 is gone from lane 0 of group 4711 at epoch 3 on aggregator root"));
  EXPECT_EQ(ranks[0]->lost->who, LaneLoss::Who::rank);
  EXPECT_EQ(ranks[0]->lost->rank, 2U);
  expect_all_given_back(root);
  EXPECT_EQ(root.worker->metrics().lanes_failed, 1U);
}

TEST_F(WorkerFailure, WhenAllProcessesOfAGroupDieAtOnceNothingOfItIsKept) {
  Host &left = aggregator("left"), &right = aggregator("right"), &root = aggregator("root");
  const auto ranks = two_levels(left, right, root, 4);
  for (std::uint32_t rank = 0; rank < 5; ++rank) ranks[rank]->contribute(0, kSum, bytes_of(floats(rank, 16)));
  settle();
  EXPECT_GT(root.budget.in_use(), 0U);
  for (int rank = 0; rank < 8; ++rank) network_.kill("rank" + std::to_string(rank));
  for (Host* host : {&left, &right, &root}) expect_all_given_back(*host);
}

TEST_F(WorkerFailure, AChildThatReadsNothingDoesNotKeepTheMemoryOfAFailedLane) {
  Host& root = aggregator("root");
  const auto ranks = lane_of(root, 2);
  network_.pause("rank1");
  for (std::uint64_t s = 0; s < kWindow; ++s) ranks[0]->contribute(s, kSum, bytes_of(floats(0, 16)));
  settle();
  network_.kill("rank0");
  expect_all_given_back(root);
}

TEST_F(WorkerFailure, ADeadLeafFailsTheLaneForTheRanksOfTheOtherLeaf) {
  Host &left = aggregator("left"), &right = aggregator("right"), &root = aggregator("root");
  const auto ranks = two_levels(left, right, root, 2);
  network_.kill("left");
  ASSERT_TRUE(run_until([&] { return ranks[2]->failed && ranks[3]->failed && ranks[0]->closed; }));
  EXPECT_THAT(*ranks[2]->failed, HasSubstr("aggregator left is gone from"));
  EXPECT_EQ(ranks[2]->lost->who, LaneLoss::Who::aggregator);
  EXPECT_EQ(ranks[3]->lost->aggregator, "left");
  expect_all_given_back(right);
  expect_all_given_back(root);
}

TEST_F(WorkerFailure, ADeadRootFailsTheLaneForEverybody) {
  Host &left = aggregator("left"), &right = aggregator("right"), &root = aggregator("root");
  const auto ranks = two_levels(left, right, root, 2);
  network_.kill("root");
  ASSERT_TRUE(run_until([&] { return std::ranges::all_of(ranks, [](Child* c) { return c->failed.has_value(); }); }));
  EXPECT_THAT(*ranks[0]->failed, HasSubstr("the parent of lane 0"));
  for (const Child* rank : ranks) EXPECT_EQ(rank->lost->aggregator, "root");
  expect_all_given_back(left);
}

TEST_F(WorkerFailure, ARootThatHangsIsNamedToTheRanksWithinASecond) {
  Host &left = aggregator("left"), &right = aggregator("right"), &root = aggregator("root");
  const auto ranks = two_levels(left, right, root, 2);
  network_.pause("root");
  for (Child* rank : ranks) rank->contribute(0, kSum, bytes_of(floats(1, 16)));
  ASSERT_TRUE(run_until([&] { return std::ranges::all_of(ranks, [](Child* c) { return c->failed.has_value(); }); },
                        std::chrono::seconds(1)));
  for (const Child* rank : ranks) {
    EXPECT_EQ(rank->lost->aggregator, "root");
    EXPECT_THAT(*rank->failed, HasSubstr("does not answer"));
  }
  EXPECT_EQ(left.worker->metrics().parents_silent, 1U);
  expect_all_given_back(left);
}

TEST_F(WorkerFailure, AParentThatWaitsForAnotherChildIsNeverGivenUp) {
  Host &left = aggregator("left"), &right = aggregator("right"), &root = aggregator("root");
  const auto ranks = two_levels(left, right, root, 1);
  ranks[0]->contribute(0, kSum, bytes_of(floats(0, 16)));
  EXPECT_FALSE(run_until([&] { return ranks[0]->failed.has_value(); }, std::chrono::seconds(60)));
  EXPECT_GT(root.worker->metrics().asked, 100U);
  ranks[1]->contribute(0, kSum, bytes_of(floats(1, 16)));
  EXPECT_TRUE(run_until([&] { return ranks[0]->result_of(0) != nullptr; }));
}

TEST_F(WorkerFailure, AChildsQuestionsAreAnsweredWhileItsLaneWaitsForAnotherChild) {
  Host& root = aggregator("root");
  const auto ranks = lane_of(root, 2);
  ranks[0]->contribute(0, kSum, bytes_of(floats(0, 16)));
  for (int i = 0; i < 5000; ++i) ranks[0]->channel().send_copy({.type = FrameType::ask}, {});
  EXPECT_TRUE(run_until([&] { return ranks[0]->alive > 0; }));
  settle();
  EXPECT_LE(ranks[0]->alive, 5000U);
  ranks[1]->contribute(0, kSum, bytes_of(floats(1, 16)));
  EXPECT_TRUE(run_until([&] { return ranks[0]->result_of(0) != nullptr; })) << "the lane serves the other children";
}

TEST_F(WorkerFailure, AParentThatRefusesIsQuotedToTheRanks) {
  Host &left = aggregator("left"), &right = aggregator("right");
  Host& root = aggregator("root", 100);
  std::vector<Child*> ranks;
  TokenClaims own = claims_of("left", 0, 1);
  own.root = false;
  own.parent_host = "root";
  own.parent_port = kPort;
  Child& rank = child("rank0", left.endpoint(), join_of({own, claims_of("root", 0, 1)}));
  ASSERT_TRUE(run_until([&] { return rank.failed.has_value(); }));
  EXPECT_THAT(*rank.failed, HasSubstr("aggregator root has 100 of 100 bytes left"));
  for (Host* host : {&left, &right, &root}) expect_all_given_back(*host);
}

TEST_F(WorkerFailure, AParentThatIsNotThereFailsTheLaneInTime) {
  Host& left = aggregator("left");
  TokenClaims own = claims_of("left", 0, 1);
  own.root = false;
  own.parent_host = "nowhere";
  own.parent_port = kPort;
  Child& rank = child("rank0", left.endpoint(), join_of({own, claims_of("root", 0, 1)}));
  ASSERT_TRUE(run_until([&] { return rank.failed.has_value(); }));
  EXPECT_THAT(*rank.failed, HasSubstr("nowhere"));
  expect_all_given_back(left);
}

TEST_F(WorkerFailure, LeavingInMidOperationIsAFailure) {
  Host& root = aggregator("root");
  const auto ranks = lane_of(root, 2);
  ranks[0]->contribute(0, kSum, bytes_of(floats(0, 16)));
  ranks[0]->leave();
  ASSERT_TRUE(run_until([&] { return ranks[1]->failed.has_value(); }));
  EXPECT_EQ(*ranks[1]->failed, "rank 0 left in mid-operation [rank-gone]");
  expect_all_given_back(root);
}

// No operation was under way when the rank left. When it closes its connection, the other ranks wait for it.
TEST_F(WorkerFailure, ALeaverThatGoesWhileOthersWaitForASegmentFailsTheLane) {
  Host& root = aggregator("root");
  const auto ranks = lane_of(root, 3);
  ranks[0]->leave();
  settle();
  ranks[1]->contribute(0, kSum, bytes_of(floats(1, 16)));
  settle();
  EXPECT_FALSE(ranks[1]->failed);
  ranks[0]->close();
  ASSERT_TRUE(run_until([&] { return ranks[1]->failed && ranks[2]->failed; }));
  EXPECT_THAT(*ranks[1]->failed, HasSubstr("rank 0 is gone"));
  expect_all_given_back(root);
}

TEST_F(WorkerFailure, ALeaverMayGoBeforeTheOthersLeave) {
  Host& root = aggregator("root");
  const auto ranks = lane_of(root, 3);
  ranks[0]->leave();
  settle();
  ranks[0]->close();
  settle();
  for (const std::size_t r : {1U, 2U}) ranks[r]->leave();
  expect_all_given_back(root);
  EXPECT_EQ(root.worker->metrics().lanes_ended, 1U);
  EXPECT_EQ(root.worker->metrics().lanes_failed, 0U);
}

TEST_F(WorkerFailure, LeavingBeforeTheLaneIsReadyIsAFailureAndNoCrash) {
  Host& root = aggregator("root");
  Child& early = child("rank0", root.endpoint(), join_of({claims_of("root", 0, 2)}));
  early.leave();
  settle();
  early.close();
  settle();
  EXPECT_THAT(refusal_of(root, join_of({claims_of("root", 1, 2)})), HasSubstr("ended"));
  expect_all_given_back(root);
}

TEST_F(WorkerFailure, AChildThatSaysFailedEndsTheLaneWithItsReason) {
  Host& root = aggregator("root");
  const auto ranks = lane_of(root, 2);
  FrameHeader header;
  header.type = FrameType::failed;
  const LaneLoss loss{.who = LaneLoss::Who::aggregator, .aggregator = "elsewhere", .reason = "my cable was cut"};
  ranks[0]->send(header, encode(loss));
  ASSERT_TRUE(run_until([&] { return ranks[1]->failed.has_value(); }));
  EXPECT_EQ(ranks[1]->lost, loss) << "the worker passes the report on unchanged, because rank 0 lives";
  expect_all_given_back(root);
}

TEST_F(WorkerFailure, ABrokenConnectionInMidPayloadFailsTheLane) {
  Host& root = aggregator("root");
  const auto ranks = lane_of(root, 2);
  for (int round = 0; round < 20 && !ranks[0]->failed; ++round) {
    const auto sequence = static_cast<std::uint64_t>(round);
    if (round < kWindow) ranks[1]->contribute(sequence, kSum, bytes_of(floats(1, 16)));
    network_.run_for(std::chrono::microseconds(3));
    if (round == 2) network_.cut(ranks[1]->channel());
  }
  EXPECT_TRUE(run_until([&] { return ranks[0]->failed.has_value(); }));
  expect_all_given_back(root);
}

}  // namespace
}  // namespace tributary::aggregator::test
