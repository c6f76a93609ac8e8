#include "aggregator/daemon/key_ring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tributary::aggregator {
namespace {

using ::testing::HasSubstr;

TEST(KeyRing, RefusesTokensOfAnEarlierLeadershipThanTheLatestThatItSaw) {
  KeyRing keys;
  EXPECT_TRUE(keys.admit({.fence = 0}).has_value()) << "a manager without fences";
  EXPECT_TRUE(keys.admit({.fence = 5}).has_value());
  EXPECT_TRUE(keys.admit({.fence = 5}).has_value());
  const Status refused = keys.admit({.fence = 4});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Errc::denied);
  EXPECT_THAT(refused.error().message, HasSubstr("no longer leads"));
  EXPECT_EQ(keys.fence(), 5U);
  EXPECT_FALSE(keys.admit({.fence = 0}).has_value());
}

TEST(KeyRing, LearnsFencesFromTheManagersAnswersToo) {
  KeyRing keys;
  keys.note_fence(8);
  keys.note_fence(3);
  EXPECT_EQ(keys.fence(), 8U);
  EXPECT_FALSE(keys.admit({.fence = 7}).has_value());
  EXPECT_TRUE(keys.admit({.fence = 9}).has_value());
}

}  // namespace
}  // namespace tributary::aggregator
