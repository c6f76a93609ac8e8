#pragma once
// Measures the same all_reduces by Tributary with aggregators, by the ranks alone, and by Gloo, on the same links.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/cluster/child_process.h"
#include "tributary/protocol/error.h"

namespace tributary::cli {

/// The times of one size, in microseconds: each rank's mean over the operations of a turn, then the mean over all
/// ranks.
struct ComparedSize {
  std::uint64_t bytes = 0;
  double tree_us = 0;
  double ranks_us = 0;
  std::optional<double> gloo_us{};
  double in_network = 0;  // the part of the bytes of tree_us that went by trees, 0 to 1
};

struct Comparison {
  std::uint32_t hosts = 0;
  std::uint64_t link_bits = 0;
  std::uint32_t aggregators = 0;
  std::uint64_t aggregator_link_bits = 0;  // rate of an aggregator's link; 0: as fast as this machine
  std::vector<ComparedSize> sizes;
  std::string gloo_absent;  // the reason why Gloo was not measured; empty: it was measured
};

/// A command that runs as one rank on each host.
struct RanksJob {
  std::vector<std::string> command;
  Environment variables;      // variables in addition to every rank's variables
  bool with_service = false;  // the ranks get the manager's URL and its token
  std::string log;            // the file for the output of the ranks
};

struct RanksEnd {
  int code = 0;
  bool interrupted = false;  // a signal stopped the ranks; `code` is 128 plus its number
};

struct ComparisonSettings {
  Comparison shape;                             // all facts of the comparison but its sizes
  std::vector<std::uint64_t> bytes;             // bytes of each operation; a whole number of float32
  std::string folder;                           // an existing folder for results and logs of the ranks
  std::string program;                          // path of this program
  std::string python;                           // an interpreter with PyTorch; empty: find one
  std::function<void(const std::string&)> say;  // called with a sentence for each step
  std::function<Result<RanksEnd>(const RanksJob&)> run;
};

/// Returns the sizes of a comparison: five sizes, of which the largest takes about 0.15 s on the link, at most 16 MiB.
/// Such a comparison takes well under a minute.
[[nodiscard]] std::vector<std::uint64_t> compared_sizes(std::uint64_t link_bits);
/// Returns the number of operations in one turn: as many as the ranks alone do in about half a second, 5 to 100.
[[nodiscard]] std::uint32_t operations_of_turn(std::uint64_t bytes, std::uint32_t ranks, std::uint64_t link_bits);

/// Runs the comparison. It checks every sum; a wrong sum is an error. Errc::aborted: a signal came. Without a usable
/// PyTorch, it does not measure Gloo.
[[nodiscard]] Result<Comparison> compare(const ComparisonSettings& settings);

}  // namespace tributary::cli
