#include "tributary/protocol/lane_pulse.h"

#include <gtest/gtest.h>

#include <functional>

#include "tributary/protocol/bytes_under_way.h"

namespace tributary {
namespace {

using namespace std::chrono_literals;
using Verdict = LanePulse::Verdict;

class LanePulseTest : public testing::Test {
 protected:
  /// Looks at the pulse every 10 ms for this long. Returns the first verdict other than `wait`, and the time until it
  /// came.
  std::pair<Verdict, LanePulse::Duration> look_for(LanePulse::Duration time, bool waits = true,
                                                   std::uint64_t bytes = 0) {
    for (const auto begin = now_; now_ - begin < time;) {
      now_ += 10ms;
      if (const Verdict verdict = pulse_.look(now_, waits, bytes); verdict != Verdict::wait)
        return {verdict, now_ - begin};
    }
    return {Verdict::wait, time};
  }
  LanePulse pulse_{LanePulseSettings{}};
  LanePulse::Clock::time_point now_{1h};
};

TEST_F(LanePulseTest, AsksWhenNothingComesAndGivesUpWithoutAnAnswer) {
  static_cast<void>(pulse_.look(now_, false, 0));
  EXPECT_EQ(look_for(1s), (std::pair<Verdict, LanePulse::Duration>(Verdict::ask, 150ms)));
  EXPECT_EQ(look_for(1s), (std::pair<Verdict, LanePulse::Duration>(Verdict::dead, 500ms)));
}

TEST_F(LanePulseTest, AsksNothingWhileNoResultIsDue) {
  EXPECT_EQ(look_for(1h, false).first, Verdict::wait);
}

TEST_F(LanePulseTest, AsksNothingWhileResultsCome) {
  for (int i = 0; i < 100; ++i) {
    pulse_.heard();
    EXPECT_EQ(look_for(140ms).first, Verdict::wait);
  }
}

TEST_F(LanePulseTest, AnAggregatorThatAnswersIsAskedAgainAndNeverGivenUp) {
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(look_for(200ms).first, Verdict::ask);
    ASSERT_EQ(look_for(400ms).first, Verdict::wait);
    pulse_.heard();
  }
}

TEST_F(LanePulseTest, AWaiterThatStoodStillBlamesNoAggregator) {
  ASSERT_EQ(look_for(200ms).first, Verdict::ask);
  ASSERT_EQ(look_for(480ms).first, Verdict::wait);
  for (int i = 0; i < 100; ++i) {
    now_ += 20s;  // as if the process was stopped, or had no core
    ASSERT_EQ(pulse_.look(now_, true, 0), Verdict::wait);
  }
  EXPECT_EQ(look_for(1s).first, Verdict::dead);
}

TEST_F(LanePulseTest, SlowAnswersMakeTheLimitLonger) {
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(look_for(200ms).first, Verdict::ask);
    ASSERT_EQ(look_for(450ms - 150ms * (i % 2)).first, Verdict::wait);
    pulse_.heard();
  }
  EXPECT_GT(pulse_.limit(0), 500ms);
  EXPECT_LT(pulse_.limit(0), 1s);
}

TEST_F(LanePulseTest, DataSentBeforeTheQuestionMayTakeTheirTime) {
  EXPECT_EQ(pulse_.limit(125'000'000), 1500ms);
  ASSERT_EQ(look_for(200ms, true, 125'000'000).first, Verdict::ask);
  EXPECT_EQ(look_for(1400ms, true, 125'000'000).first, Verdict::wait);
  EXPECT_EQ(look_for(200ms, true, 125'000'000).first, Verdict::dead);
}

TEST(BytesUnderWay, AreTheBytesOfContributionsWithoutAResult) {
  BytesUnderWay bytes(4);
  for (std::uint64_t sequence = 0; sequence < 4; ++sequence) bytes.sent(sequence, 1000 * (sequence + 1));
  EXPECT_EQ(bytes.total(), 10'000U);
  bytes.came(0);
  bytes.came(1);
  EXPECT_EQ(bytes.total(), 7000U);
  bytes.sent(4, 0);  // a bare contribution
  bytes.sent(5, 500);
  EXPECT_EQ(bytes.total(), 7500U);
  for (const std::uint64_t sequence : {2U, 3U, 4U, 5U}) bytes.came(sequence);
  EXPECT_EQ(bytes.total(), 0U);
}

TEST(LanePulse, CanBeSwitchedOff) {
  LanePulse pulse({.limit = 0ns});
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(pulse.look(LanePulse::Clock::time_point(i * 10ms), true, 0), Verdict::wait);
}

}  // namespace
}  // namespace tributary
