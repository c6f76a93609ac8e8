// The waits in which a thread spins, and the waits in which it no longer spins.
#include "transport/turn/spin_estimate.h"

#include <gtest/gtest.h>

namespace tributary::transport::test {
namespace {

using namespace std::chrono_literals;

constexpr Duration kNever = Duration::max();

/// A thread with a clock on which the test plays every wait.
class Waiter {
 public:
  explicit Waiter(Duration spin_max = 20us) : estimate_(spin_max) {}

  /// Waits for an event that comes after `length`. Each time that the thread offers its core, other threads take the
  /// core for `slice`.
  void wait(Duration length, Duration slice = 0us) {
    const TimePoint started = now_;
    const TimePoint comes = length == kNever ? TimePoint::max() : started + length;
    estimate_.begin(now_);
    bool slept = false;
    while (now_ < comes && !slept) {
      if (!estimate_.stays_awake(now_)) {
        estimate_.sleeps();
        slept = true;
        now_ = length == kNever ? now_ + 4ms : comes;
        continue;
      }
      now_ += 1us;
      if (slice == 0us) continue;
      now_ += slice;
      estimate_.was_away(slice, now_);
    }
    awake_ = !slept;
    estimate_.end(now_, length == kNever);
  }
  void wait_often(int times, Duration length, Duration slice = 0us) {
    for (int i = 0; i < times; ++i) wait(length, slice);
  }
  /// Makes this many waits; returns the number of them in which the thread began awake.
  int trials(int times, Duration length, Duration slice) {
    int count = 0;
    for (int i = 0; i < times; ++i) {
      count += estimate_.spins() ? 1 : 0;
      wait(length, slice);
    }
    return count;
  }
  [[nodiscard]] bool spins() const { return estimate_.spins(); }
  [[nodiscard]] bool was_awake() const { return awake_; }

 private:
  turn::SpinEstimate estimate_;
  TimePoint now_{1s};
  bool awake_ = false;
};

}  // namespace

TEST(SpinEstimate, SpinsOnlyOnceMostWaitsWereShort) {
  Waiter waiter;
  EXPECT_FALSE(waiter.spins());
  waiter.wait_often(3, 1us);
  EXPECT_FALSE(waiter.spins());
  waiter.wait_often(17, 1us);
  EXPECT_TRUE(waiter.spins());
}

TEST(SpinEstimate, DoesNotSpinForLateEvents) {
  Waiter waiter;
  waiter.wait_often(1000, 1ms);
  EXPECT_FALSE(waiter.spins());
}

TEST(SpinEstimate, StopsSoonWhenWaitsBecomeLong) {
  Waiter waiter;
  waiter.wait_often(100, 1us);
  waiter.wait_often(3, 1ms);
  EXPECT_FALSE(waiter.spins());
}

TEST(SpinEstimate, ToleratesALongWaitNowAndThen) {
  Waiter waiter;
  waiter.wait_often(100, 1us);
  waiter.wait(kNever);
  EXPECT_TRUE(waiter.spins());
}

TEST(SpinEstimate, StaysAwakeIfOthersHaveTheCoreOnlyUntilTheAnswerComes) {
  Waiter waiter;
  waiter.wait_often(200, 90us, 30us);
  ASSERT_TRUE(waiter.spins());
  waiter.wait(90us, 30us);
  EXPECT_TRUE(waiter.was_awake()) << "time in which others had the core does not count";
}

TEST(SpinEstimate, LeavesTheCoreToOthersThatKeepIt) {
  Waiter waiter;
  waiter.wait_often(100, 1us);
  waiter.wait_often(3, 4ms, 3ms);
  EXPECT_FALSE(waiter.spins());
}

TEST(SpinEstimate, SpinsLessAndLessOftenAfterUselessSpins) {
  Waiter waiter;
  // A sleeping thread wakes after 100 us, but a thread that offers its core loses the core for 3 ms.
  const int early = waiter.trials(1000, 100us, 3ms);
  waiter.wait_often(30'000, 100us, 3ms);
  const int late = waiter.trials(10'000, 100us, 3ms);
  EXPECT_GE(early, 2);
  EXPECT_LE(early, 6);
  EXPECT_LE(late, 2) << "one wait in 8192 is a trial";
}

TEST(SpinEstimate, NeverSpinsWhenTheSettingIsZero) {
  Waiter waiter(0us);
  waiter.wait_often(1000, 0us);
  waiter.wait_often(1000, 50us);
  EXPECT_FALSE(waiter.spins());
}

}  // namespace tributary::transport::test
