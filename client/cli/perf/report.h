#pragma once
// The output of the benchmark: the columns of nccl-tests for people, and JSON for programs.
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "client/cli/perf/bench.h"

namespace tributary::cli {

struct RankPlace {
  std::string host;
  std::int64_t pid = 0;
  std::int64_t gpu = -1;  // the GPU with the rank's buffers; -1: they lie in host memory
};

struct PerfReport {
  BenchSettings settings;
  std::string launcher;
  std::vector<RankPlace> places;  // by rank
  tributary_info at_start{};
  tributary_info at_end{};
  std::vector<BenchRow> rows;
};

/// Returns the line that says in which memory rank 0's buffers lie.
[[nodiscard]] std::string memory_text(const PerfReport& report);
/// Returns the lines that begin with #, up to the names of the columns.
[[nodiscard]] std::string header_text(const PerfReport& report, std::uint64_t bytes_min, std::uint64_t bytes_max,
                                      const std::string& step);
[[nodiscard]] std::string row_text(const PerfReport& report, const BenchRow& row);
[[nodiscard]] std::string footer_text(const PerfReport& report);
[[nodiscard]] nlohmann::json to_json(const PerfReport& report);

/// Returns the number of wrong elements in all rows, in place and out of place.
[[nodiscard]] std::uint64_t wrong_elements(const PerfReport& report);

[[nodiscard]] std::uint64_t bytes_in_network(const PerfReport& report);
/// Returns the reason why no byte went by a tree.
[[nodiscard]] std::string why_no_byte(const PerfReport& report);

}  // namespace tributary::cli
