// No choice may be slower than the ranks alone: not even where the times of operations differ by chance, and other load
// makes all paths slow for a while.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "client/tuning/adaptation.h"
#include "client/tuning/tree_segments.h"

namespace tributary::tuning {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kEightRanks = 8;
constexpr double kWire = 125;  // bytes per microsecond of each link

TreeShape shape_with(std::uint32_t aggregators) {
  return {
      .rates = {.links = 1'000'000'000, .trees = 1'000'000'000ULL * aggregators / kEightRanks, .ranks = 1'000'000'000},
      .lanes = aggregators,
      .lane_cycle = aggregators,
      .lightest_lane = 1.0 / aggregators,
      .levels = 1,
      .segment_bytes = 16 << 10};
}

/// Hosts and aggregators with equal links. Times differ by chance, and all paths are slow while other jobs run.
struct LoadedHosts {
  std::uint32_t aggregators = 2;
  std::uint64_t bytes = 256 << 10;
  double by_processors = 1.3;  // the ranks' time by their processors, as a multiple of their time by links
  double by_trees = 0;         // the further time, as a part of it, if trees carry all bytes
  double busy_factor = 1;      // all paths take this multiple while other jobs run
  double busy_s = 0.3;         // mean time for which other jobs run; between them there is a second
  double chance = 0.2;         // the greatest addition by chance, as a part of the time
};

/// A job that calls one operation after the other. It counts times without chance and other load.
class LoadedJob {
 public:
  LoadedJob(const LoadedHosts& hosts, std::uint64_t seed)
      : hosts_(hosts), shape_(shape_with(hosts.aggregators)), random_(seed * 0x9E3779B97F4A7C15ULL + 1) {}

  struct Times {
    double whole_us = 0, trees_us = 0, ranks_us = 0;
  };
  /// Returns the times of an operation of which trees carry this many segments.
  [[nodiscard]] Times with(std::uint64_t ours) const {
    const auto all = static_cast<double>(hosts_.bytes), segment = static_cast<double>(shape_.segment_bytes);
    const double by_trees = std::min(all, static_cast<double>(ours) * segment), by_ranks = all - by_trees;
    const double of_segment = segment * kEightRanks / kWire;  // on an aggregator's link
    const std::uint64_t in_lane = (ours + hosts_.aggregators - 1) / hosts_.aggregators;
    Times it{.trees_us = ours == 0 ? 0 : static_cast<double>(in_lane + 1) * of_segment + 72,
             .ranks_us = by_ranks == 0 ? 0 : alone_us(by_ranks)};
    const double by_links = (by_trees + by_ranks * 2 * (kEightRanks - 1) / kEightRanks) / kWire;
    const double by_processors = hosts_.by_processors * alone_us(all) * (1 + hosts_.by_trees * by_trees / all);
    const double parts = std::max(it.trees_us, it.ranks_us);
    it.whole_us = std::max({parts, by_links, by_processors});
    it.trees_us *= it.whole_us / parts;  // busy processors slow both parts down
    it.ranks_us *= it.whole_us / parts;
    return it;
  }
  [[nodiscard]] double least_us() const {
    double least = with(0).whole_us;
    for (std::uint64_t ours = 1; ours <= segments(); ++ours) least = std::min(least, with(ours).whole_us);
    return least;
  }
  /// Runs for this long, and returns the mean of the operations' times.
  double run(std::chrono::seconds time) {
    double sum = 0;
    int count = 0;
    for (const auto end = now_ + time; now_ < end; ++count) sum += one();
    return sum / count;
  }
  int amendments = 0;

 private:
  double alone_us(double bytes) const {
    double least = 1e18;
    for (const Algorithm it : schedule::algorithms(Collective::all_reduce)) {
      const Call call{Collective::all_reduce, kEightRanks, static_cast<std::uint64_t>(bytes)};
      least = std::min(least, estimate_ranks(figures_, call, it).time_us());
    }
    return least;
  }
  [[nodiscard]] std::uint64_t segments() const {
    return (hosts_.bytes + shape_.segment_bytes - 1) / shape_.segment_bytes;
  }
  double random() {
    random_ = random_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<double>(random_ >> 40) / (1 << 24);
  }
  double load() {
    while (now_ >= next_change_) {
      busy_ = !busy_;
      const double mean = busy_ ? hosts_.busy_s : 1;
      next_change_ += std::chrono::microseconds(static_cast<std::int64_t>(2e6 * mean * random()) + 1);
    }
    return busy_ ? hosts_.busy_factor : 1;
  }
  double one() {
    const Step step = adaptation_.policy().at(Collective::all_reduce, hosts_.bytes);
    std::uint64_t ours = step.path == Path::tree ? segments() : 0;
    if (step.path == Path::split) ours = tree_segments(figures_, hosts_.bytes, step.tree_share);
    const bool cut = ours > 0 && ours < segments();
    const Times times = with(ours);
    const double factor = load() * (1 + hosts_.chance * random()) * (random() < 0.03 ? 2 : 1);
    MeasuredOperation o{.number = number_++, .bytes = hosts_.bytes, .time_us = times.whole_us * factor};
    o.path = cut ? Path::split : ours > 0 ? Path::tree : Path::ranks;
    o.latency_us = o.time_us;
    if (cut) o.trees_us = times.trees_us * factor;
    if (cut) o.ranks_us = times.ranks_us * factor;
    now_ += std::chrono::microseconds(static_cast<std::int64_t>(o.time_us));
    if (adaptation_.add(o, now_)) {
      ++amendments;
      adaptation_.took_effect(number_, now_ += 300us);
    }
    return times.whole_us;
  }

  const LoadedHosts hosts_;
  const TreeShape shape_;
  const GroupShape group_{.ranks = kEightRanks, .link_rate = 1'000'000'000};
  const Figures figures_ = with_trees(default_figures(group_, 2), shape_);
  Adaptation adaptation_{figures_, kEightRanks, default_policy(group_, 2, shape_)};
  Adaptation::TimePoint now_{1h}, next_change_{1h};
  std::uint64_t number_ = 0, random_;
  bool busy_ = true;
};

constexpr std::uint64_t kSeeds = 10;
constexpr LoadedHosts kLoads[] = {{}, {.busy_factor = 1.4}, {.busy_factor = 1.4, .busy_s = 0.05, .chance = 0.3}};

TEST(NeverSlower, WhereProcessorsAreTheBoundNoChoiceIsSlowerThanTheRanksAlone) {
  int over = 0;
  for (LoadedHosts hosts : kLoads) {
    for (const std::uint32_t aggregators : {2U, 4U}) {
      for (const std::uint64_t bytes : {64ULL << 10, 256ULL << 10, 1ULL << 20}) {
        for (const double by_trees : {0.3, 1.0}) {
          hosts = {aggregators, bytes, 1.3, by_trees, hosts.busy_factor, hosts.busy_s, hosts.chance};
          double sum = 0;
          for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
            LoadedJob job(hosts, seed);
            job.run(2s);
            const double part = job.run(10s) / job.with(0).whole_us;
            over += part > 1.05 ? 1 : 0;
            sum += part;
          }
          EXPECT_LT(sum / kSeeds, 1.03) << aggregators << " aggregators, " << bytes << " bytes, " << by_trees
                                        << " more by trees, " << hosts.busy_factor
                                        << " times as long beside other jobs";
        }
      }
    }
  }
  EXPECT_LE(over, 8) << "of " << 36 * kSeeds << " jobs take 1.05 of the ranks' time";
}

TEST(NeverSlower, WhereLinksAreTheBoundTheSplitIsFoundBesideOtherLoad) {
  for (LoadedHosts hosts : kLoads) {
    for (const std::uint32_t aggregators : {2U, 4U}) {
      for (const std::uint64_t bytes : {512ULL << 10, 1ULL << 20}) {
        hosts = {aggregators, bytes, 0.85, 0, hosts.busy_factor, hosts.busy_s, hosts.chance};
        double sum = 0, ranks = 0;
        for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
          LoadedJob job(hosts, seed);
          job.run(2s);
          sum += job.run(10s) / job.least_us();
          ranks += job.with(0).whole_us / job.least_us();
        }
        EXPECT_LT(sum / kSeeds, std::min(1.08, ranks / kSeeds)) << aggregators << " aggregators, " << bytes << " bytes";
      }
    }
  }
}

// The split is quick only while it is on trial, as by chance.
TEST(NeverSlower, ANewChoiceMustConfirmItself) {
  const TreeShape shape = shape_with(2);
  const GroupShape group{.ranks = kEightRanks, .link_rate = 1'000'000'000};
  constexpr std::uint64_t kSmallBytes = 256 << 10;
  Adaptation adaptation(with_trees(default_figures(group, 2), shape), kEightRanks, default_policy(group, 2, shape));
  Adaptation::TimePoint now{1h};
  int splits = 0, changes_to_split = 0;
  for (std::uint64_t number = 0; number < 400; ++number) {
    const Path path = adaptation.policy().at(Collective::all_reduce, kSmallBytes).path;
    MeasuredOperation o{.number = number, .bytes = kSmallBytes, .path = path, .time_us = 5'000, .latency_us = 5'000};
    if (path == Path::tree) o.time_us = 20'000;
    if (path == Path::split) {
      o.time_us = changes_to_split == 1 ? 3'000 : 6'000;
      o.trees_us = o.ranks_us = o.time_us;
      ++splits;
    }
    if (const auto asked = adaptation.add(o, now += 5ms)) {
      changes_to_split += asked->step.path == Path::split ? 1 : 0;
      adaptation.took_effect(number + 1, now += 300us);
    }
  }
  ASSERT_GE(changes_to_split, 2) << "the split has won its trial";
  EXPECT_EQ(adaptation.policy().at(Collective::all_reduce, kSmallBytes).path, Path::ranks);
  EXPECT_LT(splits, 50);
}

TEST(NeverSlower, TheRanksAloneWinByTwoHundredths) {
  const TreeShape shape = shape_with(4);
  const GroupShape group{.ranks = kEightRanks, .link_rate = 1'000'000'000};
  constexpr std::uint64_t kLargeBytes = 4 << 20;
  Adaptation adaptation(with_trees(default_figures(group, 2), shape), kEightRanks, default_policy(group, 2, shape));
  Adaptation::TimePoint now{1h};
  const auto path = [&] { return adaptation.policy().at(Collective::all_reduce, kLargeBytes).path; };
  ASSERT_EQ(path(), Path::split);
  for (std::uint64_t number = 0; number < 60; ++number) {
    MeasuredOperation o{.number = number, .bytes = kLargeBytes, .path = path(), .time_us = 60'000};
    if (path() != Path::ranks) o.time_us = path() == Path::split ? 61'500 : 90'000;
    if (path() == Path::split) o.trees_us = o.ranks_us = o.time_us;
    o.latency_us = o.time_us;
    now += 60ms;
    if (adaptation.add(o, now)) adaptation.took_effect(number + 1, now += 300us);
  }
  EXPECT_EQ(path(), Path::ranks);
}

TEST(NeverSlower, OtherLoadCausesFewTrials) {
  int amendments = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    LoadedJob job({.by_trees = 0.3, .busy_factor = 1.6}, seed);
    job.run(60s);
    amendments += job.amendments;
  }
  EXPECT_LT(amendments / static_cast<int>(kSeeds), 50) << "a useless trial delays the next one";
}

}  // namespace
}  // namespace tributary::tuning
