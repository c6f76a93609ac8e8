// An aggregator that was killed, and whose groups have found other trees meanwhile, is used again when it is back: the
// manager says so when leases are renewed, and groups move while they work.
#include <cstdio>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/system/chaos/faults_seen.h"
#include "tests/system/chaos/rank_fleet.h"
#include "tests/system/chaos/workshop.h"
#include "tributary/manager_client/manager_client.h"

namespace tributary::chaos {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

constexpr std::uint32_t kRanks = 4;
constexpr milliseconds kSilenceMax{45'000};
constexpr milliseconds kLimit{60'000};

class ComesBack : public ::testing::Test {
 protected:
  void start(const cli::ClusterShape& shape) {
    cluster_ = workshop_.start_cluster(shape, 1, 1, "group_lease: 3s\nfailed_exclusion: 2s\n");
    stop_file_ = workshop_.folder() + "/stop";
    auto fleet = RankFleet::start(
        {.ranks = kRanks,
         .command = {TRIBUTARY_CHAOS_RANK, "--stop-file", stop_file_, "--seed", "11", "--bytes-max", "65536"},
         .folder = workshop_.folder(),
         .cluster = cluster_.get(),
         .environment = {{"TRIBUTARY_TIMEOUT", "60"}, {"TRIBUTARY_LOCAL", "off"}},
         .host_ids = {}});
    ASSERT_TRUE(fleet.has_value()) << fleet.error().message;
    fleet_ = std::move(*fleet);
    until([this] { return fleet_->all_in_network(); }, "no group gets on its tree");
  }
  void until(const std::function<bool()>& done, const std::string& otherwise) {
    if (HasFatalFailure()) return;
    fleet_->listen(kLimit, [&] { return done() || troubled(); });
    ASSERT_EQ(trouble_, "");
    ASSERT_TRUE(done()) << otherwise << "\n" << ask("/v1/aggregators").dump() << ask("/v1/trees").dump();
  }
  bool troubled() {
    trouble_ = fleet_->trouble(kSilenceMax);
    return !trouble_.empty();
  }
  json ask(const std::string& path) const {
    auto client = manager_client::ManagerClient::create({.url = cluster_->manager_url(), .token = {}});
    auto answer = client->get(path);
    return answer ? *answer : json(answer.error().message);
  }
  /// Of the trees that are planned now.
  std::set<std::string> aggregators_used() const {
    std::set<std::string> names;
    const std::function<void(const json&)> walk = [&](const json& node) {
      if (!node.contains("aggregator")) return;
      names.insert(node.at("aggregator"));
      for (const json& child : node.at("children")) walk(child);
    };
    const json answer = ask("/v1/trees");
    if (!answer.contains("trees")) return names;
    for (const json& tree : answer.at("trees")) walk(tree.at("root"));
    return names;
  }
  std::uint64_t rounds() const {
    std::uint64_t least = UINT64_MAX;
    for (const RankState& rank : fleet_->ranks()) least = std::min(least, rank.last.number);
    return least;
  }
  std::uint64_t returns() const {
    std::uint64_t sum = 0;
    for (const RankState& rank : fleet_->ranks()) {
      for (const GroupReport& group : rank.last.groups) sum += group.returns;
    }
    return sum;
  }

  Workshop workshop_;
  std::string stop_file_, trouble_;
  std::unique_ptr<cli::LocalCluster> cluster_;
  std::unique_ptr<RankFleet> fleet_;
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
  std::ofstream(stop_file_) << "stop\n";
  until([&] { return fleet_->all_ended(); }, "the ranks do not end");
  for (const RankState& rank : fleet_->ranks()) EXPECT_TRUE(rank.done);
}

}  // namespace
}  // namespace tributary::chaos
