// Operations that overlap, as NCCL and DDP call them: they end in pairs, and the first of each burst fills the trees.
#include <gtest/gtest.h>

#include <algorithm>

#include "client/tuning/adaptation.h"
#include "client/tuning/size_class.h"
#include "client/tuning/tree_segments.h"

namespace tributary::tuning {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kChunk = 256 << 10;
constexpr std::uint32_t kNodes = 4;
constexpr std::uint64_t kAbreast = 8;
constexpr std::uint64_t kBurst = 32;
constexpr TreeShape kEqualLinks{.rates = {.links = 1'000'000'000, .trees = 1'000'000'000, .ranks = 1'000'000'000},
                                .lanes = 4,
                                .lane_cycle = 4,
                                .lightest_lane = 0.25,
                                .levels = 1,
                                .segment_bytes = 32 << 10};

/// A job over four links and four aggregators' links of 1 Gbit/s, with the times of such hosts.
struct Stream {
  std::uint64_t dice = 1;
  Figures figures = with_trees(default_figures({.ranks = kNodes}, 2), kEqualLinks);
  Adaptation adaptation{figures, kNodes, default_policy({.ranks = kNodes}, 2, kEqualLinks)};
  Adaptation::TimePoint now{1h};
  std::uint64_t number = 0;

  double random() {
    dice = dice * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<double>(dice >> 40) / (1 << 24);
  }

  double one() {
    constexpr double kStreamUs = 2350, kRanksUs = 3500, kFillUs = 3 * kStreamUs;
    const Step step = adaptation.policy().at(Collective::all_reduce, kChunk);
    const std::uint64_t at = number % kBurst;
    MeasuredOperation o{.number = number++, .bytes = kChunk, .path = step.path};
    const double factor = 0.9 + 0.2 * random();
    if (step.path == Path::ranks) {  // one after the other
      o.time_us = o.latency_us = kRanksUs * factor;
    } else {
      const double share = step.path == Path::tree ? 1 : static_cast<double>(step.tree_share) / kWholeShare;
      const double mean =
          step.path == Path::tree ? kStreamUs : std::max((1 - share) * kRanksUs, 0.95 * kStreamUs + 700);
      o.under_way = std::min(kAbreast, kBurst - at) - 1;
      const double rhythm = step.path == Path::tree ? (at % 2 == 0 ? 0.2 : 1.8) : 1;
      o.time_us = (at == 0 ? kFillUs : rhythm * mean) * factor;
      o.latency_us = at == 0 ? o.time_us : kAbreast * mean * factor;
      o.trees_us = step.path == Path::split ? 2000 * factor : 0;  // a lane's single segment takes as long as two
      o.ranks_us = step.path == Path::split ? mean * factor : 0;
    }
    if (random() < 0.002) {  // a connection stalls
      o.time_us += 30'000;
      o.latency_us += 30'000;
    }
    now += std::chrono::microseconds(static_cast<std::int64_t>(o.time_us));
    if (adaptation.add(o, now)) adaptation.took_effect(number + kAbreast, now += 500us);
    return o.time_us;
  }
  double mean_of(int operations) {
    double sum = 0;
    for (int i = 0; i < operations; ++i) sum += one();
    return sum / operations;
  }
};

TEST(OverlappingOperations, StayWithTheTreesThatCarryTheStreamSoonest) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Stream job{.dice = seed};
    job.mean_of(2'000);
    EXPECT_LT(job.mean_of(20'000), 1.1 * 2'500) << "seed " << seed;
    EXPECT_EQ(job.adaptation.policy().at(Collective::all_reduce, kChunk).path, Path::tree) << "seed " << seed;
  }
}

TEST(OverlapMean, CountsAsManyOperationsAsAreUnderWay) {
  OverlapMean mean;
  const MeasuredOperation first{.time_us = 10, .latency_us = 10, .under_way = 2};
  const MeasuredOperation next{.time_us = 1, .latency_us = 12, .under_way = 2};
  EXPECT_FALSE(mean.add(first, 1));
  EXPECT_FALSE(mean.add(next, 1));
  const auto three = mean.add(next, 1);
  ASSERT_TRUE(three);
  EXPECT_DOUBLE_EQ(three->whole_us, 4);
  EXPECT_EQ(mean.abreast(), 3U);
}

TEST(OverlapMean, EndsWithTheLastOperationOfABurst) {
  OverlapMean mean;
  EXPECT_FALSE(mean.add({.time_us = 10, .latency_us = 10, .under_way = 1}, 1));
  const auto two = mean.add({.time_us = 2, .latency_us = 12, .under_way = 0}, 2);
  ASSERT_TRUE(two);
  EXPECT_DOUBLE_EQ(two->whole_us, 7);
}

TEST(OverlapMean, LeavesOutTheRestOfALongBurst) {
  OverlapMean mean;
  EXPECT_FALSE(mean.add({.time_us = 10, .latency_us = 10, .under_way = 1}, 1));
  EXPECT_TRUE(mean.add({.time_us = 2, .latency_us = 12, .under_way = 1}, 1));
  EXPECT_FALSE(mean.add({.time_us = 2, .latency_us = 4, .under_way = 0}, 1));
  EXPECT_EQ(mean.abreast(), 2U);
}

TEST(OverlapMean, TheMeanOfOneOperationIsItsTime) {
  OverlapMean mean;
  const auto one = mean.add({.time_us = 10, .latency_us = 10, .trees_us = 8}, 1);
  ASSERT_TRUE(one);
  EXPECT_DOUBLE_EQ(one->whole_us, 10);
  EXPECT_DOUBLE_EQ(one->trees_us, 8);
  EXPECT_EQ(mean.abreast(), 1U);
}

}  // namespace
}  // namespace tributary::tuning
