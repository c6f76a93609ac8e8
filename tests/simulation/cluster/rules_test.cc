// What holds at every moment, whatever the timing: which operations run beside each other, and who is named when rank 0
// is the one that hangs.
#include <gtest/gtest.h>

#include <string>

#include "cluster.h"

namespace tributary::simulation {
namespace {

using namespace std::chrono_literals;

constexpr Signature kOne{Collective::all_reduce, DType::float32, ReduceOp::sum, 0, 16};

/// Every second operation goes between the ranks, whose ways are slow, so that the next one has to wait.
TEST(Rules, NoOperationGoesThroughTheTreeBesideOneBetweenTheRanks) {
  Cluster cluster({.seed = 11, .aggregators = 1});
  cluster.manager().levels = 1;
  constexpr std::uint32_t kCalls = 120;
  cluster.add_group(3, 1, {.calls = kCalls});
  auto& ranks = cluster.groups()[0];
  for (auto& rank : ranks) {
    for (std::size_t i = 0; i < kCalls; ++i)
      rank->other_calls[i] = {
          i % 2 == 0 ? kOne : Signature{Collective::all_to_all, DType::float32, ReduceOp::sum, 0, 16}, false};
    for (auto& other : ranks) {
      if (&other != &rank) cluster.network().set_link(rank->host(), other->host(), {.latency = 2ms, .jitter = 1ms});
    }
  }
  std::uint64_t met = 0;
  const auto all_done = [&] {
    bool done = true;
    for (auto& rank : ranks) {
      done = done && rank->done();
      const auto lanes = rank->communicator().lane_positions();
      if (lanes.empty() || rank->completed() % 2 == 0) continue;
      // The first that has not ended goes between the ranks.
      ++met;
      if (lanes[0].contributed != lanes[0].prefix)
        cluster.violation(rank->host() + ": operation " + std::to_string(rank->completed() + 1) +
                          " has begun on the tree before the one that goes between the ranks has ended");
    }
    return done || !cluster.violations().empty();
  };
  ASSERT_TRUE(cluster.network().run_until(all_done, cluster.network().now() + 60s)) << cluster.describe();
  EXPECT_TRUE(cluster.violations().empty()) << cluster.describe();
  for (auto& rank : ranks) EXPECT_FALSE(rank->failure()) << cluster.describe();
  EXPECT_GT(met, 1000U) << "the test did not meet what it is about";
}

/// Nobody tells the others: each finds out by itself, within its time-out.
TEST(Rules, ARankZeroThatHangsIsNamedByEveryOtherWithinTheTimeOut) {
  for (const bool trees : {false, true}) {
    for (const bool finalizing : {false, true}) {
      SCOPED_TRACE(std::string(trees ? "with" : "without") + " trees, " +
                   (finalizing ? "at the end" : "in an operation"));
      Cluster cluster({.seed = 12});
      cluster.manager().reachable = trees;
      cluster.add_group(4, 1, {.calls = 200, .direct = false});
      auto& ranks = cluster.groups()[0];
      auto& network = cluster.network();
      const std::uint64_t ended = finalizing ? 200 : 60;
      ASSERT_TRUE(network.run_until([&] { return ranks[0]->completed() == ended; }, network.now() + 60s));
      network.pause(ranks[0]->host());
      const auto hangs_at = network.now();
      const auto told = [&] { return ranks[1]->failure() && ranks[2]->failure() && ranks[3]->failure(); };
      // Half a second for what the ranks still do among themselves, and for the tick that looks.
      ASSERT_TRUE(network.run_until(told, hangs_at + cluster.settings().timeout * 21 / 20 + 500ms))
          << cluster.describe();
      for (std::size_t r = 1; r < ranks.size(); ++r) {
        EXPECT_EQ(ranks[r]->failure()->code, Errc::timed_out);
        EXPECT_NE(ranks[r]->failure()->message.find("rank 0 on host g0r0: no answer"), std::string::npos)
            << ranks[r]->failure()->message;
      }
    }
  }
}

}  // namespace
}  // namespace tributary::simulation
