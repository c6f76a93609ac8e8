#pragma once
// tributary run: makes a whole cluster on this machine for one command.
#include <cstdint>
#include <string>
#include <vector>

namespace tributary::cli {

struct RunOptions {
  std::uint32_t ranks = 1;
  std::int64_t aggregators = -1;  // -1: as many as the levels need; 0: no service
  std::uint32_t levels = 0;       // 0: chosen by the numbers of ranks and aggregators
  std::uint32_t lanes = 0;        // 0: auto
  std::uint32_t addresses = 1;    // addresses of each aggregator
  bool prefix = false;
  bool keep = false;
  bool verbose = false;
  double grace_seconds = 5;
  std::vector<std::string> command;
};

/// Returns the exit code of the process.
[[nodiscard]] int run(const RunOptions& options);

}  // namespace tributary::cli
