// Trees that are lost when some ranks have results that other ranks lack, in groups so large that missing results
// travel through other ranks.
#include <gtest/gtest.h>

#include "tests/simulation/cluster/cluster.h"
#include "tributary/protocol/numerics.h"

namespace tributary::simulation {
namespace {

using namespace std::chrono_literals;

/// Runs one group several times; its trees are lost a little later each time. Returns the number of repair frames.
std::uint64_t repairs(std::uint32_t ranks, Collective collective, std::uint64_t lives, std::uint32_t calls = 24,
                      std::optional<ReduceOp> exactly = {}) {
  std::uint64_t frames = 0;
  for (std::uint64_t seed = 1; seed <= lives; ++seed) {
    // Segments of forms are short; here an operation has a few of them, as the others do.
    ClusterSettings settings{.seed = seed, .aggregators = 3, .window = 8, .segment_bytes = exactly ? 8192U : 256U};
    settings.network.link = {.latency = 20us, .jitter = 400us, .bytes_per_second = 200'000'000};
    Cluster cluster(settings);
    cluster.manager().fan_out = 64;
    // A third of the ranks is far from the aggregators, and so gets results later than the other ranks.
    for (auto rank = static_cast<std::uint32_t>(seed % 3); rank < ranks; rank += 3) {
      for (auto& a : cluster.aggregators())
        cluster.network().set_link(a->name(), "g0r" + std::to_string(rank), {.latency = 1ms, .jitter = 1ms});
    }
    cluster.add_group(ranks, 1 + seed % 2,
                      {.calls = calls, .count_max = ranks > 9 ? 100U : 600U, .only = collective, .exactly = exactly});
    // Wait until all ranks are there; then lose the trees at a moment that differs from run to run.
    std::function<void()> watch = [&] {
      if (!cluster.groups()[0][0]->communicator().info().in_network)
        return cluster.network().call_at(cluster.network().now() + 100us, watch);
      cluster.network().call_at(cluster.network().now() + 1ms + 730us * (seed % 12), [&] {
        for (auto& a : cluster.aggregators()) a->kill();
      });
    };
    cluster.network().call_at(cluster.network().now() + 100us, watch);
    EXPECT_TRUE(cluster.run(60s)) << "seed " << seed << "\n" << cluster.describe();
    EXPECT_TRUE(cluster.violations().empty()) << "seed " << seed << "\n" << cluster.describe();
    for (auto& rank : cluster.groups()[0]) EXPECT_FALSE(rank->failure()) << "seed " << seed;
    frames += cluster.network().statistics().of(FrameType::repair).frames;
    if (testing::Test::HasFailure()) break;
  }
  return frames;
}

TEST(Repairs, PassOnResultsThatAllRanksNeed) {
  EXPECT_GT(repairs(9, Collective::all_reduce, 40), 100U);
  EXPECT_GT(repairs(70, Collective::all_reduce, 6), 50U);
}

TEST(Repairs, PassOnDataThatOneRankHasSent) {
  EXPECT_GT(repairs(9, Collective::broadcast, 40), 100U);
  EXPECT_GT(repairs(70, Collective::all_gather, 3), 50U);
}

/// Rank 0 tells a rank about these members only when it asks.
TEST(ManyRanks, AskRankZeroForTheAddressesThatTheyNeed) {
  Cluster cluster({.seed = 3, .aggregators = 0});
  cluster.add_group(70, 1, {.calls = 12, .count_max = 20});
  ASSERT_TRUE(cluster.run(60s)) << cluster.describe();
  EXPECT_TRUE(cluster.violations().empty()) << cluster.describe();
  for (auto& rank : cluster.groups()[0]) EXPECT_FALSE(rank->failure());
  const auto questions = cluster.network().statistics().of(FrameType::whereabouts).frames;
  EXPECT_GT(questions, 70U) << "the run did not reach the situation under test";
  EXPECT_LT(questions, 70U * 20U);
}

TEST(ManyRanks, NameTheHostOfALostRank) {
  Cluster cluster({.seed = 4, .aggregators = 0});
  cluster.add_group(70, 1, {.calls = 400, .count_max = 20, .only = Collective::all_reduce});
  auto& ranks = cluster.groups()[0];
  cluster.network().call_at(cluster.network().now() + 4ms, [&] {
    for (std::uint32_t r = 0; r < 70; ++r) {  // not from rank 0, which would know the loss first
      if (r != 0 && r != 40) cluster.network().cut(ranks[40]->host(), ranks[r]->host());
    }
  });
  ASSERT_TRUE(cluster.run(60s)) << cluster.describe();
  for (auto& rank : ranks) {
    ASSERT_TRUE(rank->failure());
    EXPECT_NE(rank->failure()->message.find(" on host g0r"), std::string::npos) << rank->failure()->message;
  }
}

TEST(Repairs, ComputeResultsForASingleRankAgain) {
  EXPECT_GT(repairs(9, Collective::reduce, 40), 16U);
  EXPECT_GT(repairs(70, Collective::reduce_scatter, 8, 8), 69U)
      << "inputs pass through other ranks, because more than 63 ranks have an input";
}

TEST(Repairs, ComputeExactResultsForASingleRankAgain) {
  for (const ReduceOp op : {kExactSum, kExactAverageOfHosts}) {
    EXPECT_GT(repairs(9, Collective::reduce, 20, 24, op), 16U) << static_cast<int>(op);
    EXPECT_GT(repairs(70, Collective::reduce_scatter, 8, 8, op), 69U) << "forms of several ranks' inputs are sent on";
  }
}

}  // namespace
}  // namespace tributary::simulation
