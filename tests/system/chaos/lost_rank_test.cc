// If a rank is killed or hangs while its peers wait, every other rank gets an error that names it. An aggregator that
// hangs causes no error.
#include <gmock/gmock.h>

#include <algorithm>
#include <csignal>
#include <fstream>

#include "tests/system/chaos/faults_seen.h"
#include "tests/system/chaos/rank_fleet.h"
#include "tests/system/chaos/trees_in_use.h"
#include "tests/system/chaos/workshop.h"

namespace tributary::chaos {
namespace {

using std::chrono::milliseconds;
using testing::AnyOf;
using testing::HasSubstr;

constexpr std::uint32_t kRanks = 4;
constexpr std::uint64_t kRoundsBefore = 10;
constexpr int kExitError = 3;  // exit code of chaos_rank
/// The ranks' time-out, also for their meeting: a slow machine needs more time.
constexpr std::uint64_t kTimeoutSeconds = 4;
std::uint64_t timeout_seconds() {
  return number_from_environment("TRIBUTARY_LOST_RANK_TIMEOUT", kTimeoutSeconds);
}
/// Lengthens a limit of this test in step with the ranks' time-out, for slow machines.
milliseconds patience(milliseconds usual) {
  return usual * std::max(timeout_seconds(), kTimeoutSeconds) / kTimeoutSeconds;
}

/// The hosts of the ranks: one host for each rank, or two hosts, each with a leader (rank 0 or 2) and one more
/// rank.
enum class Together : std::uint8_t { not_at_all, two_by_two };

class LostRank : public testing::TestWithParam<Together> {
 protected:
  void start(bool with_service, std::uint64_t timeout = timeout_seconds()) {
    if (with_service) cluster_ = workshop_.start_cluster({.ranks = kRanks, .aggregators = 3, .levels = 2}, 2);
    stop_file_ = workshop_.folder() + "/stop";
    std::vector<std::string> host_ids;
    for (std::uint32_t rank = 0; rank < kRanks && GetParam() == Together::two_by_two; ++rank)
      host_ids.push_back("worker-" + std::to_string(rank / 2 * 2));
    auto fleet =
        RankFleet::start({.ranks = kRanks,
                          .command = {TRIBUTARY_CHAOS_RANK, "--stop-file", stop_file_, "--world-only"},
                          .folder = workshop_.folder(),
                          .cluster = cluster_.get(),
                          .environment = {{"TRIBUTARY_TIMEOUT", std::to_string(timeout)},
                                          {"TRIBUTARY_LOG", "debug"},
                                          {"TRIBUTARY_HOST_ID", "somewhere"},
                                          // this test is about trees and the fallback
                                          {"TRIBUTARY_LOCAL", GetParam() == Together::not_at_all ? "off" : "auto"}},
                          .host_ids = std::move(host_ids)});
    ASSERT_TRUE(fleet) << fleet.error().message;
    fleet_ = std::move(*fleet);
    ASSERT_NO_FATAL_FAILURE(run_for(kRoundsBefore));
    if (with_service) {
      fleet_->listen(patience(milliseconds(10'000)), [this] { return fleet_->all_in_network(); });
      ASSERT_TRUE(fleet_->all_in_network());
      fleet_->listen(patience(milliseconds(10'000)), [this] { return faults_not_seen(*cluster_).empty(); });
      EXPECT_EQ(faults_not_seen(*cluster_), "");
    }
  }

  void run_for(std::uint64_t rounds) {
    const std::uint64_t goal = fleet_->rank(0).last.number + rounds;
    fleet_->listen(patience(milliseconds(60'000)), [&] {
      trouble_ = fleet_->trouble(patience(milliseconds(50'000)));
      return fleet_->rank(0).last.number >= goal || !trouble_.empty();
    });
    ASSERT_EQ(trouble_, "");
    ASSERT_GE(fleet_->rank(0).last.number, goal);
  }

  [[nodiscard]] bool others_ended(std::size_t lost) {
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      if (rank != lost && (fleet_->rank(rank).output >= 0 || !fleet_->rank(rank).process->poll())) return false;
    }
    return true;
  }

  void expect_errors_that_name(std::size_t lost, std::chrono::milliseconds limit) {
    const std::uint64_t begin = now_us();
    fleet_->listen(limit, [&] { return others_ended(lost); });
    ASSERT_TRUE(others_ended(lost)) << "some rank is still waiting:\n" << fleet_->trouble(milliseconds(0));
    std::printf("every other rank had its error after %.1f s\n", static_cast<double>(now_us() - begin) / 1e6);
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      if (rank == lost) continue;
      const RankState& other = fleet_->rank(rank);
      EXPECT_EQ(other.process->status()->code, kExitError) << to_string(*other.process->status());
      EXPECT_THAT(other.trouble, HasSubstr("rank " + std::to_string(lost) + " on "));
      // A message is not one of the counted operations, so the error names it by its kind.
      EXPECT_THAT(other.trouble, AnyOf(HasSubstr("operation "), HasSubstr("send of "), HasSubstr("recv of ")));
      std::printf("rank %zu: %s\n", rank, other.trouble.c_str());
    }
  }

  Workshop workshop_;
  std::string stop_file_;
  std::string trouble_;
  std::unique_ptr<cli::LocalCluster> cluster_;
  std::unique_ptr<RankFleet> fleet_;
};

TEST_P(LostRank, KilledOnTheTreeIsAnErrorOnEveryOtherRank) {
  ASSERT_NO_FATAL_FAILURE(start(true));
  fleet_->rank(2).process->kill();
  expect_errors_that_name(2, milliseconds(10'000));
}

TEST_P(LostRank, KilledOnTheFallbackIsAnErrorOnEveryOtherRank) {
  ASSERT_NO_FATAL_FAILURE(start(false));
  fleet_->rank(3).process->kill();
  expect_errors_that_name(3, milliseconds(10'000));
}

TEST_P(LostRank, KilledRankZeroIsAnErrorOnEveryOtherRank) {
  ASSERT_NO_FATAL_FAILURE(start(true));
  fleet_->rank(0).process->kill();
  expect_errors_that_name(0, milliseconds(10'000));
}

TEST_P(LostRank, HungIsAnErrorWithinTheTimeOut) {
  ASSERT_NO_FATAL_FAILURE(start(true));
  fleet_->rank(1).process->signal(SIGSTOP);
  expect_errors_that_name(1, patience(milliseconds(20'000)));
}

TEST_P(LostRank, HungAggregatorIsNoErrorAndAShortPause) {
  // The wait must end before the time-out of 60 s, and before the limits that are fractions of it, 3 s and more.
  ASSERT_NO_FATAL_FAILURE(start(true, 60));
  std::map<std::size_t, std::set<std::string>> targets;
  fleet_->listen(patience(milliseconds(20'000)), [&] {
    targets = trees_in_use(*cluster_, *fleet_);
    return !targets.empty();
  });
  ASSERT_FALSE(targets.empty()) << "the ranks do not move to a tree";
  const auto& [aggregator, groups] = *targets.rbegin();
  const std::uint64_t failovers = failovers_of(groups, *fleet_);
  const pid_t victim = cluster_->pid_of(aggregator);
  std::uint64_t longest_gap_us = 0;
  fleet_->on_round = [&](std::size_t, const RoundReport& round) {
    longest_gap_us = std::max(longest_gap_us, round.gap_us);
  };
  ASSERT_EQ(kill(victim, SIGSTOP), 0);
  fleet_->listen(patience(milliseconds(40'000)), [&] { return failovers_of(groups, *fleet_) > failovers; });
  EXPECT_GT(failovers_of(groups, *fleet_), failovers) << "nobody noticed that the aggregator hung";
  ASSERT_NO_FATAL_FAILURE(run_for(200));
  std::printf("the longest pause between two rounds was %.3f s\n", static_cast<double>(longest_gap_us) / 1e6);
  EXPECT_LT(longest_gap_us, static_cast<std::uint64_t>(patience(milliseconds(3000)).count()) * 1000);
  ASSERT_EQ(kill(victim, SIGCONT), 0);
  std::ofstream(stop_file_) << "stop\n";
  fleet_->listen(patience(milliseconds(30'000)), [this] { return fleet_->all_ended(); });
  EXPECT_EQ(fleet_->trouble(patience(milliseconds(40'000))), "");
  for (const RankState& rank : fleet_->ranks()) EXPECT_TRUE(rank.done);
}

TEST_P(LostRank, AMachineThatStopsForLongerThanTheTimeOutIsNoError) {
  ASSERT_NO_FATAL_FAILURE(start(true));
  const auto signal_all = [this](int number) {
    for (std::size_t i = 0; i < cluster_->aggregators(); ++i) kill(cluster_->pid_of(i), number);
    for (std::size_t rank = 0; rank < kRanks; ++rank) fleet_->rank(rank).process->signal(number);
  };
  signal_all(SIGSTOP);
  fleet_->listen(std::chrono::seconds(timeout_seconds() * 3 / 2));
  signal_all(SIGCONT);
  ASSERT_NO_FATAL_FAILURE(run_for(50));
  std::ofstream(stop_file_) << "stop\n";
  fleet_->listen(patience(milliseconds(30'000)), [this] { return fleet_->all_ended(); });
  EXPECT_EQ(fleet_->trouble(patience(milliseconds(40'000))), "");
  for (const RankState& rank : fleet_->ranks()) EXPECT_TRUE(rank.done);
}

INSTANTIATE_TEST_SUITE_P(, LostRank, testing::Values(Together::not_at_all, Together::two_by_two), [](const auto& each) {
  return each.param == Together::not_at_all ? "EachForItself" : "TwoHostsOfTwo";
});

}  // namespace
}  // namespace tributary::chaos
