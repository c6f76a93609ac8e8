#pragma once
// tributary perf: measures a collective.
#include <cstdint>
#include <string>

#include "client/cli/perf/bench.h"

namespace tributary::cli {

struct PerfOptions {
  BenchSettings bench;  // the launcher sets rank and ranks
  std::uint64_t bytes_min = 32U << 20;
  std::uint64_t bytes_max = 32U << 20;
  std::uint64_t bytes_step = 1U << 20;  // used without a factor
  std::uint32_t factor = 0;             // 0: use bytes_step
  std::string json_file;                // "-": standard output, in place of the table
  std::string tune_file;                // the tuning table to write; empty: no tuning
  std::string id_file;
  double meet_seconds = 60;
  bool require_in_network = false;  // fail unless bytes go by a tree
};

/// Returns the exit code of the process.
[[nodiscard]] int perf(PerfOptions options);

}  // namespace tributary::cli
