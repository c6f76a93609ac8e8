// The costs of groups of many ranks: to meet, to get trees, to lose an aggregator in mid-operation, to go on, and to
// end. Bytes count whole frames, headers included, by type.
#include <CLI/CLI.hpp>
#include <bit>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "tests/simulation/cluster/cluster.h"

namespace tributary::simulation {
namespace {

using namespace std::chrono_literals;
using transport::Duration;
using transport::SimStatistics;

constexpr std::uint64_t kStepsBetweenLooks = 4096;
constexpr std::uint32_t kFanOut = 64;

std::size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * 4096;
}

std::uint32_t aggregators_for(std::uint32_t ranks) {
  std::uint32_t all = 0;
  for (std::uint32_t width = ranks; width > 1 || all == 0;) all += width = (width + kFanOut - 1) / kFanOut;
  return all + 1;  // one more aggregator, to replace a lost one
}

bool is_control(std::size_t type) {
  return type >= static_cast<std::size_t>(FrameType::hello) && type <= static_cast<std::size_t>(FrameType::amended);
}

struct Phase {
  const char* name = "";
  Duration took{};
  double wall_seconds = 0;
  std::array<transport::SimTraffic, 256> by_type{};
  [[nodiscard]] std::uint64_t control_bytes() const {
    std::uint64_t bytes = 0;
    for (std::size_t type = 0; type < by_type.size(); ++type) bytes += is_control(type) ? by_type[type].bytes : 0;
    return bytes;
  }
};

class Life {
 public:
  explicit Life(std::uint32_t ranks)
      : ranks_(ranks),
        before_(resident_bytes()),
        cluster_(
            {.seed = 1, .aggregators = aggregators_for(ranks), .window = 4, .segment_bytes = 256, .timeout = 300s}) {
    cluster_.manager().fan_out = kFanOut;
    cluster_.add_group(ranks, 1, {.calls = 24, .count_max = 150, .only = Collective::broadcast});
    if (ranks > 0) cluster_.groups()[0][0]->outstanding_max = 4;
  }

  bool run() {
    if (!phase("forming", [](SimRank& r) { return r.communicator().info().in_network; })) return false;
    bytes_per_rank_ = (resident_bytes() - before_) / ranks_;
    for (auto& aggregator : cluster_.aggregators()) {
      if (!aggregator->alive()) continue;
      aggregator->kill();
      break;
    }
    if (!phase("failover", [](SimRank& r) { return r.communicator().info().failovers == 1 && r.completed() > 0; }))
      return false;
    return phase("the rest, and the end", [](SimRank& r) { return r.done(); });
  }

  void print() const {
    std::printf("%u ranks, %u aggregators, %zu bytes of memory a rank\n", ranks_,
                static_cast<unsigned>(aggregators_for(ranks_)), bytes_per_rank_);
    for (const Phase& p : phases_) {
      std::printf("  %s: %.3f ms virtual, %.1f s real, control star %.3f MB, %.0f bytes a rank\n", p.name,
                  std::chrono::duration<double, std::milli>(p.took).count(), p.wall_seconds,
                  static_cast<double>(p.control_bytes()) / 1e6, static_cast<double>(p.control_bytes()) / ranks_);
      for (std::size_t type = 0; type < p.by_type.size(); ++type) {
        if (p.by_type[type].frames == 0) continue;
        std::printf("    %-15s %10llu frames %14llu bytes\n",
                    std::string(to_string(static_cast<FrameType>(type))).c_str(),
                    static_cast<unsigned long long>(p.by_type[type].frames),
                    static_cast<unsigned long long>(p.by_type[type].bytes));
      }
    }
  }
  [[nodiscard]] const std::vector<Phase>& phases() const { return phases_; }
  [[nodiscard]] std::string complaint() const {
    return cluster_.violations().empty() ? "" : cluster_.violations().front();
  }

 private:
  template <class Done>
  bool phase(const char* name, Done done) {
    auto& network = cluster_.network();
    const SimStatistics from = network.statistics();
    const auto begin = network.now();
    const auto wall = std::chrono::steady_clock::now();
    const auto all = [&] {
      for (auto& rank : cluster_.groups()[0]) {
        if (rank->failure()) return true;
        if (!done(*rank)) return false;
      }
      return true;
    };
    std::uint64_t steps = 0;
    const std::uint64_t between = std::min<std::uint64_t>(kStepsBetweenLooks, ranks_);
    const bool ended = network.run_until([&] { return ++steps % between == 0 && all(); }, begin + 250s);
    for (auto& rank : cluster_.groups()[0]) {
      if (rank->failure()) {
        std::printf("%s: %s: %s\n", name, rank->host().c_str(), rank->failure()->message.c_str());
        return false;
      }
    }
    Phase& p = phases_.emplace_back();
    p.name = name;
    p.took = network.now() - begin;
    p.wall_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - wall).count();
    const SimStatistics now = network.statistics();
    for (std::size_t type = 0; type < p.by_type.size(); ++type) {
      p.by_type[type] = {now.by_type[type].frames - from.by_type[type].frames,
                         now.by_type[type].bytes - from.by_type[type].bytes};
    }
    if (!ended) std::printf("%s: not ended\n", name);
    return ended && cluster_.violations().empty();
  }

  const std::uint32_t ranks_;
  const std::size_t before_;
  Cluster cluster_;
  std::vector<Phase> phases_;
  std::size_t bytes_per_rank_ = 0;
};

/// The bytes of the control star, divided by N log2 N. This value must not grow with the number of ranks.
double share(const Phase& phase, std::uint32_t ranks) {
  return static_cast<double>(phase.control_bytes()) / (ranks * static_cast<double>(std::bit_width(ranks) - 1));
}

int run(const std::vector<std::uint32_t>& sizes) {
  std::vector<double> first;
  for (const std::uint32_t ranks : sizes) {
    Life life(ranks);
    const bool good = life.run();
    life.print();
    std::fflush(stdout);
    if (!good) {
      std::printf("FAILED: %s\n", life.complaint().c_str());
      return 1;
    }
    for (std::size_t i = 0; i < life.phases().size(); ++i) {
      const double now = share(life.phases()[i], ranks);
      if (first.size() <= i) first.push_back(now);
      if (now <= first[i] * 1.1) continue;
      std::printf("FAILED: %s grows faster than N log N: %.2f bytes by N log2 N, %.2f for the fewest ranks\n",
                  life.phases()[i].name, now, first[i]);
      return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace tributary::simulation

int main(int argc, char** argv) {
  CLI::App app("Groups of many ranks in the simulator: bytes, memory and time of forming, failover and end");
  std::vector<std::uint32_t> ranks{256, 1024, 4096};
  app.add_option("--ranks", ranks,
                 "numbers of ranks, ascending: the bytes of the control star may grow as N log N from the first number")
      ->expected(1, 16);
  CLI11_PARSE(app, argc, argv);
  return tributary::simulation::run(ranks);
}
