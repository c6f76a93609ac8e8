#include "client/plugins/mpi/report.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <mutex>

namespace tributary::mpi {
namespace {

struct Counters {
  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::uint64_t> bytes{0};
};

constexpr std::array<const char*, kCollectives> kNames{
    "MPI_Allreduce",
    "MPI_Reduce",
    "MPI_Bcast",
    "MPI_Barrier",
    "MPI_Reduce_scatter",
    "MPI_Allgather",
    "MPI_Gather",
    "MPI_Scatter",
    "MPI_Alltoall",
    "MPI_Alltoallv",
    "MPI_Reduce_scatter of unequal counts",
    "MPI_Allgatherv of unequal counts",
};

std::array<std::array<Counters, 2>, kCollectives> counters;
std::atomic<std::uint64_t> in_network{0};
std::atomic<std::uint64_t> otherwise{0};

struct Reason {
  std::mutex mutex;
  std::string text;
};

Reason& reason() {
  static Reason one;
  return one;
}

std::string counted(const Counters& one) {
  return std::to_string(one.calls) + " calls with " + std::to_string(one.bytes) + " bytes";
}

}  // namespace

void count_call(Collective collective, Way way, std::uint64_t bytes) noexcept {
  Counters& one = counters[static_cast<std::size_t>(collective)][static_cast<std::size_t>(way)];
  one.calls.fetch_add(1, std::memory_order_relaxed);
  one.bytes.fetch_add(bytes, std::memory_order_relaxed);
}

void note_reason(const std::string& text) {
  const std::lock_guard lock(reason().mutex);
  if (reason().text.empty()) reason().text = text;
}

void count_paths(std::uint64_t bytes_in_network, std::uint64_t bytes_otherwise) noexcept {
  in_network.fetch_add(bytes_in_network, std::memory_order_relaxed);
  otherwise.fetch_add(bytes_otherwise, std::memory_order_relaxed);
}

std::string report_text() {
  std::string text;
  for (std::size_t collective = 0; collective < kCollectives; ++collective) {
    const auto& [by_mpi, by_tributary] = counters[collective];
    if (by_mpi.calls == 0 && by_tributary.calls == 0) continue;
    text += std::string(kNames[collective]) + ": by Tributary " + counted(by_tributary) + ", by MPI " +
            counted(by_mpi) + "\n";
  }
  text += "bytes of Tributary's calls: in-network " + std::to_string(in_network) + ", between ranks or in memory " +
          std::to_string(otherwise) + "\n";
  const std::lock_guard lock(reason().mutex);
  if (!reason().text.empty())
    text += "calls that went by MPI for another reason than their size: " + reason().text + "\n";
  return text;
}

void say(const std::string& line) {
  std::fputs(("tributary-mpi: " + line + "\n").c_str(), stderr);
}

}  // namespace tributary::mpi
