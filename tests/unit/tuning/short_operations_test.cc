// Operations of few segments: their times differ much from each other, and few shares of a split can be told apart.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

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

/// A job of small operations, for which trees and ranks take nearly the same time. Now and then other processes run for
/// a few milliseconds, which are the time of some twenty operations.
class SmallJob {
 public:
  SmallJob(double ranks_us, double chance, bool busy, std::uint64_t seed)
      : ranks_us_(ranks_us), chance_(chance), busy_(busy), dice_(seed) {}

  /// Runs for this long, and returns how often another path won.
  int run(std::chrono::seconds time) {
    int changes = 0;
    Path last = adaptation_.policy().at(Collective::all_reduce, 4).path;
    for (const auto end = now_ + time; now_ < end;) {
      one();
      const auto news = adaptation_.take_news();
      if (!news || news->step.path == last) continue;
      last = news->step.path;
      ++changes;
    }
    return changes;
  }
  int amendments = 0;

 private:
  static constexpr double kTreesUs = 150;

  double uniform() {
    dice_ = dice_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<double>(dice_ >> 40) / (1 << 24);
  }
  double by_chance() {
    double sum = 0;
    for (int i = 0; i < 12; ++i) sum += uniform();
    return std::exp(chance_ * (sum - 6));  // the sum is nearly normal, with a deviation of 1
  }
  void one() {
    if (now_ >= turn_) {
      others_run_ = busy_ && !others_run_;
      turn_ = now_ + std::chrono::microseconds(static_cast<int>(-std::log(1 - uniform()) * (others_run_ ? 3e3 : 9e3)));
    }
    const Path path = adaptation_.policy().at(Collective::all_reduce, 4).path;
    const double time_us = (path == Path::tree ? kTreesUs : ranks_us_) * by_chance() * (others_run_ ? 1.5 : 1);
    now_ += std::chrono::nanoseconds(static_cast<std::int64_t>(1000 * time_us));
    if (adaptation_.add({.number = number_++, .bytes = 4, .path = path, .time_us = time_us}, now_)) {
      adaptation_.took_effect(number_, now_ += 500us);
      ++amendments;
    }
  }

  const double ranks_us_, chance_;
  const bool busy_;
  std::uint64_t dice_;
  const Figures figures_ = with_trees(default_figures({.ranks = 8}, 2), kShape);
  Adaptation adaptation_{figures_, 8, default_policy({.ranks = 8}, 2, kShape)};
  Adaptation::TimePoint now_{1h}, turn_ = now_;
  bool others_run_ = false;
  std::uint64_t number_ = 0;
};

TEST(ShortOperations, OperationsOfFourBytesKeepTheirPathIfBothPathsAreNearlyEquallyQuick) {
  int all = 0, amendments = 0;
  for (const double ranks_us : {150.0, 154.5}) {
    for (const double chance : {0.15, 0.3}) {
      for (const bool busy : {false, true}) {
        for (std::uint64_t seed = 1; seed <= 2; ++seed) {
          SmallJob job(ranks_us, chance, busy, seed);
          const int changes = job.run(120s);
          EXPECT_LE(changes, 4) << ranks_us << " us, chance " << chance << ", busy " << busy << ", seed " << seed;
          if (!busy) amendments += job.amendments;
          all += changes;
        }
      }
    }
  }
  EXPECT_LE(all, 24) << "of 16 jobs";
  EXPECT_LE(amendments, 100) << "of 8 jobs: five slow operations in a row are chance";
}

}  // namespace
}  // namespace tributary::tuning
