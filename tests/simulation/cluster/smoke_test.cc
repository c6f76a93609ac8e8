// A quiet cluster, the failure of one aggregator, and the death of one rank: the stories that docs/protocol.md tells,
// one at a time.
#include <gtest/gtest.h>

#include "cluster.h"

namespace tributary::simulation {
namespace {

using namespace std::chrono_literals;

TEST(Cluster, ReducesThroughATreeWhenNothingFails) {
  for (std::uint32_t levels = 1; levels <= 3; ++levels) {
    Cluster cluster({.seed = levels});
    cluster.manager().levels = levels;
    cluster.add_group(5, 2, {.calls = 30});
    ASSERT_TRUE(cluster.run(60s)) << cluster.describe();
    ASSERT_TRUE(cluster.violations().empty()) << cluster.describe();
    for (auto& rank : cluster.groups()[0]) {
      EXPECT_FALSE(rank->failure()) << cluster.describe();
      EXPECT_EQ(rank->communicator().info().failovers, 0U);
    }
  }
}

TEST(Cluster, GoesOnWhenAnAggregatorIsKilledInMidOperation) {
  Cluster cluster({.seed = 7});
  cluster.manager().levels = 2;
  cluster.add_group(4, 1, {.calls = 200});
  cluster.network().call_at(cluster.network().now() + 8ms, [&] {
    for (auto& a : cluster.aggregators()) a->kill();
  });
  ASSERT_TRUE(cluster.run(60s)) << cluster.describe();
  ASSERT_TRUE(cluster.violations().empty()) << cluster.describe();
  for (auto& rank : cluster.groups()[0]) {
    EXPECT_FALSE(rank->failure()) << cluster.describe();
    EXPECT_GT(rank->communicator().info().bytes_in_network, 0U);
    EXPECT_GT(rank->communicator().info().bytes_fallback, 0U);
  }
}

}  // namespace
}  // namespace tributary::simulation
