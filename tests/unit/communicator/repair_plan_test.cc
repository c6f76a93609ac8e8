// Every rank that lacks a result gets it, once, from a rank that already has it; and no rank gets a list of all other
// ranks.
#include "client/recovery/repair_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <random>

namespace tributary::client {
namespace {

constexpr std::uint32_t kPlanWindow = 8;

std::vector<Holdings> random_holdings(std::mt19937& random, std::uint32_t ranks, std::size_t lanes) {
  std::vector<Holdings> all(ranks, Holdings(lanes));
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    const std::uint64_t least = random() % 1000;
    const std::uint64_t spread = random() % (kPlanWindow + 1);
    for (Holdings& holdings : all) holdings[lane].prefix = least + (spread == 0 ? 0 : random() % (spread + 1));
  }
  return all;
}

/// Plays the moves of one lane. Returns the number of ranks through which the farthest result went.
std::uint32_t expect_everyone_gets_all(const std::vector<LaneMoves>& by_rank) {
  std::uint32_t hops_max = 0;
  const std::uint64_t hi = by_rank[0].hi;
  for (std::uint64_t sequence = by_rank[0].lo; sequence < hi; ++sequence) {
    for (std::uint32_t rank = 0; rank < by_rank.size(); ++rank) {
      std::uint32_t at = rank, hops = 0;
      while (by_rank[at].own <= sequence) {
        const auto from = by_rank[at].from;
        EXPECT_TRUE(from && *from < by_rank.size());
        if (!from || ++hops > 64) return UINT32_MAX;
        const auto& to = by_rank[*from].to;
        EXPECT_EQ(std::ranges::count(to, LaneMoves::To{at, by_rank[at].own}), 1) << "both ends agree";
        at = *from;
      }
      hops_max = std::max(hops_max, hops);
    }
  }
  return hops_max;
}

TEST(RepairPlan, GivesEachRankWhatItLacksOnceAndInFewSteps) {
  std::mt19937 random(7);
  for (std::uint32_t ranks : {1U, 2U, 3U, 5U, 8U, 17U, 64U, 100U, 257U}) {
    for (int round = 0; round < 20; ++round) {
      const auto holdings = random_holdings(random, ranks, 2);
      const auto plan = RepairPlan::make(holdings);
      ASSERT_TRUE(plan);
      const std::uint32_t log = std::bit_width(ranks - 1U);
      for (std::size_t lane = 0; lane < 2; ++lane) {
        std::vector<LaneMoves> by_rank;
        std::size_t named = 0;
        for (std::uint32_t rank = 0; rank < ranks; ++rank) {
          by_rank.push_back(plan->for_rank(rank)[lane]);
          ASSERT_EQ(by_rank[rank].own, holdings[rank][lane].prefix);
          ASSERT_LE(by_rank[rank].to.size(), log);
          named += by_rank[rank].to.size();
        }
        ASSERT_LT(named, ranks) << "no rank sends to all others";
        ASSERT_LE(expect_everyone_gets_all(by_rank), log);
      }
    }
  }
}

TEST(RepairPlan, TellsARankNoMoreThanTheLogarithmOfAllRanks) {
  std::vector<Holdings> holdings(32768, Holdings{1000});
  holdings[12345] = Holdings{1032};  // only this rank has a whole window of results
  const auto plan = RepairPlan::make(holdings);
  ASSERT_TRUE(plan);
  std::size_t bytes = 0, most = 0;
  for (std::uint32_t rank = 0; rank < holdings.size(); ++rank) {
    const std::size_t one = encode(plan->for_rank(rank)).size();
    bytes += one;
    most = std::max(most, one);
  }
  EXPECT_LE(most, 300U);
  EXPECT_LE(bytes / holdings.size(), 70U);
}

TEST(RepairPlan, TellsAllRanksOfAResultForOneRank) {
  const auto plan = RepairPlan::make({Holdings{{5, {6, 9}}}, Holdings{8}, Holdings{{6, {7}}}});
  ASSERT_TRUE(plan);
  for (std::uint32_t rank = 0; rank < 3; ++rank)
    EXPECT_EQ(plan->for_rank(rank)[0].wanted, (std::vector<std::uint64_t>{6, 7})) << "nobody has heard of 9";
}

TEST(RepairPlan, GoesFromTheLeastToTheGreatestOfEachLane) {
  const auto plan = RepairPlan::make({{7, 0}, {3, 4}, {5, 1}});
  ASSERT_TRUE(plan);
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    const Moves moves = plan->for_rank(rank);
    EXPECT_EQ(moves[0].lo, 3U);
    EXPECT_EQ(moves[0].hi, 7U);
    EXPECT_EQ(moves[1].lo, 0U);
    EXPECT_EQ(moves[1].hi, 4U);
  }
}

TEST(RepairPlan, RefusesImpossibleHoldings) {
  EXPECT_FALSE(RepairPlan::make({Holdings{1}, Holdings{1, 1}})) << "lanes";
  EXPECT_FALSE(RepairPlan::make({Holdings{{5, {6}}}, Holdings{8}, Holdings{{6, {6}}}})) << "the result has two owners";
}

TEST(FanIn, CountsTheRanksBelowEachOne) {
  for (const std::uint32_t ranks : {1U, 2U, 5U, 64U, 70U, 300U}) {
    for (const std::uint32_t width : {2U, 63U}) {
      const FanIn tree(ranks, ranks / 3, width);
      EXPECT_EQ(tree.subtree(ranks / 3), ranks);
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        std::uint32_t below = 1;
        for (const std::uint32_t child : tree.children(rank)) below += tree.subtree(child);
        EXPECT_EQ(tree.subtree(rank), below) << "rank " << rank << " of " << ranks;
      }
    }
  }
}

TEST(FanIn, ReachesTheRootFromEveryRank) {
  for (const std::uint32_t ranks : {1U, 2U, 5U, 64U, 65U, 300U, 5000U}) {
    for (const std::uint32_t root : {0U, ranks / 2, ranks - 1}) {
      const FanIn tree(ranks, root, 63);
      std::map<std::uint32_t, std::uint32_t> parents;
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        const auto children = tree.children(rank);
        ASSERT_LE(children.size(), 63U);
        ASSERT_TRUE(std::ranges::is_sorted(children));
        for (const std::uint32_t child : children) ASSERT_TRUE(parents.emplace(child, rank).second);
      }
      ASSERT_EQ(parents.size(), ranks - 1);
      ASSERT_FALSE(parents.contains(root));
      for (const auto& [child, parent] : parents) ASSERT_EQ(tree.parent(child), parent);
      ASSERT_TRUE(ranks > 64 || tree.children(root).size() == ranks - 1) << "the root reduces all inputs in one pass";
    }
  }
}

TEST(Moves, AreTheSameAfterWritingAndReading) {
  const Moves moves{{.own = 17, .lo = 16, .hi = 18, .from = 3, .to = {{5, 16}, {6, 17}}, .wanted = {16, 17}},
                    {.own = 4, .lo = 4, .hi = 4}};
  const auto again = decode_moves(encode(moves));
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, moves);
  const Holdings holdings{{17, {18, 20}}, 3};
  const auto held = decode_holdings(encode(holdings));
  ASSERT_TRUE(held);
  EXPECT_EQ(*held, holdings);
  for (const char* wrong : {"", "{}", "[3]", "[[]]", "[[-1]]", "[[5,4]]", "[[5,7,7]]", "[[1.5]]"})
    EXPECT_FALSE(decode_holdings(wrong)) << wrong;
  for (const char* wrong : {"", "{}", "[3]", "[{}]", R"([{"own":1,"lo":1}])", R"([{"own":1,"lo":1,"hi":1,"to":[[1]]}])",
                            R"([{"own":1,"lo":1,"hi":1,"from":-1}])", R"([{"own":1,"lo":1,"hi":1,"wanted":[2,1]}])"})
    EXPECT_FALSE(decode_moves(wrong)) << wrong;
}

}  // namespace
}  // namespace tributary::client
