#pragma once
// The arithmetic of `tributary plan --budget`: the time that the links need for the gradients of one training step, and
// the effect of aggregators. It counts only bytes on links: no latency, no processor, no other traffic. The formulas
// come from docs/performance.md; the formulas of the split come from Jiang et al., "A Unified Architecture for
// Accelerating Distributed DNN Training in Heterogeneous GPU/CPU Clusters", OSDI 2020.
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tributary/protocol/error.h"
#include "tributary/protocol/types.h"

namespace tributary::cli {

inline constexpr std::uint64_t kParametersMax = 1'000'000'000'000'000;
inline constexpr std::uint64_t kBudgetRateMin = 1'000'000;  // in bits per second

struct BudgetInput {
  std::uint64_t parameters = 0;
  DType dtype = DType::bfloat16;  // type of the gradients
  std::uint32_t ranks = 2;        // number of ranks; each has its own link
  std::uint64_t rank_rate = 0;    // rate of a rank's link, in bits per second, in each direction
  std::uint32_t aggregators = 0;  // 0: as many as suffice
  std::uint64_t aggregator_rate = 0;
  std::optional<std::chrono::microseconds> step{};  // wanted time of a step
  std::chrono::microseconds computing{0};           // time of the computation in a step
  double overlap = 0;  // the part of the computation, 0 to 1, during which communication runs
};

/// The cost of one way to sum: bytes on each rank's link in each direction, and the time of the slowest link.
struct WayCost {
  double bytes = 0;
  double seconds = 0;
};

/// The effect of this many aggregators on split operations.
struct Purchase {
  std::uint64_t aggregators = 0;
  double coverage = 0;
  double tree_share = 0;
  double seconds = 0;
  double gain = 0;                // speed, as a multiple of the ring's speed
  double seconds_saved_each = 0;  // seconds that each additional aggregator saves
};

/// The time of a step whose communication uses one way.
struct StepTime {
  double seconds = 0;
  bool met = false;  // the step takes at most the wanted time
};

struct StepForecast {
  double communication_seconds_max =
      0;  // time for communication in a step, hidden or not; 0 or less: computation needs the whole step
  StepTime ring, tree, split;
  // The least numbers that meet the wanted step; nullopt: no number meets it.
  std::optional<std::uint64_t> aggregators_needed;  // aggregators of the given rate, with split; 0: the ring
                                                    // suffices
  std::optional<double> ring_rate_needed;           // rate of the ranks' links, in bits per second
  std::optional<double> tree_rate_needed;           // the same rate, if aggregators carry as much as all ranks send
};

struct Budget {
  double bytes = 0;  // bytes of the gradients in a step
  std::uint64_t aggregators = 0;
  std::uint64_t aggregators_enough = 0;  // number of aggregators that carry as much as all ranks send
  double coverage = 0;
  double tree_share = 0;  // the trees' share in the split
  WayCost ring, tree, split;
  std::vector<Purchase> purchases;      // sorted by the number of aggregators
  std::optional<StepForecast> verdict;  // set if a step time is wanted
};

inline constexpr const char* kParametersForms = "a whole number from 1 to 1e15, as 70e9, 70G or 1.5T (k, M, G or B, T)";

/// Reads texts such as 70e9, 70G or 1.5T; k, M, G or B, T are powers of 1000. Errc::bad_argument says why a text is
/// refused.
[[nodiscard]] Result<std::uint64_t> parse_parameters(std::string_view text);

/// Returns how often a ring moves each byte over a rank's link: 2(N-1)/N.
[[nodiscard]] double ring_ratio(std::uint32_t ranks) noexcept;
/// Returns the rate of all aggregators' links divided by the rate of all ranks' links, at most 1.
[[nodiscard]] double coverage_of(const BudgetInput& input, std::uint64_t aggregators) noexcept;
/// Returns the trees' share of the bytes with which trees and ranks end together: c rho / (1 + c (rho - 1)).
[[nodiscard]] double tree_share_of(double ratio, double coverage) noexcept;
/// Returns how often a split moves each byte over a rank's link: rho / (1 + c (rho - 1)).
[[nodiscard]] double split_ratio(double ratio, double coverage) noexcept;

/// Computes the budget. Asserts that the input lies within the bounds that the command line checks.
[[nodiscard]] Budget budget_of(const BudgetInput& input);

}  // namespace tributary::cli
