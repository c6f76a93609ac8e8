// The loop in every poll(), over a core that follows a script and has a clock of its own.
#include "transport/turn/engine.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

namespace tributary::transport::turn {
namespace {

using namespace std::chrono_literals;

class PlayedCore : public Engine<PlayedCore> {
 public:
  explicit PlayedCore(Duration busy_poll = {}, Duration spin_max = {}) : Engine(busy_poll, spin_max) {}

  // ---- the script
  /// Adds an event for a handler at this time.
  void comes_at(Duration since_start) { comes_ = TimePoint{} + since_start; }
  int looks = 0, spun_looks = 0, sleeps = 0, wakes = 0;
  bool busy = false;
  using Engine::end;

 private:
  friend class Engine<PlayedCore>;
  void begin_poll(bool waits) {
    if (!waits) take();
  }
  void end_poll() { ++ended_polls; }
  [[nodiscard]] bool idle() const { return !busy && !has_posted(); }
  Looked look(bool spins) {
    ++looks;
    if (spins) ++spun_looks;
    now_ += 1us;
    busy = false;
    const bool some = take();
    return {.at = now_, .some = some};
  }
  Looked sleep(TimePoint now, TimePoint until) {
    EXPECT_EQ(now, now_);
    ++sleeps;
    now_ = std::min(until, std::max(now_, comes_));
    take();
    return {.at = now_, .some = false};
  }
  [[nodiscard]] TimePoint time() const { return now_; }
  void wake() { ++wakes; }

  bool take() {
    run_posted();
    if (comes_ > now_) return false;
    comes_ = TimePoint::max();
    count_callback();
    return true;
  }

 public:
  int ended_polls = 0;
  TimePoint now_{};

 private:
  TimePoint comes_ = TimePoint::max();
};

TEST(TurnEngine, LooksOnceWithoutWaiting) {
  PlayedCore core;
  EXPECT_EQ(core.poll({}), 0U);
  core.comes_at(0s);
  EXPECT_EQ(core.poll({}), 1U);
  EXPECT_EQ(core.sleeps, 0);
  EXPECT_EQ(core.ended_polls, 2);
}

TEST(TurnEngine, SleepsUntilSomethingComes) {
  PlayedCore core;
  core.comes_at(3ms);
  EXPECT_EQ(core.poll(1s), 1U);
  EXPECT_EQ(core.sleeps, 1);
  EXPECT_EQ(core.now_, TimePoint{} + 3ms);
}

TEST(TurnEngine, ReturnsWhenItsTimeIsOver) {
  PlayedCore core;
  EXPECT_EQ(core.poll(5ms), 0U);
  EXPECT_EQ(core.now_, TimePoint{} + 5ms);
}

TEST(TurnEngine, WaitsForEverWithoutOverflow) {
  PlayedCore core;
  EXPECT_EQ(core.poll(Duration::max()), 0U);
  EXPECT_EQ(core.now_, TimePoint{} + 1h);
}

TEST(TurnEngine, LooksBeforeItSleepsWhileThereIsWork) {
  PlayedCore core;
  core.busy = true;
  core.comes_at(1s);
  core.poll(2s);
  EXPECT_EQ(core.looks, 1);
  EXPECT_EQ(core.sleeps, 1);
}

TEST(TurnEngine, SpinsForTheSetTimeBeforeItSleeps) {
  PlayedCore core(50us);
  core.comes_at(1s);
  EXPECT_EQ(core.poll(2s), 1U);
  EXPECT_EQ(core.spun_looks, 50);
  EXPECT_EQ(core.sleeps, 1);
}

TEST(TurnEngine, StaysAwakeOnceMostWaitsWereShort) {
  PlayedCore core({}, 20us);
  for (int i = 0; i < 100; ++i) {
    core.comes_at(core.now_ - TimePoint{} + 3us);
    EXPECT_EQ(core.poll(1s), 1U);
  }
  const int sleeps = core.sleeps;
  core.comes_at(core.now_ - TimePoint{} + 3us);
  core.poll(1s);
  EXPECT_EQ(core.sleeps, sleeps);
  EXPECT_GT(core.spun_looks, 0);
}

TEST(TurnEngine, RunsPostedCallsAndCountsThem) {
  PlayedCore core;
  int calls = 0;
  core.post([&calls] { ++calls; });
  core.post([&calls] { ++calls; });
  EXPECT_EQ(core.poll(1s), 2U);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(core.sleeps, 0);
  EXPECT_EQ(core.wakes, 0) << "the thread was awake";
}

TEST(TurnEngine, DoesNothingWithinItsOwnCallbacks) {
  PlayedCore core;
  std::size_t inner = 1;
  core.post([&] { inner = core.poll(1s); });
  EXPECT_EQ(core.poll(1s), 1U);
  EXPECT_EQ(inner, 0U);
}

TEST(TurnEngine, DoesNothingAfterItsEnd) {
  PlayedCore core;
  core.comes_at(0s);
  core.end();
  EXPECT_EQ(core.poll(1s), 0U);
}

}  // namespace
}  // namespace tributary::transport::turn
