// The lag of children, and the rule that names the late one.
#include <gtest/gtest.h>

#include <random>

#include "aggregator/worker/lane_lag.h"
#include "aggregator/worker/straggler.h"

namespace tributary::aggregator {
namespace {

using namespace std::chrono_literals;
using TimePoint = LaneLag::TimePoint;

constexpr TimePoint kStart{1h};

TEST(TimeHistogram, ClassesAreFourTimesAsWideAsTheOneBefore) {
  for (std::size_t number = 0; number + 1 < TimeHistogram::kClasses; ++number) {
    const std::chrono::microseconds upper(TimeHistogram::upper_us(number));
    EXPECT_EQ(TimeHistogram::class_of(upper), number);
    EXPECT_EQ(TimeHistogram::class_of(upper + 1ns), number + 1);
  }
  EXPECT_EQ(TimeHistogram::class_of(-1s), 0U);
  EXPECT_EQ(TimeHistogram::class_of(24h), TimeHistogram::kClasses - 1);
}

class Lag : public testing::Test {
 protected:
  void come(std::uint32_t child, std::uint64_t sequence, std::chrono::nanoseconds at) {
    lag_.contributed(child, sequence, kStart + at, histogram_);
  }
  LaneLag lag_{3, 4};
  TimeHistogram histogram_;
};

TEST_F(Lag, IsTheTimeSinceTheFirstContribution) {
  come(1, 0, 0ms);
  come(0, 0, 2ms);
  come(2, 0, 800ms);
  EXPECT_EQ(lag_.children()[1].longest, 0ms);
  EXPECT_EQ(lag_.children()[0].longest, 2ms);
  EXPECT_EQ(lag_.children()[2].longest, 800ms);
  EXPECT_EQ(lag_.children()[2].lag, 100ms) << "an eighth of the first lag";
  EXPECT_EQ(lag_.children()[2].last, 1U);
  EXPECT_EQ(lag_.children()[0].last, 0U);
  EXPECT_EQ(histogram_.sum, 802ms);
  EXPECT_EQ(histogram_.counts[0], 1U);
}

TEST_F(Lag, ASegmentTakesFromItsFirstContributionToItsResult) {
  TimeHistogram times;
  come(1, 0, 1ms);
  come(0, 0, 2ms);
  come(1, 1, 3ms);
  lag_.answered(0, kStart + 4ms, times);  // the root answers before it notes the last contribution
  come(2, 0, 4ms);
  EXPECT_EQ(times.sum, 3ms);
  EXPECT_EQ(times.counts[TimeHistogram::class_of(3ms)], 1U);
  lag_.answered(5, kStart + 9ms, times);  // another segment has the place: its contributions were not noted
  EXPECT_EQ(times.sum, 3ms);
}

TEST_F(Lag, TheOldestSegmentShowsTheMissingChildren) {
  EXPECT_EQ(lag_.oldest().missing, 0U) << "no segment has begun";
  for (std::uint64_t s = 0; s < 4; ++s) come(0, s, 1ms * s);
  EXPECT_EQ(lag_.oldest().missing, 0b110U);
  EXPECT_EQ(lag_.oldest().since, kStart);
  EXPECT_EQ(lag_.oldest().latest, kStart);
  come(2, 0, 5ms);
  EXPECT_EQ(lag_.oldest().missing, 0b010U);
  EXPECT_EQ(lag_.oldest().latest, kStart + 5ms);
  come(1, 0, 6ms);
  EXPECT_EQ(lag_.oldest().since, kStart + 1ms) << "now segment 1 is the oldest";
  come(0, 4, 7ms);  // in the place of segment 0
  EXPECT_EQ(lag_.children()[0].contributions, 5U);
}

// A child may break the order, and must not break the aggregator.
TEST_F(Lag, SegmentsMayBecomeCompleteInAnyOrder) {
  for (const std::uint64_t sequence : {1ULL, 5ULL, 9ULL, 3ULL}) {
    for (std::uint32_t child = 0; child < 3; ++child) come(child, sequence, 1ms * child);
  }
  EXPECT_EQ(lag_.oldest().missing, 0U);
  come(2, 0, 1ms);
  EXPECT_EQ(lag_.oldest().missing, 0b011U);
}

/// Looks every 50 ms. `missing` gives the children that are missing at a look, for `alone_`.
class Straggler : public testing::Test {
 protected:
  template <class Missing>
  void look_for(StragglerWatch& watch, std::chrono::milliseconds time, Missing missing) {
    for (const TimePoint end = now_ + time; now_ < end;) {
      now_ += 50ms;
      watch.look(now_, missing(now_), alone_);
    }
  }
  /// Lets the others wait for child 7 for `wait` in each of some operations, with pauses of 80 ms. Returns when it is
  /// named.
  std::optional<std::chrono::milliseconds> named_with(std::chrono::milliseconds wait, std::uint64_t others = 0) {
    StragglerWatch watch(16);
    const TimePoint begin = now_;
    while (now_ < begin + 5s) {
      for (alone_ = 0ms; alone_ < wait; alone_ += 50ms) look_for(watch, 50ms, [](TimePoint) { return 1U << 7; });
      alone_ = 0ms;
      look_for(watch, 80ms, [&](TimePoint) { return others; });
      if (watch.straggler()) return std::chrono::duration_cast<std::chrono::milliseconds>(now_ - begin);
    }
    return std::nullopt;
  }
  TimePoint now_ = kStart;
  std::chrono::nanoseconds alone_ = 10ms;
};

TEST_F(Straggler, AChildThatTheOthersWaitForIsNamedWithinASecond) {
  StragglerWatch watch(16);
  look_for(watch, 5s, [](TimePoint) { return 0U; });
  look_for(watch, 500ms, [](TimePoint) { return 1U << 7; });
  EXPECT_EQ(watch.straggler(), std::nullopt) << "half a second may be chance";
  look_for(watch, 500ms, [](TimePoint) { return 1U << 7; });
  EXPECT_EQ(watch.straggler(), 7U);
  EXPECT_GT(watch.part(7), 0.6);
}

TEST_F(Straggler, IsOnTimeAgainAfterSomeSeconds) {
  StragglerWatch watch(16);
  look_for(watch, 1500ms, [](TimePoint) { return 1U << 7; });
  ASSERT_EQ(watch.straggler(), 7U);
  look_for(watch, 1s, [](TimePoint) { return 0U; });
  EXPECT_EQ(watch.straggler(), 7U) << "it is not named again at every step";
  look_for(watch, 20s, [](TimePoint) { return 0U; });
  EXPECT_EQ(watch.straggler(), std::nullopt);
}

TEST_F(Straggler, IsOnTimeAgainWhenEachOfAFewChildrenIsTheLastOneInTurn) {
  std::mt19937 random(1);
  for (const std::uint32_t children : {2U, 3U, 4U}) {
    StragglerWatch watch(children);
    look_for(watch, 5s, [](TimePoint) { return 1U << 1; });
    ASSERT_EQ(watch.straggler(), 1U);
    look_for(watch, 30s, [&](TimePoint) { return std::uint64_t{1} << random() % children; });
    EXPECT_EQ(watch.straggler(), std::nullopt) << children << " children";
  }
}

TEST_F(Straggler, ATenthOfTheTimeIsEnoughIfItLasts) {
  StragglerWatch watch(8);
  int looks = 0;
  look_for(watch, 60s, [&](TimePoint) { return ++looks % 6 == 0 ? 1U << 3 : 0U; });
  EXPECT_EQ(watch.straggler(), 3U);
}

TEST_F(Straggler, TwoLongWaitsForTheSameChildAreNoChance) {
  EXPECT_LT(named_with(250ms), 1100ms) << "three waits";
  EXPECT_LT(named_with(500ms), 1300ms) << "two waits";
  EXPECT_EQ(named_with(50ms), std::nullopt) << "short waits that are less than the limit";
}

TEST_F(Straggler, ManyShorterWaitsForTheSameChildAreNoChance) {
  EXPECT_LT(named_with(150ms), 1600ms) << "a process that computes leaves the child some time on its processor";
  EXPECT_LT(named_with(100ms), 2500ms);
}

TEST_F(Straggler, WaitsAreChanceIfAnotherChildHadSomeShortlyBefore) {
  StragglerWatch watch(16);
  alone_ = 250ms;
  look_for(watch, 300ms, [](TimePoint) { return 1U << 2; });
  look_for(watch, 3s, [](TimePoint) { return 0U; });
  for (int wait = 0; wait < 3; ++wait) {
    look_for(watch, 250ms, [](TimePoint) { return 1U << 7; });
    look_for(watch, 100ms, [](TimePoint) { return 0U; });
    EXPECT_EQ(watch.straggler(), std::nullopt) << wait;
  }
  look_for(watch, 3s, [](TimePoint) { return 1U << 7; });
  EXPECT_EQ(watch.straggler(), 7U) << "a wait without a break is named all the same";
}

TEST_F(Straggler, SomeWaitsForTheSameOneOfTwoOrThreeChildrenMayBeChance) {
  for (const std::uint32_t children : {2U, 3U, 4U}) {
    StragglerWatch watch(children);
    alone_ = 250ms;
    for (int wait = 0; wait < 3; ++wait) {
      look_for(watch, 250ms, [](TimePoint) { return 1U << 1; });
      look_for(watch, 100ms, [](TimePoint) { return 0U; });
    }
    EXPECT_EQ(watch.straggler().has_value(), children == 4) << children << " children";
  }
}

TEST_F(Straggler, AnHourOfWaitsByTurnsOfChanceNamesNoneOfTwoChildren) {
  std::mt19937 random(1);
  const auto milliseconds = [&](int from, int to) {
    return std::chrono::milliseconds(std::uniform_int_distribution(from, to)(random));
  };
  StragglerWatch watch(2);
  alone_ = 250ms;
  for (const TimePoint end = now_ + 1h; now_ < end;) {
    const std::uint64_t child = random() % 2;
    look_for(watch, milliseconds(50, 300), [&](TimePoint) { return std::uint64_t{1} << child; });
    look_for(watch, milliseconds(100, 2000), [](TimePoint) { return 0U; });
    ASSERT_EQ(watch.straggler(), std::nullopt) << "after " << (now_ - kStart) / 1s << " s";
  }
}

TEST_F(Straggler, OneOfTwoOrThreeChildrenIsNamedWithinTwoSeconds) {
  for (const std::uint32_t children : {2U, 3U}) {
    StragglerWatch watch(children);
    look_for(watch, 1200ms, [](TimePoint) { return 1U << 1; });
    EXPECT_EQ(watch.straggler(), std::nullopt) << children << " children: a second may be chance";
    look_for(watch, 500ms, [](TimePoint) { return 1U << 1; });
    EXPECT_EQ(watch.straggler(), 1U) << children << " children";
  }
}

TEST_F(Straggler, AFifthOfTheTimeOfOneOfTwoChildrenIsEnoughIfItLasts) {
  for (const int every : {6, 4}) {
    StragglerWatch watch(2);
    int looks = 0;
    look_for(watch, 60s, [&](TimePoint) { return ++looks % every == 0 ? 1U << 1 : 0U; });
    EXPECT_EQ(watch.straggler().has_value(), every == 4) << "missing at every look in " << every;
  }
}

TEST_F(Straggler, OneLongWaitMayBeChance) {
  StragglerWatch watch(16);
  alone_ = 200ms;
  look_for(watch, 700ms, [](TimePoint) { return 1U << 7; });
  EXPECT_EQ(watch.straggler(), std::nullopt);
  look_for(watch, 5s, [](TimePoint) { return 0U; });
  look_for(watch, 700ms, [](TimePoint) { return 1U << 7; });
  EXPECT_EQ(watch.straggler(), std::nullopt) << "the first wait is forgotten";
}

TEST_F(Straggler, AChildThatIsAlwaysTheLastByLessThanAMillisecondIsNotLate) {
  for (const auto alone : {300us, 1500us}) {
    StragglerWatch watch(4);
    alone_ = alone;
    int looks = 0;
    look_for(watch, 60s, [&](TimePoint) { return ++looks % 5 == 0 ? 1U << 3 : 0U; });
    EXPECT_EQ(watch.straggler().has_value(), alone > 1ms) << alone.count() << " us";
  }
}

TEST_F(Straggler, NobodyIsNamedWhileEachIsTheLastOneInTurn) {
  std::mt19937 random(1);
  for (const std::uint32_t children : {2U, 3U, 8U, 64U}) {
    StragglerWatch watch(children);
    for (int minute = 0; minute < 10; ++minute) {
      look_for(watch, 60s, [&](TimePoint) { return std::uint64_t{1} << random() % children; });
      ASSERT_EQ(watch.straggler(), std::nullopt) << children << " children";
    }
  }
}

TEST_F(Straggler, NoChildIsLateWhileMostAreMissing) {
  StragglerWatch watch(8);
  look_for(watch, 60s, [](TimePoint) { return 0b11111110U; });
  EXPECT_EQ(watch.straggler(), std::nullopt);
}

TEST_F(Straggler, TimesAtWhichMostAreMissingHideNoLateChild) {
  StragglerWatch watch(8);
  int looks = 0;
  look_for(watch, 60s, [&](TimePoint) { return ++looks % 2 == 0 ? 0b11111110U : 1U << 3; });
  EXPECT_EQ(watch.straggler(), 3U);
}

TEST_F(Straggler, TheTimeOfALateLookDoesNotCount) {
  StragglerWatch watch(4);
  watch.look(now_, 0, 0ms);
  watch.look(now_ += 20s, 1, 20s);  // this process stood still
  EXPECT_EQ(watch.straggler(), std::nullopt);
}

}  // namespace
}  // namespace tributary::aggregator
