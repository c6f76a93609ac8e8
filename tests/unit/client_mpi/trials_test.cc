// The choice between MPI's own collectives and Tributary's.
#include "client/plugins/mpi/trials.h"

#include <gtest/gtest.h>

#include <vector>

namespace tributary::mpi {
namespace {

/// Counts calls with these times until the ranks must agree.
void make_trials(Trials& trials, double by_mpi, double by_tributary) {
  for (std::uint32_t call = 0; !trials.agree_now(); ++call) {
    ASSERT_LT(call, Trials::kOfMpi + Trials::kOfTributary);
    const Way way = trials.way();
    EXPECT_EQ(way, call < Trials::kOfMpi ? Way::mpi : Way::tributary);
    trials.count(way == Way::mpi ? by_mpi : by_tributary);
  }
}

TEST(Trials, TheWayOfATrialFollowsOnlyFromTheNumberOfCalls) {
  Trials slow;
  Trials quick;
  make_trials(slow, 9.0, 1.0);
  make_trials(quick, 1.0, 9.0);
  EXPECT_EQ(slow.decision(), Way::mpi) << "before the ranks agree, nothing is decided";
}

TEST(Trials, TheQuickerWayOfTheSlowestRankWins) {
  Trials here;
  make_trials(here, 1.0, 2.0);  // only on this rank MPI would win
  here.agree({.mpi = 3.0, .tributary = 2.0});
  EXPECT_EQ(here.way(), Way::tributary);
  Trials other;
  make_trials(other, 2.0, 1.0);
  other.agree({.mpi = 1.0, .tributary = 2.0});
  EXPECT_EQ(other.way(), Way::mpi);
}

TEST(Trials, TheFirstCallByTributaryIsNotMeasured) {
  Trials trials;
  for (std::uint32_t call = 0; call < Trials::kOfMpi; ++call) trials.count(5.0);
  trials.count(0.001);
  while (!trials.agree_now()) trials.count(3.0);
  EXPECT_EQ(trials.times().mpi, 5.0);
  EXPECT_EQ(trials.times().tributary, 3.0);
}

TEST(Trials, TheQuickestOfSeveralCallsCounts) {
  Trials trials;
  for (const double seconds : {4.0, 2.0, 6.0, 9.0, 8.0, 7.0, 8.0}) trials.count(seconds);
  EXPECT_TRUE(trials.agree_now());
  EXPECT_EQ(trials.times().mpi, 2.0);
  EXPECT_EQ(trials.times().tributary, 7.0);
}

TEST(Trials, ADecisionHoldsForManyCallsAndThenIsTriedAgain) {
  Trials trials;
  make_trials(trials, 2.0, 1.0);
  trials.agree({.mpi = 2.0, .tributary = 1.0});
  for (std::uint32_t call = 0; call < Trials::kCallsPerDecision; ++call) {
    ASSERT_EQ(trials.way(), Way::tributary);
    ASSERT_FALSE(trials.agree_now());
    trials.count(100.0);
  }
  EXPECT_EQ(trials.way(), Way::mpi);
  make_trials(trials, 1.0, 2.0);
}

TEST(LongestMessage, IsAgreedOnInTheFirstCallsAndThenSeldom) {
  LongestMessage longest;
  std::vector<int> agreements;
  for (int call = 0; call < 70; ++call) {
    const std::uint64_t bytes = call == 40 ? 900 : 100;
    if (!longest.count(bytes)) continue;
    if (call >= 16) agreements.push_back(call);
    EXPECT_EQ(longest.here(), call == 47 ? 900U : 100U) << call;
    longest.agree(longest.here() + 1);
  }
  EXPECT_EQ(agreements, (std::vector{31, 47, 63}));
}

TEST(Trials, SizesOfOneClassDifferByLessThanTwo) {
  EXPECT_EQ(class_of(0), 0U);
  EXPECT_EQ(class_of(4096), class_of(8191));
  EXPECT_NE(class_of(4096), class_of(8192));
  EXPECT_LT(class_of(UINT64_MAX), kClasses);
}

}  // namespace
}  // namespace tributary::mpi
