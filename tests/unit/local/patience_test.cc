// Tests of a wait that does not count time in which its own process stood still.
#include "client/collectives/local/patience.h"

#include <gtest/gtest.h>

namespace tributary::client::local {
namespace {

using namespace std::chrono_literals;

TEST(Patience, EndsAfterItsLimitOfWaiting) {
  Patience::TimePoint now{1h};
  Patience patience(2s, -1, now);
  for (const auto end = now + 1900ms; now < end;) EXPECT_GT(patience.left(now += Patience::kLook), 0s);
  EXPECT_EQ(patience.left(now), 100ms);
  EXPECT_EQ(patience.left(now += 100ms), 0s);
}

TEST(Patience, DoesNotCountTheTimeInWhichItsProcessWasStopped) {
  Patience::TimePoint now{1h};
  Patience patience(2s, -1, now);
  for (const auto end = now + 1s; now < end;) EXPECT_GT(patience.left(now += Patience::kLook), 0s);
  EXPECT_EQ(patience.left(now += 20s), 1s);
  for (const auto end = now + 900ms; now < end;) EXPECT_GT(patience.left(now += Patience::kLook), 0s);
  EXPECT_EQ(patience.left(now += 100ms), 0s);
}

}  // namespace
}  // namespace tributary::client::local
