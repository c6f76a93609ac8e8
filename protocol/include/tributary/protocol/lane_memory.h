#pragma once
// The memory of an aggregator's part of one lane, in bytes: the engine allocates this memory, the worker takes it from
// the aggregator's budget, and the manager plans with it.
#include <cstdint>
#include <limits>

namespace tributary {

/// Returns the sum; 2^64 - 1 stands for all larger sums, too.
[[nodiscard]] constexpr std::uint64_t saturating_sum(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<std::uint64_t>::max() : sum;
}
[[nodiscard]] constexpr std::uint64_t saturating_product(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<std::uint64_t>::max() : product;
}

/// Returns window * segment_bytes * (children + 1) bytes: each slot of the window has a receive buffer for each child
/// and one buffer for the result. 2^64 - 1 stands for all larger sizes, too.
[[nodiscard]] constexpr std::uint64_t lane_memory_bytes(std::uint32_t children, std::uint32_t window,
                                                        std::uint32_t segment_bytes) noexcept {
  return saturating_product(std::uint64_t{window} * segment_bytes, std::uint64_t{children} + 1);
}

/// The bytes that the manager adds for the slots, pointers and connections of a lane. Aggregators do not count these
/// bytes in their budgets.
inline constexpr std::uint64_t kLaneBookkeepingBytes = 64U << 10;

/// Returns the bytes that the manager reserves on the aggregator: lane_memory_bytes() plus kLaneBookkeepingBytes. So
/// they are never less than the aggregator takes from its budget.
[[nodiscard]] constexpr std::uint64_t lane_reservation_bytes(std::uint32_t children, std::uint32_t window,
                                                             std::uint32_t segment_bytes) noexcept {
  return saturating_sum(lane_memory_bytes(children, window, segment_bytes), kLaneBookkeepingBytes);
}

/// Returns the greatest number of children whose lane_reservation_bytes() are at most `bytes`; 0: there is no room for
/// one child. `window` and `segment_bytes` are at least 1.
[[nodiscard]] constexpr std::uint32_t children_that_fit(std::uint64_t bytes, std::uint32_t window,
                                                        std::uint32_t segment_bytes) noexcept {
  if (bytes < lane_reservation_bytes(1, window, segment_bytes)) return 0;
  const std::uint64_t children = (bytes - kLaneBookkeepingBytes) / lane_memory_bytes(0, window, segment_bytes) - 1;
  constexpr std::uint32_t kMost = std::numeric_limits<std::uint32_t>::max();
  return children < kMost ? static_cast<std::uint32_t>(children) : kMost;
}

}  // namespace tributary
