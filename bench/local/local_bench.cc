// Measures all_reduce of float32 (sum) between processes of one host through shared memory: the time per operation in a
// user's loop.
//
//     local_bench [--ranks 2,4,8] [--bytes 4,1024,...] [--rounds N] [--note-bytes N] [--chunk-bytes N] [--depth N]
//                 [--memory 0|1|2] [--in-place 0|1]
//
// Kinds of memory: 0 is memory that only its own process can access, 1 is memory that all ranks have mapped, 2 is
// memory that they access by cross-memory attach.
// A round times a loop of operations on every rank and takes the slowest rank's mean; the table gives the median and
// the extremes of the rounds. The program checks every result before it measures.
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "bench/number_list.h"
#include "client/collectives/local/local_group.h"
#include "tributary/transport/shared_memory.h"

using namespace tributary;                 // NOLINT(google-build-using-namespace)
using namespace tributary::client::local;  // NOLINT(google-build-using-namespace)

namespace {

constexpr std::size_t kPlaces = 64;

struct Options {
  std::vector<std::size_t> ranks{2, 4, 8};
  std::vector<std::size_t> bytes{4, 64, 1024, 8192, 65536, 262144, 1048576, 4194304, 16777216, 67108864};
  std::size_t rounds = 7;
  std::size_t memory = 0;
  bool in_place = false;
  GroupSettings group;
};

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view key = argv[i];
    const auto values = bench::numbers(argv[i + 1]);
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
    else if (key == "--memory")
      o.memory = values.at(0);
    else if (key == "--in-place")
      o.in_place = values.at(0) != 0;
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

/// Floats in memory that only this process uses, or in memory that the other ranks have mapped.
class Vector {
 public:
  Vector(LocalGroup& group, std::size_t count, bool shared) : group_(group), count_(count) {
    auto at = transport::allocate_shared(std::max<std::size_t>(count * sizeof(float), 1));
    if (!at) require(std::unexpected(at.error()));
    memory_ = *at;
    if (!shared) {
      own_.resize(count);
      return;
    }
    auto range = transport::find_shared({memory_, count * sizeof(float)});
    if (!range) require(std::unexpected(range.error()));
    const auto added = group_.regions()->add(memory_, std::move(*range));
    if (!added) require(std::unexpected(added.error()));
  }
  float* data() { return own_.empty() ? reinterpret_cast<float*>(memory_) : own_.data(); }
  [[nodiscard]] std::size_t size() const { return count_; }
  float& operator[](std::size_t i) { return data()[i]; }

 private:
  LocalGroup& group_;
  std::size_t count_;
  std::byte* memory_ = nullptr;
  std::vector<float> own_;
};

class Rank {
 public:
  Rank(LocalGroup& group, const Options& options, std::size_t bytes)
      : group_(group),
        in_place_(options.in_place),
        send_(group, bytes / 4, options.memory == 1),
        recv_(group, bytes / 4, options.memory == 1) {}

  void all_reduce() {
    require(
        group_.run(call(Collective::all_reduce, in_place_ ? recv_.data() : send_.data(), recv_.data(), send_.size())));
  }
  void barrier() { require(group_.run(call(Collective::barrier, nullptr, nullptr, 0))); }

  void check() {
    for (int round = 0; round < 3; ++round) {  // in these rounds the other ranks map new memory
      barrier();
      group_.attend();
    }
    for (std::size_t i = 0; i < send_.size(); ++i)
      (in_place_ ? recv_ : send_)[i] = static_cast<float>(i % 1000 + group_.rank());
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
            .in_place = in_place_,
            .number = number_++};
  }

  LocalGroup& group_;
  bool in_place_;
  Vector send_, recv_;
  std::uint64_t number_ = 0;
};

std::size_t operations_of(std::size_t bytes, std::size_t ranks) {
  const double guess = 2e-6 * static_cast<double>(ranks) + static_cast<double>(bytes * ranks) / 4e9;
  return std::clamp<std::size_t>(static_cast<std::size_t>(0.1 / guess), 3, 50'000);
}

/// Measures one size in separate processes. They share `times`, which is indexed by round and rank.
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
  settings.attach = options.memory == 2 ? tuning::AttachUse::always : tuning::AttachUse::never;
  std::vector<std::pair<FileDescriptor, FileDescriptor>> ends(ranks);
  for (auto& end : ends) {
    auto inbox = make_inbox();
    if (!inbox) std::exit(1);
    end = std::move(*inbox);
  }
  std::vector<FileDescriptor> processes(ranks);
  auto* const pids = reinterpret_cast<std::atomic<int>*>(times + options.rounds * kPlaces);
  for (std::size_t r = 0; r < ranks; ++r) pids[r] = 0;
  for (std::size_t r = 0; r < ranks; ++r) {
    if (fork() != 0) continue;
    settings.rank = static_cast<std::uint32_t>(r);
    pids[r] = getpid();
    Inboxes inboxes{.of = std::vector<FileDescriptor>(ranks), .own = std::move(ends[r].first)};
    for (std::size_t i = 0; i < ranks; ++i) {
      inboxes.of[i] = std::move(ends[i].second);
      while (pids[i] == 0) sched_yield();
      processes[i] = FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, pids[i].load(), 0)));
    }
    LocalGroup group(*arena, settings, std::move(processes), std::move(inboxes));
    Rank rank(group, options, bytes);
    rank.check();
    if (options.memory != 0 && bytes > 512U << 10 && group.direct_calls() == 0) {
      std::fprintf(stderr, "the ranks do not reach each other's memory: %s\n", group.attach_refusal().c_str());
      std::_Exit(1);
    }
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
  const std::size_t shared = (options.rounds * kPlaces + kPlaces) * sizeof(double);
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
