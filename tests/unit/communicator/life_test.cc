// The states of a communicator, and the clock that measures its limits.
#include "client/communicator/life.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

#include "client/communicator/clock.h"

namespace tributary::client {
namespace {

using namespace std::chrono_literals;
using LifeState = Life::State;

constexpr std::array kAll{LifeState::meeting, LifeState::met,     LifeState::ready, LifeState::leaving,
                          LifeState::left,    LifeState::failing, LifeState::failed};

/// Returns a life that has come to `state` by legal transitions.
Life at(LifeState state) {
  Life life;
  if (state == LifeState::meeting) return life;
  life.meet();
  if (state == LifeState::met) return life;
  if (state == LifeState::failing) life.begin_failing({Errc::io, "why"}, {});
  if (state == LifeState::failed) life.fail({Errc::io, "why"});
  if (state >= LifeState::failing) return life;
  life.begin();
  if (state == LifeState::ready) return life;
  life.leave();
  if (state == LifeState::left) life.end();
  return life;
}

void go(Life& life, LifeState to) {
  switch (to) {
    case LifeState::meeting:
      return;
    case LifeState::met:
      return life.meet();
    case LifeState::ready:
      return life.begin();
    case LifeState::leaving:
      return life.leave();
    case LifeState::left:
      return life.end();
    case LifeState::failing:
      return life.begin_failing({Errc::io, "why"}, {});
    case LifeState::failed:
      return life.fail({Errc::io, "why"});
  }
}

TEST(Life, HasTheArrowsOfThePictureAndNoOthers) {
  using enum LifeState;
  std::set<std::pair<LifeState, LifeState>> drawn{{meeting, met}, {met, ready}, {ready, leaving}, {leaving, left}};
  for (const LifeState from : {meeting, met, ready, leaving}) drawn.insert({from, failing});
  for (const LifeState from : {meeting, met, ready, leaving, left, failing}) drawn.insert({from, failed});
  for (const LifeState from : kAll) {
    for (const LifeState to : kAll) {
      if (to == meeting) continue;
      Life life = at(from);
      ASSERT_EQ(life.state(), from);
      if (drawn.contains({from, to})) {
        go(life, to);
        EXPECT_EQ(life.state(), to);
      } else {
        EXPECT_DEATH(go(life, to), "a communicator that is " + std::string(to_string(from)) + " cannot be " +
                                       std::string(to_string(to)));
      }
    }
  }
}

TEST(Life, RemembersThatItMetAndBegan) {
  Life life;
  EXPECT_FALSE(life.has_met() || life.has_begun());
  life.meet();
  EXPECT_TRUE(life.has_met());
  life.begin();
  life.fail({Errc::io, "why"});
  EXPECT_TRUE(life.has_met() && life.has_begun());
}

TEST(Life, ShowsAnErrorOnlyOnceItHasFailed) {
  const transport::TimePoint t(10s);
  Life life = at(LifeState::ready);
  life.begin_failing({Errc::peer_gone, "rank 3 is gone"}, t);
  EXPECT_FALSE(life.error());
  EXPECT_FALSE(life.well());
  EXPECT_EQ(life.pending().message, "rank 3 is gone");
  EXPECT_FALSE(life.fails_by(t - 1ms));
  life.excuse(5s);
  EXPECT_FALSE(life.fails_by(t + 4s)) << "this process was away meanwhile";
  EXPECT_TRUE(life.fails_by(t + 5s));
  life.fail({Errc::aborted, "enough"});
  ASSERT_TRUE(life.error());
  EXPECT_EQ(life.error()->message, "enough");
}

TEST(Clock, DoesNotCountAbsencesAsWaiting) {
  Clock clock;
  const transport::TimePoint start(100s);
  EXPECT_EQ(clock.look(start), 0s);
  for (int i = 1; i <= 10; ++i) EXPECT_EQ(clock.look(start + i * 100ms), 0s);
  EXPECT_EQ(clock.look(start + 21s), 20s);
  EXPECT_TRUE(clock.waited(start, 1s));
  EXPECT_FALSE(clock.waited(start, 2s)) << "the process ran for one second";
  EXPECT_EQ(clock.away_within(1s), 20s);
  for (int i = 1; i <= 20; ++i) (void)clock.look(start + 21s + i * 100ms);
  EXPECT_TRUE(clock.waited(start, 3s));
  EXPECT_EQ(clock.away_within(1s), 0s);
}

}  // namespace
}  // namespace tributary::client
