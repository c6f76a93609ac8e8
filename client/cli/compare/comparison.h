#pragma once
// The same all_reduces by Tributary with aggregators, by the ranks alone, and by Gloo, on the same links.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/cluster/child_process.h"
#include "tributary/protocol/error.h"

namespace tributary::cli {

/// Times in microseconds: a rank's mean over the operations of a turn, then the mean of all ranks.
struct ComparedSize {
  std::uint64_t bytes = 0;
  double tree_us = 0;
  double ranks_us = 0;
  std::optional<double> gloo_us{};
  double in_network = 0;  // the part of the bytes that went by trees in the first column, 0 to 1
};

struct Comparison {
  std::uint32_t hosts = 0;
  std::uint64_t link_bits = 0;
  std::uint32_t aggregators = 0;
  std::uint64_t aggregator_link_bits = 0;  // 0: as fast as this machine
  std::vector<ComparedSize> sizes;
  std::string gloo_absent;  // why Gloo is left out; empty: it is not
};

/// A command that runs as one rank on each host.
struct RanksJob {
  std::vector<std::string> command;
  Environment variables;      // beside those that each rank gets anyway
  bool with_service = false;  // the ranks are told the manager and its token
  std::string log;            // the file to which their output goes
};

struct RanksEnd {
  int code = 0;
  bool interrupted = false;  // a signal stopped it; `code` is 128 and its number
};

struct ComparisonSettings {
  Comparison shape;                             // without sizes
  std::vector<std::uint64_t> bytes;             // of each operation; a whole number of float32
  std::string folder;                           // exists; results and logs of the ranks go there
  std::string program;                          // this program
  std::string python;                           // an interpreter with PyTorch; empty: look for one
  std::function<void(const std::string&)> say;  // is told each step
  std::function<Result<RanksEnd>(const RanksJob&)> run;
};

/// Sizes of a comparison that takes well under a minute: five, the largest some 0.15 s of the link, at most 16 MiB.
[[nodiscard]] std::vector<std::uint64_t> compared_sizes(std::uint64_t link_bits);
/// Operations of one turn: about half a second of them as the ranks alone would take, 5 to 100.
[[nodiscard]] std::uint32_t operations_of_turn(std::uint64_t bytes, std::uint32_t ranks, std::uint64_t link_bits);

/// Every sum is checked; a wrong one is an error. Errc::aborted after a signal. Without a usable PyTorch, Gloo is left
/// out.
[[nodiscard]] Result<Comparison> compare(const ComparisonSettings& settings);

}  // namespace tributary::cli
