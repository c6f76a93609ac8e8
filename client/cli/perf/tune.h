#pragma once
// Runs `tributary perf --tune`: it measures every way to run a collective, and makes a table from the times.
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

/// Measures on every rank. The ranks agree over `comm` on the next measurement; each way has its own communicator. Rank
/// 0 prints lines and writes the file; it keeps the file's entries for other collectives and numbers of ranks.
[[nodiscard]] Status tune(const TuneOptions& options, tributary_comm* comm,
                          const std::function<void(const std::string&)>& show);

}  // namespace tributary::cli
