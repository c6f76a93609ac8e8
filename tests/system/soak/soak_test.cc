// Minutes of mixed collectives, with groups that come and go and an aggregator that is killed from time to time. The
// memory, files and threads of every process must stop growing.
//
// TRIBUTARY_SOAK_SECONDS (300), TRIBUTARY_CHAOS_SEED.
#include <fstream>
#include <random>

#include "tests/system/chaos/rank_fleet.h"
#include "tests/system/chaos/workshop.h"
#include "tests/system/soak/figures.h"

namespace tributary::soak {
namespace {

using chaos::RankFleet;
using cli::LocalCluster;
using std::chrono::milliseconds;

constexpr std::uint32_t kRanks = 6;
constexpr std::uint32_t kAggregators = 4;
constexpr std::size_t kVictim = 0;  // each kill restarts this aggregator, so the test does not measure it
constexpr double kWarmUp = 0.4;     // pools and caches may fill in this part of the whole time
constexpr double kKillPeriodSeconds = 15;
constexpr double kSamplesWanted = 120;
constexpr milliseconds kSilenceMax{45'000};

// The greatest allowed growth between warm-up and end. A leak of a kilobyte for each group (about a thousand groups),
// or of a file for each kill, exceeds it.
constexpr double kResidentGrowthMiB = 1.5;
constexpr double kResidentGrowthShare = 0.03;
constexpr double kFilesGrowth = 4;
constexpr double kThreadsGrowth = 2;

struct Series {
  std::string name;
  pid_t pid = 0;
  std::vector<Sample> samples;
};

class Soak {
 public:
  Soak(double seconds, std::uint64_t seed) : seconds_(seconds), begin_us_(chaos::now_us()) {
    cluster_ = workshop_.start_cluster({.ranks = kRanks, .aggregators = kAggregators, .levels = 2}, 2);
    stop_file_ = workshop_.folder() + "/stop";
    auto fleet =
        RankFleet::start({.ranks = kRanks,
                          .command = {TRIBUTARY_CHAOS_RANK, "--stop-file", stop_file_, "--seed", std::to_string(seed),
                                      "--bytes-max", "262144", "--rounds-per-life", "25"},
                          .folder = workshop_.folder(),
                          .cluster = cluster_.get(),
                          .environment = {{"TRIBUTARY_TIMEOUT", "30"}, {"TRIBUTARY_LOG", "info"}}});
    if (!fleet) throw std::runtime_error(fleet.error().message);
    fleet_ = std::move(*fleet);
    list_processes();
  }

  void run() {
    fleet_->listen(milliseconds(30'000), [this] { return fleet_->all_ready() || troubled(); });
    ASSERT_TRUE(fleet_->all_ready()) << trouble_;
    double next_kill = elapsed() + kKillPeriodSeconds;
    while (elapsed() < seconds_) {
      fleet_->listen(milliseconds(static_cast<std::int64_t>(seconds_ * 1000 / kSamplesWanted)));
      ASSERT_FALSE(troubled()) << trouble_;
      take_samples();
      if (elapsed() < next_kill) continue;
      next_kill += kKillPeriodSeconds;
      cluster_->kill(kVictim);
      const auto ok = cluster_->restart(kVictim);
      ASSERT_TRUE(ok) << ok.error().message;
    }
  }

  void end() {
    std::ofstream(stop_file_) << "stop\n";
    fleet_->listen(milliseconds(60'000), [this] { return fleet_->all_ended() || troubled(); });
    ASSERT_TRUE(fleet_->all_ended()) << fleet_->trouble(milliseconds(0));
    ASSERT_FALSE(troubled()) << trouble_;
    std::uint64_t operations = 0;
    for (const chaos::RankState& rank : fleet_->ranks()) {
      EXPECT_TRUE(rank.done);
      operations += rank.operations;
    }
    std::printf("%llu operations in %llu rounds of all ranks\n", static_cast<unsigned long long>(operations),
                static_cast<unsigned long long>(fleet_->ranks()[0].last.number));
  }

  void expect_level() const {
    std::printf("%-14s %26s %26s %26s\n", "process", "resident (MiB)", "open files", "threads");
    for (const Series& series : series_) {
      const std::vector<Sample> late = after_warm_up(series);
      ASSERT_GE(late.size(), 10U) << series.name;
      const Trend resident = trend_of(late, [](const Sample& s) { return s.resident_mib; });
      const Trend files = trend_of(late, [](const Sample& s) { return s.open_files; });
      const Trend threads = trend_of(late, [](const Sample& s) { return s.threads; });
      std::printf("%-14s %12.1f, added %6.2f %12.1f, added %6.2f %12.1f, added %6.2f\n", series.name.c_str(),
                  resident.mean, resident.growth, files.mean, files.growth, threads.mean, threads.growth);
      EXPECT_LE(resident.growth, kResidentGrowthMiB + kResidentGrowthShare * resident.mean) << series.name;
      EXPECT_LE(files.growth, kFilesGrowth) << series.name;
      EXPECT_LE(threads.growth, kThreadsGrowth) << series.name;
    }
  }

 private:
  [[nodiscard]] double elapsed() const { return static_cast<double>(chaos::now_us() - begin_us_) / 1e6; }

  [[nodiscard]] bool troubled() {
    trouble_ = fleet_->trouble(kSilenceMax);
    return !trouble_.empty();
  }

  void list_processes() {
    series_.push_back({"manager", cluster_->pid_of(LocalCluster::kManager), {}});
    for (std::size_t i = 0; i < cluster_->aggregators(); ++i) {
      if (i != kVictim) series_.push_back({cluster_->name_of(i), cluster_->pid_of(i), {}});
    }
    for (std::uint32_t rank = 0; rank < kRanks; ++rank)
      series_.push_back({"rank " + std::to_string(rank), fleet_->rank(rank).process->pid(), {}});
  }

  void take_samples() {
    for (Series& series : series_) {
      const auto sample = sample_process(series.pid, elapsed());
      ASSERT_TRUE(sample) << series.name << " has ended";
      series.samples.push_back(*sample);
    }
  }

  [[nodiscard]] std::vector<Sample> after_warm_up(const Series& series) const {
    std::vector<Sample> late;
    for (const Sample& sample : series.samples) {
      if (sample.seconds >= kWarmUp * seconds_) late.push_back(sample);
    }
    return late;
  }

  const double seconds_;
  const std::uint64_t begin_us_;
  chaos::Workshop workshop_;
  std::string stop_file_;
  std::unique_ptr<LocalCluster> cluster_;
  std::unique_ptr<RankFleet> fleet_;
  std::vector<Series> series_;
  std::string trouble_;
};

TEST(Soak, MemoryFilesAndThreadsOfEveryProcessLevelOff) {
  const std::uint64_t seed = chaos::number_from_environment("TRIBUTARY_CHAOS_SEED", std::random_device{}());
  const std::uint64_t seconds = chaos::number_from_environment("TRIBUTARY_SOAK_SECONDS", 300);
  std::printf("seed %llu, %llu s\n", static_cast<unsigned long long>(seed), static_cast<unsigned long long>(seconds));
  Soak soak(static_cast<double>(seconds), seed);
  soak.run();
  if (!HasFatalFailure()) soak.end();
  if (!HasFatalFailure()) soak.expect_level();
}

}  // namespace
}  // namespace tributary::soak
