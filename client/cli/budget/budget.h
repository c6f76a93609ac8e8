#pragma once
// The arithmetic of `tributary plan --budget`: how long the links need for the gradients of one training step, and what
// aggregators change. It counts bytes on links alone: no latency, no processor, no other traffic. The formulas are
// those of docs/performance.md; the split's come from Jiang et al., "A Unified Architecture for Accelerating
// Distributed DNN Training in Heterogeneous GPU/CPU Clusters", OSDI 2020.
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tributary/protocol/error.h"
#include "tributary/protocol/types.h"

namespace tributary::cli {

inline constexpr std::uint64_t kParametersMax = 1'000'000'000'000'000;
inline constexpr std::uint64_t kBudgetRateMin = 1'000'000;  // bits per second

struct BudgetInput {
  std::uint64_t parameters = 0;
  DType dtype = DType::bfloat16;  // type of the gradients
  std::uint32_t ranks = 2;        // each with a link of its own
  std::uint64_t rank_rate = 0;    // bits per second, in each direction
  std::uint32_t aggregators = 0;  // 0: as many as suffice
  std::uint64_t aggregator_rate = 0;
  std::optional<std::chrono::microseconds> step{};  // time wanted for a step
  std::chrono::microseconds computing{0};           // time of the computing in a step
  double overlap = 0;  // the part of the computing, 0 to 1, in which communication runs behind it
};

/// One way to sum: what each rank's link carries in each direction, and the time that the slowest link needs.
struct WayCost {
  double bytes = 0;
  double seconds = 0;
};

/// Split operations with this many aggregators.
struct Purchase {
  std::uint64_t aggregators = 0;
  double coverage = 0;
  double tree_share = 0;
  double seconds = 0;
  double gain = 0;                // how many times as fast as the ring
  double seconds_saved_each = 0;  // seconds that each further aggregator saves
};

/// A step whose communication goes one way.
struct StepTime {
  double seconds = 0;
  bool met = false;  // the step takes no longer than wanted
};

struct Verdict {
  double communication_seconds_max =
      0;  // time that a step leaves for communication, hidden or not; not above 0: computing takes all
  StepTime ring, tree, split;
  // The least numbers that meet the wanted step; nullopt: no number of this kind does.
  std::optional<std::uint64_t> aggregators_needed;  // aggregators of the named rate, by split; 0: the ring
                                                    // suffices
  std::optional<double> ring_rate_needed;           // rate of the ranks' links, in bits per second
  std::optional<double> tree_rate_needed;           // the same, with aggregators that carry as much as all ranks send
};

struct Budget {
  double bytes = 0;  // bytes of the gradients in a step
  std::uint64_t aggregators = 0;
  std::uint64_t aggregators_enough = 0;  // aggregators that carry as much as all ranks send
  double coverage = 0;
  double tree_share = 0;  // the trees' share in the split
  WayCost ring, tree, split;
  std::vector<Purchase> purchases;  // by number of aggregators
  std::optional<Verdict> verdict;   // if a step time is wanted
};

/// Reads 70e9, 70G, 1.5T; k, M, G or B, T are powers of 1000. Errc::bad_argument says what is wrong and what is
/// allowed.
[[nodiscard]] Result<std::uint64_t> parse_parameters(std::string_view text);

/// How often a ring moves each byte over a rank's link: 2(N-1)/N.
[[nodiscard]] double ring_ratio(std::uint32_t ranks) noexcept;
/// The aggregators' links together over the ranks' links together, at most 1.
[[nodiscard]] double coverage_of(const BudgetInput& input, std::uint64_t aggregators) noexcept;
/// The share of the bytes that trees carry so that trees and ranks end together: c rho / (1 + c (rho - 1)).
[[nodiscard]] double tree_share_of(double ratio, double coverage) noexcept;
/// How often a split moves each byte over a rank's link: rho / (1 + c (rho - 1)).
[[nodiscard]] double split_ratio(double ratio, double coverage) noexcept;

/// Asserts that the input lies within the bounds that the command line checks.
[[nodiscard]] Budget budget_of(const BudgetInput& input);

}  // namespace tributary::cli
