// The memory that all workers of an aggregator may promise together: lanes may get all of it; other uses, which can do
// without it, at most half.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "aggregator/worker/worker.h"

namespace tributary::aggregator {
namespace {

TEST(MemoryBudget, LetsOptionalUsesTakeHalfAtMost) {
  MemoryBudget budget(100);
  EXPECT_FALSE(budget.reserve_spare(51));
  EXPECT_TRUE(budget.reserve_spare(20));
  EXPECT_TRUE(budget.reserve_spare(30));
  EXPECT_FALSE(budget.reserve_spare(1));
  EXPECT_EQ(budget.in_use(), 50U);
  EXPECT_TRUE(budget.reserve(50));
  EXPECT_FALSE(budget.reserve(1));
  budget.give_back(50);
  EXPECT_FALSE(budget.reserve_spare(1));
  budget.give_back(1);
  EXPECT_TRUE(budget.reserve_spare(1));
}

TEST(MemoryBudget, MemoryOfLanesCountsAgainstBothLimits) {
  MemoryBudget budget(100);
  EXPECT_TRUE(budget.reserve(60));
  EXPECT_FALSE(budget.reserve_spare(1));
  EXPECT_TRUE(budget.reserve(40));
}

TEST(MemoryBudget, IsNotDeceivedByNumbersThatOverflow) {
  MemoryBudget budget(100);
  EXPECT_TRUE(budget.reserve_spare(10));
  EXPECT_FALSE(budget.reserve_spare(UINT64_MAX));
  EXPECT_FALSE(budget.reserve_spare(UINT64_MAX - 5));
  EXPECT_FALSE(budget.reserve(UINT64_MAX - 5));
  EXPECT_EQ(budget.in_use(), 10U);
}

TEST(MemoryBudget, KeepsItsBoundWhenThreadsReserveAtOnce) {
  MemoryBudget budget(2000);
  std::atomic<std::uint64_t> got{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int call = 0; call < 5000; ++call) got += budget.reserve_spare(1) ? 1 : 0;
    });
  }
  threads.clear();
  EXPECT_EQ(got, 1000U);
  EXPECT_EQ(budget.in_use(), 1000U);
}

}  // namespace
}  // namespace tributary::aggregator
