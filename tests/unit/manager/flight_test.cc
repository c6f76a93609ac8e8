#include "tree-manager/planner/flight.h"

#include <gtest/gtest.h>

namespace tributary::manager {
namespace {

TEST(Flight, ReservesTwiceWhatFillsALinkForARoundTrip) {
  const auto bytes = [](std::uint64_t rate) {
    const Flight flight = flight_for(rate);
    return std::uint64_t{flight.window} * flight.segment_bytes;
  };
  EXPECT_EQ(bytes(200'000'000), 256U << 10);
  EXPECT_EQ(bytes(1'000'000'000), 256U << 10);
  EXPECT_EQ(bytes(100'000'000'000), 4U << 20);
  EXPECT_EQ(bytes(0), 2U << 20) << "unknown";
  EXPECT_EQ(bytes(3'200'000'000'000), 8U << 20);
  EXPECT_EQ(flight_for(0).segment_bytes, 16U << 10) << "unknown";
  EXPECT_EQ(flight_for(1'000'000'000).segment_bytes, 16U << 10);
  EXPECT_EQ(flight_for(10'000'000'000).segment_bytes, 32U << 10);
  EXPECT_EQ(flight_for(100'000'000'000).segment_bytes, 64U << 10);
  for (std::uint64_t rate = 1'000'000; rate < 4'000'000'000'000; rate = rate * 5 / 4 + 1) {
    const Flight flight = flight_for(rate);
    EXPECT_GE(flight.window, 8U) << rate;
    EXPECT_LE(flight.window, kWindowMax) << rate;
  }
}

TEST(Flight, LanesShareTheWindowOfTwo) {
  EXPECT_EQ(window_of_lane(32, 1, 1), 32U);
  EXPECT_EQ(window_of_lane(32, 1, 2), 32U);
  EXPECT_EQ(window_of_lane(32, 1, 3), 22U);
  EXPECT_EQ(window_of_lane(8, 1, 4), 4U);
  EXPECT_EQ(window_of_lane(8, 1, 16), 2U) << "with one segment in flight a link stands still during each sum";
  EXPECT_EQ(window_of_lane(1, 1, 16), 1U) << "the window is never greater than a single lane's window";
}

TEST(Flight, ChildrenShareTheWindowOfANarrowAggregator) {
  const auto at = [](std::uint32_t window, std::uint32_t lanes, std::uint64_t trees) {
    return window_at(window, 1, lanes, {.links = 1000, .trees = trees, .ranks = 1000});
  };
  EXPECT_EQ(at(32, 1, 1000), 32U);
  EXPECT_EQ(at(32, 4, 5000), window_of_lane(32, 1, 4));
  EXPECT_EQ(at(8, 1, 250), 8U) << "four ranks share one aggregator";
  EXPECT_EQ(at(8, 1, 125), 4U) << "eight ranks share one aggregator";
  EXPECT_EQ(at(8, 2, 250), 4U);
  EXPECT_EQ(at(8, 4, 500), 4U);
  EXPECT_EQ(at(8, 1, 1), 2U);
  EXPECT_EQ(at(1, 1, 1), 1U);
  EXPECT_EQ(window_at(32, 1, 1, {}), 32U) << "the rates are not known";
}

}  // namespace
}  // namespace tributary::manager
