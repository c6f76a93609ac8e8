// Lanes whose children all obey the protocol.
#include <algorithm>
#include <array>
#include <numeric>
#include <random>

#include "tests/unit/aggregator/worker_rig.h"

namespace tributary::aggregator::test {
namespace {

class WorkerReduces : public WorkerTest {};

TEST_F(WorkerReduces, SumsTwoToSixtyFourChildrenInChildOrderWhateverTheOrderOfArrival) {
  std::mt19937 random(3);
  std::uint16_t n = 0;
  for (const std::uint16_t count : std::array<std::uint16_t, 5>{2, 3, 5, 16, 64}) {
    Host& root = aggregator("root" + std::to_string(n++));
    const auto ranks = lane_of(root, count);
    std::vector<std::uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0U);
    for (std::uint64_t sequence = 0; sequence < 3; ++sequence) {
      std::shuffle(order.begin(), order.end(), random);
      std::vector<std::vector<float>> inputs;
      for (std::uint32_t rank = 0; rank < count; ++rank) inputs.push_back(floats(rank, 16, sequence));
      for (const std::uint32_t rank : order) {
        ranks[rank]->contribute(sequence, kSum, bytes_of(inputs[rank]));
        network_.run_for(std::chrono::microseconds(20));
      }
      ASSERT_TRUE(
          run_until([&] { return std::ranges::all_of(ranks, [&](Child* c) { return c->result_of(sequence); }); }));
      for (const Child* rank : ranks) ASSERT_EQ(rank->result_of(sequence)->payload, bytes_of(sum_of(inputs)));
    }
    const WorkerMetrics& metrics = root.worker->metrics();
    EXPECT_EQ(metrics.contributions, 3U * count);
    EXPECT_EQ(metrics.contribution_bytes, 3U * count * 64U);
    EXPECT_EQ(metrics.results, 3U * count);
    EXPECT_EQ(metrics.segments_completed, 3U);
    EXPECT_EQ(metrics.lanes_formed, 1U);
  }
}

TEST_F(WorkerReduces, StreamsManySegmentsThroughTheWindow) {
  Host& root = aggregator("root");
  const auto ranks = lane_of(root, 4);
  constexpr std::uint64_t kSegments = 200;
  std::array<std::uint64_t, 4> sent{};
  const auto pump = [&] {
    bool all_done = true;
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
      const std::uint64_t received = ranks[rank]->results.size();
      while (sent[rank] < kSegments && sent[rank] < received + kWindow) {
        ranks[rank]->contribute(sent[rank], kSum, bytes_of(floats(rank, 16, sent[rank])));
        ++sent[rank];
      }
      all_done = all_done && received == kSegments;
    }
    return all_done;
  };
  ASSERT_TRUE(run_until(pump));
  for (std::uint64_t sequence = 0; sequence < kSegments; ++sequence) {
    const auto expected = bytes_of(
        sum_of({floats(0, 16, sequence), floats(1, 16, sequence), floats(2, 16, sequence), floats(3, 16, sequence)}));
    for (const Child* rank : ranks) ASSERT_EQ(rank->results[sequence].payload, expected) << "segment " << sequence;
  }
}

TEST_F(WorkerReduces, ATreeOfTwoLevelsAddsTheLeavesSumsInOrderAndAveragesAtTheRoot) {
  Host &left = aggregator("left"), &right = aggregator("right"), &root = aggregator("root");
  const auto ranks = two_levels(left, right, root, 3);
  const Signature average{Collective::all_reduce, DType::float32, ReduceOp::avg, 0, 16};
  std::vector<std::vector<float>> inputs;
  for (std::uint32_t rank = 0; rank < 6; ++rank) inputs.push_back(floats(rank, 16));
  for (const std::uint32_t rank : {5U, 0U, 3U, 1U, 4U, 2U}) {
    ranks[rank]->contribute(0, kSum, bytes_of(inputs[rank]));
    ranks[rank]->contribute(1, average, bytes_of(inputs[rank]));
  }
  ASSERT_TRUE(run_until([&] { return std::ranges::all_of(ranks, [](Child* c) { return c->results.size() == 2; }); }));
  const auto sum = sum_of({sum_of({inputs[0], inputs[1], inputs[2]}), sum_of({inputs[3], inputs[4], inputs[5]})});
  std::vector<float> mean = sum;
  for (float& x : mean) x /= 6;
  for (const Child* rank : ranks) {
    EXPECT_EQ(rank->result_of(0)->payload, bytes_of(sum));
    EXPECT_EQ(rank->result_of(1)->payload, bytes_of(mean));
  }
  EXPECT_EQ(root.worker->metrics().contributions, 4U) << "only leaves contribute to the root";
}

// The sum of two ranks is more than float16 holds, and each leaf has three.
TEST_F(WorkerReduces, AnAverageThatFloat16HoldsIsFiniteThoughTheLeavesSumsAreNot) {
  Host &left = aggregator("left"), &right = aggregator("right"), &root = aggregator("root");
  const auto ranks = two_levels(left, right, root, 3);
  const Signature average{Collective::all_reduce, DType::float16, ReduceOp::avg, 0, 16};
  const Bytes largest = bytes_of(std::vector<std::uint16_t>(16, 0x7BFF));
  for (Child* rank : ranks) rank->contribute(0, average, largest);
  ASSERT_TRUE(run_until([&] { return std::ranges::all_of(ranks, [](Child* c) { return c->results.size() == 1; }); }));
  for (const Child* rank : ranks) EXPECT_EQ(rank->result_of(0)->payload, largest);
}

TEST_F(WorkerReduces, ABroadcastFromBelowOneLeafReachesTheRanksOfBoth) {
  Host &left = aggregator("left"), &right = aggregator("right"), &root = aggregator("root");
  const auto ranks = two_levels(left, right, root, 2);
  const Signature broadcast{Collective::broadcast, DType::float32, ReduceOp::sum, 2, 16};
  const Bytes data = bytes_of(floats(2, 16));
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    const bool owns = rank == 2;
    const auto flags = static_cast<std::uint16_t>(owns ? 0 : frame_flags::kBare | frame_flags::kWantsResult);
    ranks[rank]->contribute(0, broadcast, owns ? data : Bytes{}, flags);
  }
  ASSERT_TRUE(run_until([&] { return std::ranges::all_of(ranks, [](Child* c) { return c->results.size() == 1; }); }));
  for (std::uint32_t rank = 0; rank < 4; ++rank)
    EXPECT_EQ(ranks[rank]->result_of(0)->payload, rank == 2 ? Bytes{} : data);
}

TEST_F(WorkerReduces, NoChildIsReadyBeforeAllChildrenOfTheTreeHaveJoined) {
  Host &left = aggregator("left"), &root = aggregator("root");
  TokenClaims own = claims_of("left", 0, 1);
  own.root = false;
  own.ranks = 2;
  own.parent_host = "root";
  own.parent_port = kPort;
  TokenClaims above = claims_of("root", 0, 2);
  above.kind = ChildKind::aggregator;
  Child& below = child("rank0", left.endpoint(), join_of({own, above}));
  settle();
  EXPECT_FALSE(below.ready);
  EXPECT_EQ(left.worker->lanes().at(0).joined, 1U);
  EXPECT_FALSE(left.worker->lanes().at(0).ready);
  Child& direct = child("rank1", root.endpoint(), join_of({claims_of("root", 1, 2)}));
  ASSERT_TRUE(run_until([&] { return below.ready && direct.ready; }));
}

TEST_F(WorkerReduces, SeveralGroupsAndLanesDoNotTouchOneAnother) {
  Host& root = aggregator("root");
  std::vector<Child*> all;
  for (std::uint8_t lane = 0; lane < 2; ++lane) {
    for (std::uint16_t rank = 0; rank < 2; ++rank) {
      TokenClaims claims = claims_of("root", rank, 2);
      claims.lane = lane;
      all.push_back(&child("rank" + std::to_string(rank), root.endpoint(), join_of({claims})));
    }
  }
  ASSERT_TRUE(run_until([&] { return std::ranges::all_of(all, &Child::ready); }));
  FrameHeader header;
  header.type = FrameType::contribution;
  header.group = kGroup;
  header.epoch = kEpoch;
  header.flags = frame_flags::kWantsResult;
  header.set_signature(kSum);
  for (std::uint32_t i = 0; i < 4; ++i) {
    header.lane = static_cast<std::uint8_t>(i / 2);
    all[i]->send(header, bytes_of(floats(i, 16)));
  }
  ASSERT_TRUE(run_until([&] { return std::ranges::all_of(all, [](Child* c) { return c->results.size() == 1; }); }));
  EXPECT_EQ(all[0]->result_of(0)->payload, bytes_of(sum_of({floats(0, 16), floats(1, 16)})));
  EXPECT_EQ(all[3]->result_of(0)->payload, bytes_of(sum_of({floats(2, 16), floats(3, 16)})));
}

TEST_F(WorkerReduces, AnOrderlyLeaveOfAllEndsTheLaneWithoutAFailureAndGivesEverythingBack) {
  Host &left = aggregator("left"), &right = aggregator("right"), &root = aggregator("root");
  const auto ranks = two_levels(left, right, root, 2);
  for (std::uint32_t rank = 0; rank < 4; ++rank) ranks[rank]->contribute(0, kSum, bytes_of(floats(rank, 16)));
  ASSERT_TRUE(run_until([&] { return std::ranges::all_of(ranks, [](Child* c) { return c->results.size() == 1; }); }));
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    ranks[rank]->leave();
    if (rank < 2) settle();  // ranks that leave early wait for no other rank
    if (rank == 0) ranks[rank]->close();
  }
  for (Host* host : {&left, &right, &root}) {
    expect_all_given_back(*host);
    EXPECT_EQ(host->worker->metrics().lanes_ended, 1U);
    EXPECT_EQ(host->worker->metrics().lanes_failed, 0U);
    EXPECT_EQ(host->worker->metrics().joins_refused, 0U);
  }
  for (const Child* rank : ranks) EXPECT_FALSE(rank->failed.has_value());
}

}  // namespace
}  // namespace tributary::aggregator::test
