// Hundreds of silent connections to every port of every rank, also from the address of the ranks: the ranks meet
// nevertheless, and a killed aggregator costs them only a failover, not the job.
#include <fstream>

#include "tests/system/aggregator/raw_socket.h"
#include "tests/system/chaos/faults_seen.h"
#include "tests/system/chaos/silent_flood.h"
#include "tests/system/chaos/trees_in_use.h"
#include "tests/system/chaos/watched_cluster.h"

namespace tributary::chaos {
namespace {

constexpr std::size_t kStrangers = 700;  // strangers at each port: more than a rank has room for

class Strangers : public WatchedCluster {
 protected:
  void SetUp() override { aggregator::test::raise_descriptor_limit(); }

  /// The flood begins before the ranks listen.
  void start() {
    cluster_ = workshop_.start_cluster({.ranks = kRanks, .aggregators = 3, .levels = 2}, 1);
    ASSERT_NO_FATAL_FAILURE(
        start_ranks("7", {{"TRIBUTARY_TIMEOUT", "60"}, {"TRIBUTARY_LOCAL", "off"}, {"TRIBUTARY_LOG", "debug"}}));
    std::vector<pid_t> processes;
    for (const RankState& rank : fleet_->ranks()) processes.push_back(rank.process->pid());
    flood_ = std::make_unique<SilentFlood>(std::move(processes), kStrangers);
  }

  std::unique_ptr<SilentFlood> flood_;
};

TEST_F(Strangers, NeitherKeepRanksFromMeetingNorEndAJobWhoseAggregatorDies) {
  ASSERT_NO_FATAL_FAILURE(start());
  until([this] { return fleet_->all_in_network(); }, "no group moves to its trees");
  until([this] { return flood_->ports_full() >= kRanks && flood_->displaced() > kStrangers; },
        "the strangers do not fill the ranks' waiting rooms");
  for (int kill = 0; kill < 3; ++kill) {
    const auto targets = trees_in_use(*cluster_, *fleet_);
    ASSERT_FALSE(targets.empty());
    const auto& [victim, groups] = *targets.begin();
    const std::uint64_t failovers = failovers_of(groups, *fleet_);
    cluster_->kill(victim);
    until([&, &groups = groups] { return failovers_of(groups, *fleet_) > failovers; }, "nobody noticed the kill");
    const std::uint64_t then = rounds();
    until([&] { return rounds() >= then + 5; }, "the ranks do not go on");
    ASSERT_TRUE(cluster_->restart(victim));
    ASSERT_TRUE(cluster_->wait_until_serving());
    until([this] { return fleet_->all_in_network(); }, "no group returns to its trees");
  }
  std::printf("%llu silent connections were displaced\n", static_cast<unsigned long long>(flood_->displaced()));
  end();
}

}  // namespace
}  // namespace tributary::chaos
