// A rank that begins no round is named by the manager and in the log of rank 0 while the other ranks wait for it, and
// no longer when it goes on.
#include <gmock/gmock.h>

#include <filesystem>

#include "tests/system/chaos/watched_cluster.h"

namespace tributary::chaos {
namespace {

class LateRank : public WatchedCluster {
 protected:
  void start(const cli::ClusterShape& shape, const std::string& late_rank, const std::string& path) {
    cluster_ = workshop_.start_cluster(shape, 1);
    ASSERT_NO_FATAL_FAILURE(start_ranks(
        "13",
        {{"TRIBUTARY_TIMEOUT", "60"}, {"TRIBUTARY_LOCAL", "off"}, {"TRIBUTARY_LOG", "info"}, {"TRIBUTARY_PATH", path}},
        {"--world-only", "--pause-rank", late_rank, "--pause-file", pause_file()}));
    if (path == "auto") until([this] { return fleet_->all_in_network(); }, "the group does not move to its tree");
  }
  /// A rank begins no round, between the ranks.
  void pause_between_ranks(const std::string& rank) {
    start({.ranks = kRanks, .aggregators = 1, .levels = 1}, rank, "fallback");
    if (HasFatalFailure()) return;
    until([this] { return rounds() > 3; }, "the ranks do not work");
    std::ofstream(pause_file()) << "pause\n";
    until_quietly([&] { return rank_0_says(": rank " + rank + " on host "); }, "rank 0 does not say who is late");
    EXPECT_TRUE(rank_0_says(" (it has not called the operation); 3 others wait"));
    std::filesystem::remove(pause_file());
    until_quietly([this] { return rank_0_says(" is no longer late"); }, "rank 0 does not say that the rank goes on");
    end();
  }
  [[nodiscard]] std::string pause_file() const { return workshop_.folder() + "/pause"; }
  /// Like until(), but also looks while no rank reports anything.
  void until_quietly(const std::function<bool()>& done, const std::string& otherwise) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(40);
    while (!done() && std::chrono::steady_clock::now() < end) fleet_->listen(std::chrono::milliseconds(50));
    ASSERT_TRUE(done()) << otherwise << "\n" << ask("/v1/groups").dump();
  }
  /// Returns the late ranks that the manager lists for the group.
  [[nodiscard]] nlohmann::json late() const { return ask("/v1/groups").at("groups").at(0).at("late"); }
  [[nodiscard]] bool rank_0_says(const std::string& text) const {
    std::ifstream log(workshop_.folder() + "/rank-0.log");
    return std::string(std::istreambuf_iterator<char>(log), {}).contains(text);
  }
};

TEST_F(LateRank, ARankThatBeginsNoRoundIsNamedUntilItGoesOn) {
  start({.ranks = kRanks, .aggregators = 3, .levels = 2}, "2", "auto");
  if (HasFatalFailure()) return;
  std::ofstream(pause_file()) << "pause\n";
  until_quietly([this] { return !late().empty(); }, "the manager does not know who is late");
  const nlohmann::json named = late();
  EXPECT_EQ(named.size(), 1U) << named;
  EXPECT_EQ(named.at(0).at("rank"), 2);
  EXPECT_EQ(named.at(0).at("host"),
            ask("/v1/groups/" + std::to_string(ask("/v1/groups").at("groups").at(0).at("group").get<std::uint64_t>()))
                .at("hosts")
                .at(2));
  until_quietly([this] { return !late().empty() && late().at(0).at("cause") == "not-called"; },
                "the manager does not know that the rank has not called");
  until_quietly([this] { return rank_0_says(": rank 2 on host "); }, "rank 0 does not say who is late");
  EXPECT_TRUE(rank_0_says("; 3 others wait"));
  std::filesystem::remove(pause_file());
  until_quietly([this] { return rank_0_says(" is no longer late"); }, "rank 0 does not say that the rank goes on");
  EXPECT_TRUE(late().empty()) << late();
  end();
}

TEST_F(LateRank, BetweenTheRanksItIsNamedToo) {
  pause_between_ranks("2");
}

TEST_F(LateRank, BetweenTheRanksRankZeroNamesItself) {
  pause_between_ranks("0");
}

}  // namespace
}  // namespace tributary::chaos
