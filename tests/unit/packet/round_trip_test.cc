// Time-outs that follow from measured round trips (RFC 6298).
#include "transport/packet/round_trip.h"

#include <gtest/gtest.h>

namespace tributary::transport::packet {
namespace {

using namespace std::chrono_literals;

TEST(RoundTrip, IsAGuessBeforeTheFirstSample) {
  const RoundTrip times(50ms, 4ms, 400ms);
  EXPECT_FALSE(times.known());
  EXPECT_EQ(times.timeout(0), 50ms);
  EXPECT_EQ(times.timeout(1), 100ms);
  EXPECT_EQ(times.smoothed(), 12500us);
}

TEST(RoundTrip, TakesTheFirstSampleWholeWithHalfOfItAsVariation) {
  RoundTrip times(50ms, 1us, 10s);
  times.sample(20ms);
  EXPECT_TRUE(times.known());
  EXPECT_EQ(times.smoothed(), 20ms);
  EXPECT_EQ(times.latest(), 20ms);
  EXPECT_EQ(times.timeout(0), 20ms + 4 * 10ms);
}

TEST(RoundTrip, MovesByAnEighthAndItsVariationByAQuarter) {
  RoundTrip times(50ms, 1us, 10s);
  times.sample(16ms);  // variation 8 ms
  times.sample(32ms);  // off by 16 ms: variation 8 + (16 - 8) / 4, before the round trip moves (RFC 6298, 2.3)
  EXPECT_EQ(times.smoothed(), 18ms);
  EXPECT_EQ(times.timeout(0), 18ms + 4 * 10ms);
  times.sample(10ms);  // off by 8 ms downwards: 10 - (10 - 8) / 4
  EXPECT_EQ(times.smoothed(), 17ms);
  EXPECT_EQ(times.timeout(0), 17ms + 4 * 9500us);
  EXPECT_EQ(times.latest(), 10ms);
}

TEST(RoundTrip, SettlesOnASteadyPath) {
  RoundTrip times(50ms, 1us, 10s);
  times.sample(1s);
  for (int i = 0; i < 200; ++i) times.sample(100us);
  EXPECT_NEAR(static_cast<double>(times.smoothed().count()), 100e3, 100);
  EXPECT_LT(times.timeout(0), 110us);
}

TEST(RoundTrip, DoublesWithEachTimeOutWithinItsBounds) {
  RoundTrip times(50ms, 4ms, 400ms);
  times.sample(10us);
  for (const auto& [backoff, expected] : {std::pair{0U, 4ms}, {1U, 8ms}, {2U, 16ms}, {6U, 256ms}, {7U, 400ms}}) {
    EXPECT_EQ(times.timeout(backoff), expected) << backoff;
  }
  EXPECT_EQ(times.timeout(1'000'000), 400ms) << "the time-out does not overflow";
  times.sample(10s);
  EXPECT_EQ(times.timeout(0), 400ms);
}

TEST(RoundTrip, IsNeverZero) {
  RoundTrip times(50ms, 4ms, 400ms);
  times.sample(Duration::zero());  // the clock has not moved on
  times.sample(-5us);
  EXPECT_TRUE(times.known());
  EXPECT_GT(times.smoothed(), Duration::zero());
  EXPECT_EQ(times.timeout(0), 4ms);
}

}  // namespace
}  // namespace tributary::transport::packet
