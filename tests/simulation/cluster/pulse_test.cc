// Aggregators that hang, ranks that are slow, managers that do not answer: which of these cases the ranks detect, and
// how soon.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/simulation/cluster/cluster.h"

namespace tributary::simulation {
namespace {

using namespace std::chrono_literals;
using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

std::uint64_t failovers(Cluster& cluster) {
  std::uint64_t sum = 0;
  for (const auto& ranks : cluster.groups()) {
    for (const auto& rank : ranks) sum += rank->communicator().info().failovers;
  }
  return sum;
}

// Runs until the first group uses its trees. Its calls take so long that the group is in mid-operation at this time,
// and also when it has new trees.
[[nodiscard]] bool run_until_in_network(Cluster& cluster) {
  auto& ranks = cluster.groups()[0];
  for (auto& rank : ranks) rank->think_max = 2ms;
  auto& network = cluster.network();
  if (!network.run_until(
          [&] {
            return std::ranges::all_of(ranks, [](const auto& rank) { return rank->communicator().info().in_network; });
          },
          network.now() + 10s))
    return false;
  network.run_until([] { return false; }, network.now() + 10ms);  // operations that began between the ranks end
  return true;
}

void expect_well(Cluster& cluster) {
  EXPECT_TRUE(cluster.violations().empty()) << cluster.describe();
  for (const auto& ranks : cluster.groups()) {
    for (const auto& rank : ranks) EXPECT_FALSE(rank->failure()) << cluster.describe();
  }
}

// Any aggregator of a tree of two levels hangs, leaf or root: all ranks go on within a second, the manager gets only
// the name of this aggregator, and the next trees do not contain it.
TEST(Pulse, AHungAggregatorIsFoundByNameWithinASecond) {
  std::uint64_t found = 0;
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Cluster cluster({.seed = seed});
    cluster.manager().levels = 2;
    cluster.add_group(4, 2, {.calls = 400});
    const std::string hung = cluster.aggregators()[seed % 4]->name();
    ASSERT_TRUE(run_until_in_network(cluster)) << cluster.describe();
    cluster.network().pause(hung);
    ASSERT_TRUE(cluster.run(60s)) << cluster.describe();
    expect_well(cluster);
    for (const auto& failed : cluster.manager().told_failed) {
      if (failed.empty()) continue;
      EXPECT_THAT(failed, ElementsAre(hung));
      ++found;
    }
    for (const auto& rank : cluster.groups()[0])
      EXPECT_LT(rank->communicator().info().longest_pause_us, 1'000'000U) << cluster.describe();
  }
  EXPECT_GT(found, 12U) << "the run did not reach the situation under test";
}

// The aggregators answer while they wait for a rank, so the ranks give up no aggregator because of it.
TEST(Pulse, ARankThatStandsStillIsNoHungAggregator) {
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Cluster cluster({.seed = seed});
    cluster.manager().levels = 1 + seed % 3;
    cluster.add_group(5, 2, {.calls = 400, .direct = false});
    auto& network = cluster.network();
    const std::string slow = cluster.groups()[0][seed % 5]->host();
    ASSERT_TRUE(run_until_in_network(cluster)) << cluster.describe();
    network.pause(slow);
    std::uint64_t asked = 0;
    network.call_at(network.now() + 7s, [&] {
      for (auto& aggregator : cluster.aggregators()) asked += aggregator->worker().metrics().asked;
      network.resume(slow);
    });
    ASSERT_TRUE(cluster.run(120s)) << cluster.describe();
    expect_well(cluster);
    EXPECT_EQ(failovers(cluster), 0U) << cluster.describe();
    EXPECT_GT(asked, 20U) << "the run did not reach the situation under test";
    EXPECT_THAT(cluster.manager().told_failed, Each(IsEmpty()));
  }
}

// The test kills an aggregator of any level, instead of letting it hang: the next trees that rank 0 asks for do not
// contain it.
TEST(Pulse, TheFirstNewTreesNeverHaveTheDeadAggregator) {
  std::uint64_t kills = 0;
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Cluster cluster({.seed = seed, .aggregators = 5});
    cluster.manager().levels = 2;
    cluster.add_group(6, 2, {.calls = 400});
    const std::string dead = cluster.aggregators()[seed % 5]->name();
    ASSERT_TRUE(run_until_in_network(cluster)) << cluster.describe();
    const auto& told = cluster.manager().told_failed;
    const std::size_t before = told.size();
    cluster.aggregators()[seed % 5]->kill();
    ASSERT_TRUE(cluster.run(60s)) << cluster.describe();
    expect_well(cluster);
    if (failovers(cluster) == 0) continue;  // the aggregator was in no tree
    ++kills;
    ASSERT_GT(told.size(), before);
    EXPECT_THAT(told[before], ElementsAre(dead));
  }
  EXPECT_GT(kills, 10U) << "the run did not reach the situation under test";
}

TEST(Pulse, ASilentManagerDelaysNoRankForLong) {
  Cluster cluster({.seed = 3});
  cluster.manager().levels = 2;
  cluster.manager().silent = true;
  cluster.add_group(4, 1, {.calls = 20'000, .direct = false});
  auto& ranks = cluster.groups()[0];
  const auto begin = cluster.network().now();
  ASSERT_TRUE(cluster.network().run_until([&] { return ranks[0]->completed() > 0; }, begin + 1s)) << cluster.describe();
  cluster.manager().silent = false;
  ASSERT_TRUE(cluster.network().run_until([&] { return ranks[0]->communicator().info().in_network; }, begin + 20s))
      << cluster.describe();
  ASSERT_TRUE(cluster.run(120s)) << cluster.describe();
  expect_well(cluster);
}

// The ranks begin without the trees, and move to them in mid-operation as soon as they are there.
TEST(Pulse, AnAggregatorThatHangsWhileTreesFormDelaysNoRankForLong) {
  Cluster cluster({.seed = 4, .aggregators = 2});
  cluster.manager().levels = 2;
  cluster.network().pause(cluster.aggregators()[0]->name());
  cluster.add_group(4, 1, {.calls = 20'000, .direct = false});
  auto& ranks = cluster.groups()[0];
  const auto begin = cluster.network().now();
  ASSERT_TRUE(cluster.network().run_until([&] { return ranks[0]->completed() > 0; }, begin + 1s)) << cluster.describe();
  EXPECT_FALSE(ranks[0]->communicator().info().in_network);
  cluster.network().resume(cluster.aggregators()[0]->name());
  ASSERT_TRUE(cluster.network().run_until([&] { return ranks[0]->communicator().info().in_network; }, begin + 1100ms))
      << cluster.describe();
  ASSERT_TRUE(cluster.run(120s)) << cluster.describe();
  expect_well(cluster);
  EXPECT_EQ(cluster.manager().plans, 1U) << "the ranks use the trees that were forming";
}

TEST(Pulse, WhereTheFallbackIsForbiddenTheRanksWaitForTheirTrees) {
  Cluster cluster({.seed = 5, .path = client::PathMode::in_network});
  cluster.manager().levels = 2;
  for (auto& aggregator : cluster.aggregators()) cluster.network().pause(aggregator->name());
  cluster.add_group(4, 1, {.calls = 50, .direct = false});
  cluster.network().call_at(cluster.network().now() + 3s, [&] {
    for (auto& aggregator : cluster.aggregators()) cluster.network().resume(aggregator->name());
  });
  ASSERT_TRUE(cluster.run(60s)) << cluster.describe();
  expect_well(cluster);
}

}  // namespace
}  // namespace tributary::simulation
