// Measures the price of an aggregator's end for real ranks: the longest pause between two operations, and the time
// until all ranks are on trees again. In each round it kills (SIGKILL) or stops (SIGSTOP) an aggregator that carries a
// tree in use, and brings it back afterwards. `--spinners N` adds N processes that only take processor time.
// With `--watch SECONDS` it disturbs no process, and counts the trees that ranks give up nevertheless, which are false
// alarms.
#include <gtest/gtest.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fstream>

#include "tests/system/chaos/rank_fleet.h"
#include "tests/system/chaos/trees_in_use.h"
#include "tests/system/chaos/workshop.h"

namespace tributary::chaos {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLimit{60'000};

struct Options {
  std::uint32_t ranks = 4;
  std::uint32_t aggregators = 6;
  std::uint32_t levels = 2;
  int repeats = 20;
  int spinners = 0;
  int watch_seconds = 0;
  bool stop = false;
};

/// Processes that spin until the destructor ends them.
class Spinners {
 public:
  explicit Spinners(int count) {
    for (int i = 0; i < count; ++i) {
      const pid_t child = ::fork();
      if (child > 0) children_.push_back(child);
      while (child == 0) {
        if (::getppid() == 1) ::_exit(0);
      }
    }
  }
  Spinners(const Spinners&) = delete;
  Spinners& operator=(const Spinners&) = delete;
  ~Spinners() {
    for (const pid_t child : children_) ::kill(child, SIGKILL);
  }

 private:
  std::vector<pid_t> children_;
};

class FailoverBench {
 public:
  explicit FailoverBench(const Options& options) : options_(options) {
    cluster_ =
        workshop_.start_cluster({.ranks = options.ranks, .aggregators = options.aggregators, .levels = options.levels},
                                1, 1, "failed_exclusion: 1s\n");
    stop_file_ = workshop_.folder() + "/stop";
    auto fleet = RankFleet::start(
        {.ranks = options.ranks,
         .command = {TRIBUTARY_CHAOS_RANK, "--stop-file", stop_file_, "--world-only", "--bytes-max", "65536"},
         .folder = workshop_.folder(),
         .cluster = cluster_.get(),
         .environment = {{"TRIBUTARY_TIMEOUT", "60"}, {"TRIBUTARY_LOCAL", "off"}},
         .host_ids = {}});
    if (!fleet) throw std::runtime_error(fleet.error().message);
    fleet_ = std::move(*fleet);
    fleet_->on_round = [this](std::size_t rank, const RoundReport& report) { note(rank, report); };
    until([this] { return fleet_->all_in_network(); }, "no tree at first");
  }

  void disturb() {
    for (int i = 0; i < options_.repeats; ++i) disturb_once();
    print("longest pause, ms", pauses_);
    print("until all are on trees, ms", returns_);
  }

  void watch() {
    const std::uint64_t failovers = failovers_of({"world"}, *fleet_), rounds = fleet_->rank(0).last.number;
    fleet_->listen(std::chrono::seconds(options_.watch_seconds));
    check();
    std::printf("%llu rounds in %d s, %llu trees given up\n",
                static_cast<unsigned long long>(fleet_->rank(0).last.number - rounds), options_.watch_seconds,
                static_cast<unsigned long long>(failovers_of({"world"}, *fleet_) - failovers));
  }

  void end() {
    std::ofstream(stop_file_) << "stop\n";
    until([this] { return fleet_->all_ended(); }, "the ranks do not end");
  }

 private:
  struct Seen {
    std::uint64_t returns_before = 0;
    std::uint64_t back_us = 0;
  };

  void note(std::size_t rank, const RoundReport& report) {
    if (seen_.empty()) return;
    gap_us_ = std::max(gap_us_, report.gap_us);
    const GroupReport& world = report.groups[0];
    if (seen_[rank].back_us == 0 && world.in_network && world.returns > seen_[rank].returns_before)
      seen_[rank].back_us = report.end_us;
  }

  void disturb_once() {
    std::map<std::size_t, std::set<std::string>> targets;
    until([&] { return fleet_->all_in_network() && !(targets = trees_in_use(*cluster_, *fleet_)).empty(); },
          "no tree is in use");
    const std::size_t victim = std::next(targets.begin(), turn_++ % static_cast<std::ptrdiff_t>(targets.size()))->first;
    std::vector<Seen> seen;
    for (const RankState& rank : fleet_->ranks()) seen.push_back({.returns_before = rank.last.groups[0].returns});
    gap_us_ = 0;
    const std::uint64_t begin = now_us();
    seen_ = std::move(seen);
    options_.stop ? void(::kill(cluster_->pid_of(victim), SIGSTOP)) : cluster_->kill(victim);
    until([this] { return std::ranges::all_of(seen_, [](const Seen& one) { return one.back_us != 0; }); },
          "no way back to a tree");
    const auto last = std::ranges::max_element(seen_, {}, &Seen::back_us);
    returns_.push_back(static_cast<double>(last->back_us - begin) / 1000);
    pauses_.push_back(static_cast<double>(gap_us_) / 1000);
    seen_.clear();
    if (options_.stop) {
      ::kill(cluster_->pid_of(victim), SIGCONT);
    } else if (const auto ok = cluster_->restart(victim); !ok) {
      throw std::runtime_error(ok.error().message);
    }
    if (const auto ok = cluster_->wait_until_serving(); !ok) throw std::runtime_error(ok.error().message);
    fleet_->listen(milliseconds(1500));  // until the manager may plan with this aggregator again
  }

  void check() {
    if (const std::string trouble = fleet_->trouble(kLimit); !trouble.empty()) throw std::runtime_error(trouble);
  }
  void until(const std::function<bool()>& done, const char* otherwise) {
    fleet_->listen(kLimit, done);
    check();
    if (!done()) throw std::runtime_error(otherwise);
  }

  static void print(const char* what, std::vector<double> values) {
    std::ranges::sort(values);
    const auto at = [&](double share) {
      return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
    };
    std::printf("%-28s least %8.1f  median %8.1f  nine of ten %8.1f  most %8.1f\n", what, values.front(), at(0.5),
                at(0.9), values.back());
  }

  const Options options_;
  Workshop workshop_;
  std::unique_ptr<cli::LocalCluster> cluster_;
  std::unique_ptr<RankFleet> fleet_;
  std::string stop_file_;
  std::vector<Seen> seen_;  // by rank; filled while an aggregator is away
  std::uint64_t gap_us_ = 0;
  std::ptrdiff_t turn_ = 0;
  std::vector<double> pauses_, returns_;
};

int run(int argc, char** argv) {
  CLI::App app("The price of an aggregator's end");
  Options options;
  app.add_option("--ranks", options.ranks);
  app.add_option("--aggregators", options.aggregators);
  app.add_option("--levels", options.levels);
  app.add_option("--repeats", options.repeats);
  app.add_option("--spinners", options.spinners);
  app.add_option("--watch", options.watch_seconds);
  app.add_flag("--stop", options.stop, "SIGSTOP in place of SIGKILL");
  CLI11_PARSE(app, argc, argv);
  const Spinners spinners(options.spinners);
  FailoverBench bench(options);
  options.watch_seconds > 0 ? bench.watch() : bench.disturb();
  bench.end();
  return 0;
}

}  // namespace
}  // namespace tributary::chaos

int main(int argc, char** argv) {
  try {
    return tributary::chaos::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "failover_bench: %s\n", error.what());
    return 1;
  }
}
