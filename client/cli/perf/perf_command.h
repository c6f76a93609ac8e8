#pragma once
// tributary perf: what a collective takes, here and now.
#include <cstdint>
#include <string>

#include "client/cli/perf/bench.h"

namespace tributary::cli {

struct PerfOptions {
  BenchSettings bench;  // rank and ranks are the launcher's to say
  std::uint64_t bytes_min = 32U << 20;
  std::uint64_t bytes_max = 32U << 20;
  std::uint64_t bytes_step = 1U << 20;  // where there is no factor
  std::uint32_t factor = 0;             // 0: by steps
  std::string json_file;                // "-": standard output, in place of the table
  std::string tune_file;                // where a tuning table goes; empty: no tuning
  std::string id_file;
  double meet_seconds = 60;
};

/// Returns what the process is to end with.
[[nodiscard]] int perf(PerfOptions options);

}  // namespace tributary::cli
