// When a wait is spun for, and when no more.
#include "core/spin_estimate.h"

#include <gtest/gtest.h>

namespace tributary::transport::test {
namespace {

using namespace std::chrono_literals;

SpinEstimate after(Duration spin_max, int waits, Duration length, bool core_wanted = false) {
  SpinEstimate estimate(spin_max);
  for (int i = 0; i < waits; ++i) estimate.waited(length, core_wanted);
  return estimate;
}

}  // namespace

TEST(SpinEstimate, SpinsOnlyOnceMostWaitsWereShort) {
  EXPECT_EQ(after(20us, 0, 1us).spin(), 0us);
  EXPECT_EQ(after(20us, 3, 1us).spin(), 0us);
  EXPECT_EQ(after(20us, 20, 1us).spin(), 20us);
  EXPECT_EQ(after(20us, 20, 21us).spin(), 0us);
}

TEST(SpinEstimate, StopsSoonWhenWaitsBecomeLong) {
  SpinEstimate estimate = after(20us, 100, 1us);
  for (int i = 0; i < 3; ++i) estimate.waited(1ms, false);
  EXPECT_EQ(estimate.spin(), 0us);
}

TEST(SpinEstimate, ToleratesALongWaitNowAndThen) {
  SpinEstimate estimate = after(20us, 100, 1us);
  estimate.waited(1s, false);
  EXPECT_EQ(estimate.spin(), 20us);
}

TEST(SpinEstimate, LeavesTheCoreToOthersThatWantIt) {
  EXPECT_EQ(after(20us, 100, 1us, true).spin(), 0us);
}

TEST(SpinEstimate, NeverSpinsWhenTheSettingIsZero) {
  EXPECT_EQ(after(0us, 100, 0us).spin(), 0us);
}

}  // namespace tributary::transport::test
