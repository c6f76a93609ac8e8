// Measures the price of counting values (TRIBUTARY_CHECK_VALUES): all_reduce of float32 (sum) with and without.
//
//     values_bench [--ranks N] [--bytes 1024,...] [--turns N] [--turn-ms N]
//
// The ranks are threads of this process. Each size makes three communicators: two with `off`, whose ratio is the noise,
// and one with `count`. They take turns; the table gives the median time of an operation over the turns, and the
// ratios. The variables of a rank choose the path: TRIBUTARY_LOCAL=off leaves out shared memory, and with
// TRIBUTARY_MANAGER (as `tributary run` sets it) the sums go by trees.
#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

#include "bench/number_list.h"
#include "tributary/tributary.hpp"

using tributary::Communicator;

namespace {

constexpr const char* kModes[] = {"off", "off", "count"};
constexpr std::size_t kModeCount = std::size(kModes);

struct Options {
  std::size_t ranks = 2;
  std::vector<std::size_t> bytes{1024, 65536, 1048576, 16777216};
  std::size_t turns = 9;
  std::size_t turn_ms = 100;
};

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view key = argv[i];
    const auto values = tributary::bench::numbers(argv[i + 1]);
    if (key == "--ranks")
      o.ranks = values.at(0);
    else if (key == "--bytes")
      o.bytes = values;
    else if (key == "--turns")
      o.turns = values.at(0);
    else if (key == "--turn-ms")
      o.turn_ms = values.at(0);
    else
      std::exit(64);
  }
  return o;
}

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

/// The turns of all ranks for one size.
class Contest {
 public:
  Contest(const Options& options, std::size_t bytes)
      : options_(options), count_(bytes / sizeof(float)), together_(static_cast<std::ptrdiff_t>(options.ranks)) {
    for (auto& id : ids_) id = tributary::UniqueId::create();
  }

  void run() {
    std::vector<std::thread> ranks;
    for (std::size_t rank = 0; rank < options_.ranks; ++rank) ranks.emplace_back([this, rank] { be(rank); });
    for (std::thread& rank : ranks) rank.join();
  }

  void print() const {
    const double off = median(times_[0]), again = median(times_[1]), count = median(times_[2]);
    std::printf("%10zu %12.1f %12.1f %12.1f %10.3f %10.3f\n", count_ * sizeof(float), off, again, count, again / off,
                count / std::min(off, again));
  }

 private:
  void be(std::size_t rank) {
    std::vector<Communicator> comms;
    for (std::size_t mode = 0; mode < kModeCount; ++mode) {
      tributary::Config config;
      config.check_values = kModes[mode];
      comms.emplace_back(static_cast<int>(options_.ranks), ids_[mode], static_cast<int>(rank), config);
    }
    std::vector<float> send(count_, 1.0F + static_cast<float>(rank)), recv(count_);
    for (std::size_t turn = 0; turn <= options_.turns; ++turn) {
      for (std::size_t mode = 0; mode < kModeCount; ++mode) {
        const double time = loop(comms[mode], send, recv);
        if (rank == 0 && turn > 0) times_[mode].push_back(time);  // the first turn is a trial
      }
    }
  }

  /// Returns microseconds per operation.
  double loop(Communicator& comm, const std::vector<float>& send, std::vector<float>& recv) {
    comm.all_reduce(send, recv, tributary::Op::sum);
    const auto n = static_cast<float>(options_.ranks);
    if (!recv.empty() && recv.back() != n * (n + 1) / 2) std::exit(1);
    together_.arrive_and_wait();
    std::size_t operations = 0;
    const double begin = seconds();
    std::int32_t go_on[1] = {1};
    while (go_on[0] != 0) {
      for (int i = 0; i < 8; ++i) comm.all_reduce(send, recv, tributary::Op::sum);
      operations += 8;
      go_on[0] = seconds() - begin < static_cast<double>(options_.turn_ms) / 1000 ? 1 : 0;
      comm.broadcast(tributary::View<std::int32_t>(go_on, 1), 0);
    }
    return (seconds() - begin) * 1e6 / static_cast<double>(operations);
  }

  const Options& options_;
  const std::size_t count_;
  std::barrier<> together_;
  tributary::UniqueId ids_[kModeCount];
  std::vector<double> times_[kModeCount];  // only rank 0 uses them
};

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  std::printf("%zu ranks, microseconds per all_reduce (median of %zu turns)\n%10s %12s %12s %12s %10s %10s\n",
              options.ranks, options.turns, "bytes", "off", "off again", "count", "again/off", "count/off");
  for (const std::size_t bytes : options.bytes) {
    Contest contest(options, bytes);
    contest.run();
    contest.print();
    std::fflush(stdout);
  }
}
