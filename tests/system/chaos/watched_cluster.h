#pragma once
// A cluster with working ranks, and the manager's view of it, for tests that wait for a state.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/system/chaos/rank_fleet.h"
#include "tests/system/chaos/workshop.h"
#include "tributary/manager_client/manager_client.h"

namespace tributary::chaos {

class WatchedCluster : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kRanks = 4;

  /// Starts the ranks in `cluster_`, which must run already.
  void start_ranks(const std::string& seed, const cli::Environment& environment,
                   const std::vector<std::string>& more = {}) {
    stop_file_ = workshop_.folder() + "/stop";
    std::vector<std::string> command{TRIBUTARY_CHAOS_RANK, "--stop-file", stop_file_, "--seed", seed,
                                     "--bytes-max",        "65536"};
    command.insert(command.end(), more.begin(), more.end());
    auto fleet = RankFleet::start({.ranks = kRanks,
                                   .command = std::move(command),
                                   .folder = workshop_.folder(),
                                   .cluster = cluster_.get(),
                                   .environment = environment,
                                   .host_ids = {}});
    ASSERT_TRUE(fleet.has_value()) << fleet.error().message;
    fleet_ = std::move(*fleet);
  }
  void until(const std::function<bool()>& done, const std::string& otherwise) {
    if (HasFatalFailure()) return;
    fleet_->listen(std::chrono::seconds(60), [&] { return done() || troubled(); });
    ASSERT_EQ(trouble_, "");
    ASSERT_TRUE(done()) << otherwise << "\n" << ask("/v1/aggregators").dump() << ask("/v1/trees").dump();
  }
  void end() {
    if (HasFatalFailure()) return;
    std::ofstream(stop_file_) << "stop\n";
    until([this] { return fleet_->all_ended(); }, "the ranks do not end");
    for (const RankState& rank : fleet_->ranks()) EXPECT_TRUE(rank.done);
  }

  [[nodiscard]] nlohmann::json ask(const std::string& path) const {
    auto client = manager_client::ManagerClient::create({.url = cluster_->manager_url(), .token = {}});
    auto answer = client->get(path);
    return answer ? *answer : nlohmann::json(answer.error().message);
  }
  /// Visits every node of every tree, with its lane; visits none while the manager does not answer.
  void each_node(const std::function<void(std::size_t lane, const nlohmann::json& node)>& see) const {
    const std::function<void(std::size_t, const nlohmann::json&)> walk = [&](std::size_t lane,
                                                                             const nlohmann::json& node) {
      if (!node.contains("aggregator")) return;
      see(lane, node);
      for (const nlohmann::json& child : node.at("children")) walk(lane, child);
    };
    const nlohmann::json answer = ask("/v1/trees");
    if (!answer.contains("trees")) return;
    for (const nlohmann::json& tree : answer.at("trees")) walk(tree.at("lane"), tree.at("root"));
  }
  [[nodiscard]] std::uint64_t rounds() const {
    std::uint64_t least = UINT64_MAX;
    for (const RankState& rank : fleet_->ranks()) least = std::min(least, rank.last.number);
    return least;
  }
  /// Sums a count over all ranks and their groups.
  [[nodiscard]] std::uint64_t sum(std::uint64_t GroupReport::* count) const {
    std::uint64_t sum = 0;
    for (const RankState& rank : fleet_->ranks()) {
      for (const GroupReport& group : rank.last.groups) sum += group.*count;
    }
    return sum;
  }

  Workshop workshop_;
  std::unique_ptr<cli::LocalCluster> cluster_;
  std::unique_ptr<RankFleet> fleet_;

 private:
  bool troubled() {
    trouble_ = fleet_->trouble(std::chrono::seconds(45));
    return !trouble_.empty();
  }
  std::string stop_file_, trouble_;
};

}  // namespace tributary::chaos
