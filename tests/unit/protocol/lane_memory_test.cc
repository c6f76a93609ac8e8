#include "tributary/protocol/lane_memory.h"

#include <gtest/gtest.h>

#include "tributary/protocol/frame.h"

namespace tributary {
namespace {

constexpr std::uint64_t kAll64 = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint32_t kAll32 = std::numeric_limits<std::uint32_t>::max();

TEST(LaneMemory, IsABufferForEachChildAndTheResultInEachSlot) {
  EXPECT_EQ(lane_memory_bytes(1, 1, 1), 2U);
  EXPECT_EQ(lane_memory_bytes(4, 32, 65536), 32U * 65536 * 5);
  EXPECT_EQ(lane_memory_bytes(kChildrenMax, kWindowMax, kSegmentBytesMax), (256ULL << 20) * 65);
  EXPECT_EQ(lane_reservation_bytes(4, 32, 65536), lane_memory_bytes(4, 32, 65536) + (64U << 10));
}

TEST(LaneMemory, StaysAtTheLargestNumberInPlaceOfOverflow) {
  EXPECT_EQ(lane_memory_bytes(kAll32, 1, 1), 1ULL << 32);
  EXPECT_EQ(lane_memory_bytes(kAll32, kAll32, kAll32), kAll64);
  EXPECT_EQ(lane_reservation_bytes(kAll32, kAll32, kAll32), kAll64);
  EXPECT_EQ(saturating_sum(kAll64, 0), kAll64);
  EXPECT_EQ(saturating_sum(kAll64 - 1, 2), kAll64);
  EXPECT_EQ(saturating_product(1ULL << 32, 1ULL << 32), kAll64);
}

TEST(LaneMemory, CountsTheChildrenThatFit) {
  for (const std::uint32_t window : {1U, 32U, kWindowMax}) {
    for (const std::uint32_t segment_bytes : {kSegmentBytesMin, 65536U, kSegmentBytesMax}) {
      for (std::uint32_t children = 1; children <= kChildrenMax; ++children) {
        const std::uint64_t bytes = lane_reservation_bytes(children, window, segment_bytes);
        EXPECT_EQ(children_that_fit(bytes, window, segment_bytes), children);
        EXPECT_EQ(children_that_fit(bytes - 1, window, segment_bytes), children - 1);
      }
    }
  }
  EXPECT_EQ(children_that_fit(0, 32, 65536), 0U);
  EXPECT_EQ(children_that_fit(kAll64, 1, 1), kAll32);
  EXPECT_EQ(children_that_fit(kAll64 - 1, kAll32, kAll32), 0U);
}

}  // namespace
}  // namespace tributary
