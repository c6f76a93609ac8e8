// Operations of few segments: their times differ much from each other, and few shares of a split can be told apart.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "client/tuning/adaptation.h"
#include "client/tuning/tree_segments.h"

namespace tributary::tuning {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kShortBytes = 64 << 10;
constexpr std::uint32_t kFewRanks = 4;
constexpr std::uint64_t kSegments = 4;
constexpr TreeShape kShape{.rates = {.links = 1'000'000'000, .trees = 500'000'000, .ranks = 1'000'000'000},
                           .lanes = 2,
                           .lane_cycle = 2,
                           .lightest_lane = 0.5,
                           .levels = 1,
                           .segment_bytes = 16 << 10};

/// A job over four links and two aggregators' links of 1 Gbit/s. The times come from such hosts: `time_us` has them by
/// the number of segments that the trees carry. Each time differs from them by chance.
struct ShortJob {
  std::array<double, kSegments + 1> time_us;
  double chance = 0.3;  // the greatest difference from the time, as a part of it
  std::uint64_t dice = 1;
  Figures figures = with_trees(default_figures({.ranks = kFewRanks}, 2), kShape);
  Adaptation adaptation{figures, kFewRanks, default_policy({.ranks = kFewRanks}, 2, kShape)};
  Adaptation::TimePoint now{1h};
  std::uint64_t number = 0;

  double one() {
    const Step step = adaptation.policy().at(Collective::all_reduce, kShortBytes);
    std::uint64_t ours = step.path == Path::tree ? kSegments : 0;
    if (step.path == Path::split) ours = tree_segments(figures, kShortBytes, step.tree_share);
    const bool cut = ours > 0 && ours < kSegments;
    dice = dice * 6364136223846793005ULL + 1442695040888963407ULL;
    const double factor = 1 + chance * (static_cast<double>(dice >> 40) / (1 << 23) - 1);
    MeasuredOperation o{.number = number++, .bytes = kShortBytes, .time_us = time_us[ours] * factor};
    o.path = cut ? Path::split : ours > 0 ? Path::tree : Path::ranks;
    if (cut) {
      const double part = static_cast<double>(ours) / kSegments;
      o.trees_us = std::min(o.time_us, part * time_us[kSegments] * factor);
      o.ranks_us = o.time_us;
    }
    now += std::chrono::microseconds(static_cast<std::int64_t>(o.time_us));
    if (adaptation.add(o, now)) adaptation.took_effect(number, now += 500us);
    return o.time_us;
  }
};

TEST(ShortOperations, TakeAtMostAFewHundredthsMoreThanTheQuickestWay) {
  constexpr std::array<std::array<double, kSegments + 1>, 3> kWorlds{
      {{{820, 880, 930, 1300, 1150}}, {{820, 870, 1000, 1500, 1500}}, {{900, 720, 700, 1300, 1150}}}};
  int late = 0;
  for (const auto& times : kWorlds) {
    const double least = std::ranges::min(times);
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
      ShortJob job{.time_us = times, .dice = seed};
      for (int i = 0; i < 2'000; ++i) job.one();
      double sum = 0;
      for (int i = 0; i < 30'000; ++i) sum += job.one();
      const double part = sum / 30'000 / least;
      EXPECT_LT(part, 1.08) << "seed " << seed << ", least time " << least;
      late += part > 1.04 ? 1 : 0;  // one segment instead of two takes 1.03
    }
  }
  EXPECT_LE(late, 5) << "of 150 jobs";
}

}  // namespace
}  // namespace tributary::tuning
