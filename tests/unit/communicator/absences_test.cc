// Time in which a process did not run does not count as waiting.
#include "client/operation/absences.h"

#include <gtest/gtest.h>

namespace tributary::client {
namespace {

using namespace std::chrono_literals;
using transport::Duration;
using transport::TimePoint;

constexpr TimePoint kStart{1h};

/// A thread that reads its clock every 5 ms, except while the test keeps it away.
struct Looker {
  Absences absences;
  TimePoint now = kStart;
  Looker() { absences.begin(now); }
  Duration look_for(Duration time) {
    Duration away{};
    for (const TimePoint end = now + time; now < end;) away += absences.look(now += 5ms);
    return away;
  }
  Duration away_for(Duration time) { return absences.look(now += time); }
  [[nodiscard]] bool waited(TimePoint since, Duration time) const { return since <= absences.ago(time, now); }
};

TEST(Absences, AProcessWithoutAbsencesHasWaitedAsLongAsTheClockSays) {
  Looker it;
  EXPECT_EQ(it.look_for(20s), 0s);
  EXPECT_TRUE(it.waited(kStart, 20s));
  EXPECT_FALSE(it.waited(kStart, 20s + 1ns));
  EXPECT_FALSE(it.waited(kStart + 1ns, 20s));
}

TEST(Absences, ALongTurnIsNoAbsence) {
  Looker it;
  it.look_for(1s);
  EXPECT_EQ(it.away_for(999ms), 0s);
  EXPECT_TRUE(it.waited(kStart, 1999ms));
}

TEST(Absences, TheTimeOfAnAbsenceIsNotCounted) {
  Looker it;
  it.look_for(3s);
  EXPECT_EQ(it.away_for(25s), 25s);
  EXPECT_TRUE(it.waited(kStart, 3s));
  EXPECT_FALSE(it.waited(kStart, 3s + 1ns));
  it.look_for(2s);
  EXPECT_TRUE(it.waited(kStart, 5s));
  EXPECT_FALSE(it.waited(kStart, 5s + 1ns));
  EXPECT_TRUE(it.waited(it.now - 2s, 2s)) << "the absence does not matter to a wait that began after it";
}

TEST(Absences, SeveralAddUp) {
  Looker it;
  for (int i = 0; i < 10; ++i) {
    it.look_for(1s);
    EXPECT_EQ(it.away_for(7s), 7s);
  }
  EXPECT_TRUE(it.waited(kStart, 10s));
  EXPECT_FALSE(it.waited(kStart, 10s + 1ns));
  EXPECT_TRUE(it.waited(kStart + 40s, 5s)) << "five absences, one every eight seconds, came after the wait had begun";
  EXPECT_FALSE(it.waited(kStart + 40s, 5s + 1ns));
}

TEST(Absences, OnlyTheNewestOfVeryManyAreRemembered) {
  Looker it;
  for (int i = 0; i < 100; ++i) {
    it.look_for(1s);
    it.away_for(1s);
  }
  EXPECT_TRUE(it.waited(it.now - 60s, 30s));
  EXPECT_FALSE(it.waited(it.now - 60s, 30s + 1ns));
  EXPECT_TRUE(it.waited(kStart, 168s))
      << "68 of 100 absences are forgotten and count as waiting, so a hang is found in the end";
}

}  // namespace
}  // namespace tributary::client
