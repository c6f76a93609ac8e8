// The states of a communicator, and the clock that measures its limits.
#include "client/communicator/life.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

#include "client/communicator/clock.h"

namespace tributary::client {
namespace {

using namespace std::chrono_literals;
using State = Life::State;

constexpr std::array kAll{State::meeting, State::met,     State::ready, State::leaving,
                          State::left,    State::failing, State::failed};

/// Returns a life that has come to `state` by legal transitions.
Life at(State state) {
  Life life;
  if (state == State::meeting) return life;
  life.meet();
  if (state == State::met) return life;
  if (state == State::failing) life.begin_failing({Errc::io, "why"}, {});
  if (state == State::failed) life.fail({Errc::io, "why"});
  if (state >= State::failing) return life;
  life.begin();
  if (state == State::ready) return life;
  life.leave();
  if (state == State::left) life.end();
  return life;
}

void go(Life& life, State to) {
  switch (to) {
    case State::meeting:
      return;
    case State::met:
      return life.meet();
    case State::ready:
      return life.begin();
    case State::leaving:
      return life.leave();
    case State::left:
      return life.end();
    case State::failing:
      return life.begin_failing({Errc::io, "why"}, {});
    case State::failed:
      return life.fail({Errc::io, "why"});
  }
}

TEST(Life, HasTheArrowsOfThePictureAndNoOthers) {
  using enum State;
  std::set<std::pair<State, State>> drawn{{meeting, met}, {met, ready}, {ready, leaving}, {leaving, left}};
  for (const State from : {meeting, met, ready, leaving}) drawn.insert({from, failing});
  for (const State from : {meeting, met, ready, leaving, left, failing}) drawn.insert({from, failed});
  for (const State from : kAll) {
    for (const State to : kAll) {
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
  Life life = at(State::ready);
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
