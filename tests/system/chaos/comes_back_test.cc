// Shows that the manager and the groups hear of the kill of an aggregator, and of its return. Groups use an aggregator
// again when it is back, although they have found other trees: the manager tells groups when they renew leases, and
// they move while they work.
#include <gmock/gmock.h>

#include <set>

#include "tests/system/chaos/faults_seen.h"
#include "tests/system/chaos/watched_cluster.h"

namespace tributary::chaos {
namespace {

class ComesBack : public WatchedCluster {
 protected:
  void start(const cli::ClusterShape& shape) {
    cluster_ = workshop_.start_cluster(shape, 1, 1, "group_lease: 3s\nfailed_exclusion: 2s\n");
    ASSERT_NO_FATAL_FAILURE(start_ranks("11", {{"TRIBUTARY_TIMEOUT", "60"}, {"TRIBUTARY_LOCAL", "off"}}));
    until([this] { return fleet_->all_in_network(); }, "no group moves to its tree");
  }
  /// The aggregators of the trees that the manager would plan now.
  std::set<std::string> aggregators_used() const {
    std::set<std::string> names;
    each_node([&](std::size_t, const nlohmann::json& node) { names.insert(node.at("aggregator")); });
    return names;
  }
  std::uint64_t returns() const { return sum(&GroupReport::returns); }
};

TEST_F(ComesBack, AnAggregatorIsUsedAgainByGroupsThatHaveTreesWithoutIt) {
  start({.ranks = kRanks, .aggregators = 2, .levels = 1});
  if (HasFatalFailure()) return;
  const auto at_first = aggregators_used();
  std::size_t which = 0;
  while (which < cluster_->aggregators() && !at_first.contains(cluster_->name_of(which))) ++which;
  ASSERT_LT(which, cluster_->aggregators());
  const std::string name = cluster_->name_of(which);
  cluster_->kill(which);
  until([&] { return !aggregators_used().contains(name) && fleet_->all_in_network() && returns() > 0; },
        "no trees without it");
  const std::uint64_t before = returns();
  ASSERT_TRUE(cluster_->restart(which));
  until([&] { return aggregators_used().contains(name) && fleet_->all_in_network() && returns() > before; },
        "it is back, and nobody uses it");
  const std::uint64_t then = rounds();
  until([&] { return rounds() >= then + 3; }, "the ranks do not go on");
  until([&] { return faults_not_seen(*cluster_).empty(); }, faults_not_seen(*cluster_));
  end();
}

TEST_F(ComesBack, AJobThatNeedsTreesReportsTheKilledAggregatorAtItsEnd) {
  // The lease outlives the test, so the manager can learn of the kill only from the ranks.
  cluster_ =
      workshop_.start_cluster({.ranks = kRanks, .aggregators = 1, .levels = 1}, 1, 1, "aggregator_lease: 300s\n");
  ASSERT_NO_FATAL_FAILURE(
      start_ranks("12", {{"TRIBUTARY_TIMEOUT", "60"}, {"TRIBUTARY_LOCAL", "off"}, {"TRIBUTARY_PATH", "in-network"}}));
  until([this] { return fleet_->all_in_network(); }, "the groups have no trees");
  const auto state = [this] { return ask("/v1/aggregators/" + cluster_->name_of(0)).value("state", ""); };
  ASSERT_EQ(state(), "active");
  cluster_->kill(0);
  fleet_->listen(std::chrono::seconds(60), [this] { return fleet_->all_ended(); });
  ASSERT_TRUE(fleet_->all_ended()) << "ranks that require trees go on without";
  EXPECT_THAT(fleet_->trouble(std::chrono::seconds(60)), testing::HasSubstr("TRIBUTARY_PATH=in-network"));
  EXPECT_EQ(state(), "suspected") << "the ranks gave their groups back, and knew of the kill";
}

}  // namespace
}  // namespace tributary::chaos
