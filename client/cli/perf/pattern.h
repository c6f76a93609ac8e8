#pragma once
// The ranks' contributions in a benchmark, and their results. Their values need no rounding.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tributary/protocol/types.h"

namespace tributary::cli {

/// The number of elements after which values repeat: a prime, so that data from another place in a tensor differ.
inline constexpr std::size_t kPatternPeriod = 4093;

/// The pattern. Every value and every partial sum or product, in any order, is exact in the dtype. So every tree, ring
/// or order has the same right result, bit by bit.
class Pattern {
 public:
  Pattern(DType dtype, ReduceOp op, std::uint32_t ranks) : dtype_(dtype), op_(op), ranks_(ranks) {}

  /// Returns a rank's contribution of kPatternPeriod elements.
  [[nodiscard]] std::vector<std::byte> contribution(std::uint32_t rank) const;
  /// Returns the reduction of all ranks' contributions.
  [[nodiscard]] std::vector<std::byte> reduced() const;
  [[nodiscard]] std::size_t element_bytes() const noexcept { return size_of(dtype_); }

 private:
  DType dtype_;
  ReduceOp op_;
  std::uint32_t ranks_;
};

/// Fills `out` with repetitions of `period` (whole elements of `element_bytes`), from element number `first` on.
void tile(std::span<const std::byte> period, std::size_t element_bytes, std::size_t first, std::span<std::byte> out);
/// Returns the number of elements of `data` that differ from the elements that tile() would write.
[[nodiscard]] std::uint64_t count_wrong(std::span<const std::byte> period, std::size_t element_bytes, std::size_t first,
                                        std::span<const std::byte> data);

}  // namespace tributary::cli
