// Runs many real ranks on one machine. Measures the time to meet, to reduce and to exchange data between all pairs, and
// the memory and the number of descriptors of each rank. It forks one process for each rank; the environment chooses
// transports (TRIBUTARY_LOCAL=off: TCP, as between hosts) and the manager.
#include <dirent.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "tributary/tributary.h"

namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

constexpr int kFigures = 7;
constexpr const char* kNames[kFigures] = {
    "meet, ms", "first all_reduce, ms",      "all_reduce of 1,024 floats, ms", "all_to_all, ms",
    "PSS, KiB", "descriptors after meeting", "descriptors at the end"};

/// Memory that the processes share.
struct Shared {
  std::atomic<int> id_made;
  std::atomic<int> failed;
  tributary_unique_id id;
  double figures[4096][kFigures];
};

double pss_kib() {
  std::ifstream file("/proc/self/smaps_rollup");
  for (std::string word; file >> word;) {
    double kib = 0;
    if (word == "Pss:" && file >> kib) return kib;
  }
  return 0;
}

double descriptors() {
  DIR* const list = ::opendir("/proc/self/fd");
  if (list == nullptr) return 0;
  int entries = 0;
  while (::readdir(list) != nullptr) ++entries;
  ::closedir(list);
  return entries - 3;
}

bool good(tributary_status status, const char* what, int rank, tributary_comm* comm) {
  if (status == TRIBUTARY_OK) return true;
  std::fprintf(stderr, "rank %d: %s: %s\n", rank, what, tributary_last_error(comm));
  return false;
}

bool live(Shared& shared, int rank, int ranks, bool exchange) {
  if (rank == 0) {
    if (!good(tributary_get_unique_id(&shared.id), "get_unique_id", rank, nullptr)) return false;
    shared.id_made = 1;
  }
  while (shared.id_made == 0 && shared.failed == 0) ::usleep(1000);
  double* const figures = shared.figures[rank];
  tributary_comm* comm = nullptr;
  auto begin = Clock::now();
  if (!good(tributary_comm_init_rank(&comm, ranks, &shared.id, rank), "comm_init_rank", rank, nullptr)) return false;
  figures[0] = milliseconds_since(begin);
  figures[5] = descriptors();
  const std::size_t count = 1024;
  std::vector<float> in(count), out(count);
  for (std::size_t i = 0; i < count; ++i) in[i] = static_cast<float>(rank + static_cast<int>(i));
  for (const int figure : {1, 2}) {
    begin = Clock::now();
    if (!good(tributary_all_reduce(in.data(), out.data(), count, TRIBUTARY_FLOAT32, TRIBUTARY_SUM, comm, nullptr),
              "all_reduce", rank, comm))
      return false;
    figures[figure] = milliseconds_since(begin);
    for (std::size_t i = 0; i < count; ++i) {
      const int whole = ranks * (ranks - 1) / 2 + ranks * static_cast<int>(i);
      const auto sum = static_cast<float>(whole);
      if (out[i] == sum) continue;
      std::fprintf(stderr, "rank %d: element %zu is %f, not %f\n", rank, i, out[i], sum);
      return false;
    }
  }
  figures[4] = pss_kib();
  std::vector<int> mine(static_cast<std::size_t>(ranks), rank), all(static_cast<std::size_t>(ranks));
  begin = Clock::now();
  if (exchange &&
      !good(tributary_all_to_all(mine.data(), all.data(), 1, TRIBUTARY_INT32, comm, nullptr), "all_to_all", rank, comm))
    return false;
  figures[3] = milliseconds_since(begin);
  for (int r = 0; exchange && r < ranks; ++r) {
    if (all[static_cast<std::size_t>(r)] != r) return false;
  }
  figures[6] = descriptors();
  if (!good(tributary_comm_finalize(comm), "finalize", rank, comm)) return false;
  return good(tributary_comm_destroy(comm), "destroy", rank, nullptr);
}

void print(const Shared& shared, int ranks) {
  std::printf("%d ranks: least, median, most, rank 0\n", ranks);
  for (int figure = 0; figure < kFigures; ++figure) {
    std::vector<double> values;
    for (int rank = 0; rank < ranks; ++rank) values.push_back(shared.figures[rank][figure]);
    std::ranges::sort(values);
    std::printf("  %-32s %10.1f %10.1f %10.1f %10.1f\n", kNames[figure], values.front(), values[values.size() / 2],
                values.back(), shared.figures[0][figure]);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 256;
  if (ranks < 1 || ranks > 4096) {
    std::fprintf(stderr, "usage: ranks_bench [RANKS, 1 to 4096] [no-exchange]\n");
    return 2;
  }
  void* const memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  auto& shared = *new (memory) Shared();
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = ::fork();
    if (child < 0) return 1;
    if (child > 0) continue;
    const bool fine = live(shared, rank, ranks, argc < 3);
    if (!fine) ++shared.failed;
    std::_Exit(fine ? 0 : 1);
  }
  while (::wait(nullptr) > 0) {
  }
  if (shared.failed > 0) return 1;
  print(shared, ranks);
  return 0;
}
