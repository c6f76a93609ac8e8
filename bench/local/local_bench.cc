// all_reduce of float32 (sum) among processes of one host through shared memory: time per operation, as a user's loop
// sees it.
//
//     local_bench [--ranks 2,4,8] [--bytes 4,1024,...] [--rounds N] [--note-bytes N] [--chunk-bytes N] [--depth N]
//
// A round times a loop of operations on every rank and takes the slowest rank's mean; the table gives the median and
// the extremes of the rounds. Every result is checked before anything is timed.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "client/collectives/local/local_group.h"

using namespace tributary;                 // NOLINT(google-build-using-namespace)
using namespace tributary::client::local;  // NOLINT(google-build-using-namespace)

namespace {

constexpr std::size_t kPlaces = 64;

struct Options {
  std::vector<std::size_t> ranks{2, 4, 8};
  std::vector<std::size_t> bytes{4, 64, 1024, 8192, 65536, 262144, 1048576, 4194304, 16777216, 67108864};
  std::size_t rounds = 7;
  GroupSettings group;
};

std::vector<std::size_t> numbers(const char* list) {
  std::vector<std::size_t> values;
  for (char* end = nullptr; *list != '\0'; list = *end == ',' ? end + 1 : end) {
    values.push_back(std::strtoull(list, &end, 10));
    if (end == list) std::exit(64);
  }
  return values;
}

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view key = argv[i];
    const auto values = numbers(argv[i + 1]);
    if (key == "--ranks")
      o.ranks = values;
    else if (key == "--bytes")
      o.bytes = values;
    else if (key == "--rounds")
      o.rounds = values.at(0);
    else if (key == "--note-bytes")
      o.group.note_bytes = values.at(0);
    else if (key == "--chunk-bytes")
      o.group.chunk_bytes = values.at(0);
    else if (key == "--depth")
      o.group.depth = values.at(0);
    else
      std::exit(64);
  }
  return o;
}

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void require(const Status& status) {
  if (status) return;
  std::fprintf(stderr, "%s\n", status.error().message.c_str());
  std::_Exit(1);
}

class Rank {
 public:
  Rank(LocalGroup& group, std::size_t bytes) : group_(group), send_(bytes / 4), recv_(bytes / 4) {
    for (std::size_t i = 0; i < send_.size(); ++i) send_[i] = static_cast<float>(i % 1000 + group.rank());
  }

  void all_reduce() { require(group_.run(call(Collective::all_reduce, send_.data(), recv_.data(), send_.size()))); }
  void barrier() { require(group_.run(call(Collective::barrier, nullptr, nullptr, 0))); }

  void check() {
    all_reduce();
    const auto n = static_cast<float>(group_.ranks());
    for (std::size_t i = 0; i < recv_.size(); ++i) {
      if (recv_[i] == n * static_cast<float>(i % 1000) + n * (n - 1) / 2) continue;
      require(fail(Errc::corrupt, "rank " + std::to_string(group_.rank()) + ": element " + std::to_string(i) + " is " +
                                      std::to_string(recv_[i])));
    }
  }

  /// Microseconds per operation.
  double time(std::size_t operations) {
    barrier();
    const double start = seconds();
    for (std::size_t i = 0; i < operations; ++i) all_reduce();
    return (seconds() - start) / static_cast<double>(operations) * 1e6;
  }

 private:
  Call call(Collective collective, const float* send, float* recv, std::size_t count) {
    return {.signature = {.collective = collective, .dtype = DType::float32, .op = ReduceOp::sum, .count = count},
            .send = reinterpret_cast<const std::byte*>(send),
            .recv = reinterpret_cast<std::byte*>(recv),
            .in_place = false,
            .number = number_++};
  }

  LocalGroup& group_;
  std::vector<float> send_, recv_;
  std::uint64_t number_ = 0;
};

std::size_t operations_of(std::size_t bytes, std::size_t ranks) {
  const double guess = 2e-6 * static_cast<double>(ranks) + static_cast<double>(bytes * ranks) / 4e9;
  return std::clamp<std::size_t>(static_cast<std::size_t>(0.1 / guess), 3, 50'000);
}

/// One size in processes of its own. `times`: shared, by round and rank.
void measure(const Options& options, std::size_t ranks, std::size_t bytes, double* times) {
  GroupSettings settings = options.group;
  settings.ranks = static_cast<std::uint32_t>(ranks);
  settings.crowded = ranks > usable_cores();
  settings.timeout = std::chrono::seconds(60);
  auto arena = create_arena(settings);
  if (!arena) {
    std::fprintf(stderr, "%s\n", arena.error().message.c_str());
    std::exit(1);
  }
  for (std::size_t r = 0; r < ranks; ++r) {
    if (fork() != 0) continue;
    settings.rank = static_cast<std::uint32_t>(r);
    LocalGroup group(*arena, settings);
    Rank rank(group, bytes);
    rank.check();
    const std::size_t operations = operations_of(bytes, ranks);
    rank.time(operations / 5 + 1);
    for (std::size_t round = 0; round < options.rounds; ++round) times[round * kPlaces + r] = rank.time(operations);
    std::_Exit(0);
  }
  for (std::size_t r = 0; r < ranks; ++r) {
    int status = 0;
    if (wait(&status) < 0 || status != 0) std::exit(1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const std::size_t shared = options.rounds * kPlaces * sizeof(double);
  auto* times = static_cast<double*>(mmap(nullptr, shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (times == MAP_FAILED) return 1;
  std::printf("%5s %10s %12s %12s %12s\n", "ranks", "bytes", "median us", "least", "most");
  for (const std::size_t ranks : options.ranks) {
    for (const std::size_t bytes : options.bytes) {
      std::fflush(stdout);
      measure(options, ranks, bytes, times);
      std::vector<double> rounds;
      for (std::size_t i = 0; i < options.rounds; ++i)
        rounds.push_back(*std::max_element(times + i * kPlaces, times + i * kPlaces + ranks));
      std::ranges::sort(rounds);
      std::printf("%5zu %10zu %12.2f %12.2f %12.2f\n", ranks, bytes, rounds[rounds.size() / 2], rounds.front(),
                  rounds.back());
    }
  }
}
