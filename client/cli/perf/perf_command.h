#pragma once
// Runs `tributary perf`, which measures a collective.
#include <cstdint>
#include <string>

#include "client/cli/perf/bench.h"

namespace tributary::cli {

struct PerfOptions {
  BenchSettings bench;  // the launcher provides rank and ranks
  std::uint64_t bytes_min = 32U << 20;
  std::uint64_t bytes_max = 32U << 20;
  std::uint64_t bytes_step = 1U << 20;  // used if `factor` is 0
  std::uint32_t factor = 0;             // 0: use bytes_step
  std::string json_file;                // "-": standard output, instead of the table
  std::string tune_file;                // the tuning table to write; empty: do not tune
  std::string id_file;
  double meet_seconds = 60;
  bool gpu_memory = false;          // keep the buffers in GPU memory
  bool require_in_network = false;  // fail unless bytes go by a tree
};

/// Returns the exit code of the process.
[[nodiscard]] int perf(PerfOptions options);

}  // namespace tributary::cli
