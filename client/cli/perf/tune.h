#pragma once
// tributary perf --tune: measures every way to run a collective, side by side, and makes a table from the times.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "client/cli/perf/bench.h"

namespace tributary::cli {

struct TuneOptions {
  BenchSettings bench;
  std::vector<std::uint64_t> sizes;
  std::string file;
  std::uint32_t ranks_per_host = 1;
};

/// Called on every rank. The ranks agree over `comm` on the next measurement; each way gets a communicator of its own.
/// Rank 0 writes the file and shows lines; the file's entries for other collectives and numbers of ranks stay.
[[nodiscard]] Status tune(const TuneOptions& options, tributary_comm* comm,
                          const std::function<void(const std::string&)>& show);

}  // namespace tributary::cli
