#pragma once
// The collectives of the benchmark: the numbers of elements for each size, the load of buses, and the calls.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tributary/tributary.h"

namespace tributary::cli {

enum class PerfCollective : std::uint8_t {
  all_reduce,
  reduce,
  broadcast,
  reduce_scatter,
  all_gather,
  all_to_all,
  gather,
  scatter,
  sendrecv,
  barrier,
};
inline constexpr std::uint8_t kPerfCollectiveCount = 10;

[[nodiscard]] std::string_view to_string(PerfCollective collective) noexcept;
[[nodiscard]] std::optional<PerfCollective> perf_collective_from_string(std::string_view name) noexcept;

[[nodiscard]] bool reduces(PerfCollective collective) noexcept;
[[nodiscard]] bool has_root(PerfCollective collective) noexcept;
/// True if a tree can carry the collective's data.
[[nodiscard]] bool can_use_trees(PerfCollective collective) noexcept;
[[nodiscard]] bool can_be_in_place(PerfCollective collective) noexcept;

/// Numbers of elements. `count` is the call's argument; the larger of send and recv is the reported size. If each rank
/// has a part, the size is divided among the ranks, as in nccl-tests.
struct PerfCounts {
  std::size_t count = 0;
  std::size_t send = 0;
  std::size_t recv = 0;
};
[[nodiscard]] PerfCounts counts_of(PerfCollective collective, std::size_t elements, std::uint32_t ranks) noexcept;

/// Returns bus bandwidth divided by algorithm bandwidth: the bytes on the busiest link for each byte of the size, if
/// all links are between ranks. Source: nccl-tests, doc/PERFORMANCE.md.
[[nodiscard]] double bus_factor(PerfCollective collective, std::uint32_t ranks) noexcept;

struct PerfCall {
  PerfCollective collective = PerfCollective::all_reduce;
  const void* send = nullptr;
  void* recv = nullptr;
  std::size_t count = 0;
  tributary_dtype dtype = TRIBUTARY_FLOAT32;
  tributary_op op = TRIBUTARY_SUM;
  int root = 0;
  int rank = 0;
  int ranks = 1;
};
/// Runs an operation, and returns when it has ended. sendrecv sends to the next rank and receives from the previous
/// rank.
[[nodiscard]] tributary_status run(const PerfCall& call, tributary_comm* comm);
/// Queues an operation. The caller must wait for every appended request, even after an error.
[[nodiscard]] tributary_status start(const PerfCall& call, tributary_comm* comm,
                                     std::vector<tributary_request*>& requests);

}  // namespace tributary::cli
