// A manager that stood still, or whose clock was set, must not end leases or give a number to two groups.
#include <gmock/gmock.h>

#include <array>
#include <future>
#include <set>
#include <thread>

#include "tests/unit/manager/cluster_fixture.h"
#include "tree-manager/service/number_series.h"

namespace tributary::manager {
namespace {

using namespace std::chrono_literals;

class PauseTest : public ClusterFixture {
 protected:
  std::uint64_t group_with_trees() {
    open();
    enlist_all();
    return ask()->descriptor.group;
  }
};

TEST_F(PauseTest, NoLeaseEndsBecauseTheManagerStoodStill) {
  const std::uint64_t id = group_with_trees();
  advance(3s);
  const std::uint64_t held = reserved();
  stand_still(1h);
  ASSERT_TRUE(cluster_->group(id).has_value());
  EXPECT_EQ(cluster_->group(id)->lease_milliseconds_left, 12'000) << "the lease has as much time left as before";
  EXPECT_EQ(cluster_->stats().aggregators_active, 3U);
  EXPECT_EQ(reserved(), held);
  EXPECT_EQ(cluster_->stats().standstills, 1U);
  EXPECT_GE(cluster_->stats().standstill_seconds, 3599);
}

TEST_F(PauseTest, ALeaseEndsOnceTheManagerHasRunForItsLength) {
  const std::uint64_t id = group_with_trees();
  advance(10s);
  stand_still(60s);
  advance(4s);
  EXPECT_TRUE(cluster_->group(id).has_value());
  advance(2s);
  EXPECT_FALSE(cluster_->group(id).has_value());
}

TEST_F(PauseTest, ARenewalThatIsReadBeforeTheFirstTickGetsAnOrdinaryLease) {
  const std::uint64_t id = group_with_trees();
  advance(200ms);
  clock_.advance(1h);
  ASSERT_TRUE(cluster_->renew_group(id).has_value());
  cluster_->tick();
  EXPECT_EQ(cluster_->group(id)->lease_milliseconds_left, 15'000);
  EXPECT_EQ(cluster_->stats().aggregators_active, 3U);
}

TEST_F(PauseTest, AStoreThatHoldsTheManagerUpEndsNoLease) {
  const std::uint64_t id = group_with_trees();
  advance(200ms);
  store_.before_write = [&] { clock_.advance(40s); };
  ASSERT_TRUE(ask().has_value());
  store_.before_write = {};
  cluster_->tick();
  EXPECT_TRUE(cluster_->group(id).has_value());
  EXPECT_EQ(cluster_->stats().aggregators_active, 3U);
}

TEST_F(PauseTest, MemoryThatAMovingGroupHoldsIsKeptOverAStandstill) {
  open("");
  ASSERT_TRUE(enlist("a", "h").has_value());
  ASSERT_TRUE(enlist("b", "h").has_value());
  const std::uint64_t id = ask()->descriptor.group;
  advance(200ms);
  ASSERT_EQ(cluster_->rebuild_group(id, 1, {}, true)->descriptor.epoch, 2U);
  const std::uint64_t both = reserved();
  stand_still(60s);
  EXPECT_EQ(reserved(), both);
}

TEST_F(PauseTest, AWallClockThatIsSetEndsNoLease) {
  const std::uint64_t id = group_with_trees();
  for (const auto step : {std::chrono::hours(100), std::chrono::hours(-200)}) {
    clock_.step_wall(step);
    cluster_->tick();
    EXPECT_TRUE(cluster_->group(id).has_value());
    EXPECT_EQ(cluster_->stats().aggregators_active, 3U);
  }
}

TEST_F(PauseTest, NumbersAreGivenOutOnceWhateverTheWallClockDoes) {
  open();
  enlist_all();
  std::set<std::uint64_t> groups, incarnations;
  // Also set the clock back, so that it shows exactly the same times again.
  constexpr std::array<std::chrono::minutes, 4> kSteps{-60min, 60min, -60min, 10min};
  for (int round = 0; round < 50; ++round) {
    const auto made = ask();
    ASSERT_TRUE(made.has_value());
    EXPECT_TRUE(groups.insert(made->descriptor.group).second) << round;
    // Remove the group and the aggregator at once: the store then keeps only the fact that they existed.
    ASSERT_TRUE(cluster_->remove_group(made->descriptor.group).has_value());
    const auto aggregator = enlist("passing", "agg-leaf-0");
    EXPECT_TRUE(incarnations.insert(aggregator->incarnation).second) << round;
    ASSERT_TRUE(cluster_->remove_aggregator("passing").has_value());
    clock_.step_wall(kSteps[static_cast<std::size_t>(round) % kSteps.size()]);
    if (round % 3 == 0) open();  // restarts the manager
  }
}

TEST_F(PauseTest, ReadersPassWhileTheStoreBlocksAndChangesAreRefused) {
  settings_.patience = 20ms;
  const std::uint64_t id = group_with_trees();
  std::promise<void> begun, ends;
  store_.before_write = [&, ended = ends.get_future().share(), first = true]() mutable {
    if (!std::exchange(first, false)) return;
    begun.set_value();
    ended.wait();
  };
  std::thread writer([&] { EXPECT_TRUE(ask().has_value()) << "the change that waits succeeds"; });
  begun.get_future().wait();
  EXPECT_TRUE(cluster_->group(id).has_value());
  EXPECT_EQ(cluster_->groups().size(), 1U) << "the new group is not there before the store has it";
  EXPECT_EQ(cluster_->aggregators().size(), 3U);
  EXPECT_EQ(cluster_->stats().groups_with_trees, 1U);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(cluster_->renew_group(id).error().code, Errc::retry);
  EXPECT_EQ(cluster_->reload_topology(Topology{}).error().code, Errc::retry) << "a file's topology waits, too";
  cluster_->tick();
  clock_.advance(1h);
  ends.set_value();
  writer.join();
  EXPECT_TRUE(cluster_->renew_group(id).has_value()) << "its lease is longer by the time of the pause";
  EXPECT_EQ(cluster_->groups().size(), 2U);
  EXPECT_EQ(cluster_->stats().standstills, 1U);
}

TEST(NumberSeries, WritesOnceForMany) {
  std::vector<std::uint64_t> promises;
  NumberSeries series(100, [&](std::uint64_t number) {
    promises.push_back(number);
    return Status{};
  });
  for (std::uint64_t i = 0; i < 200; ++i) EXPECT_EQ(series.next(1000), 1000 + i);
  EXPECT_EQ(promises, (std::vector<std::uint64_t>{1100, 1201}));
}

TEST(NumberSeries, GivesNoneOutThatTheStoreDoesNotHave) {
  bool full = true;
  NumberSeries series(100, [&](std::uint64_t) { return full ? Status(fail(Errc::exhausted, "full")) : Status{}; });
  EXPECT_FALSE(series.next(5).has_value());
  full = false;
  EXPECT_EQ(series.next(5), 5U);
}

}  // namespace
}  // namespace tributary::manager
