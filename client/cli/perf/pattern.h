#pragma once
// The ranks' contributions in a benchmark, and their results, chosen so that no rounding is involved.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tributary/protocol/types.h"

namespace tributary::cli {

/// The values repeat after kPatternPeriod elements, a prime, so that data from another place in a tensor differ.
inline constexpr std::size_t kPatternPeriod = 4093;

/// Every value and every partial sum or product, in any order, is exact in the dtype: so there is one right result, bit
/// by bit, for any tree, ring or order.
class Pattern {
 public:
  Pattern(DType dtype, ReduceOp op, std::uint32_t ranks) : dtype_(dtype), op_(op), ranks_(ranks) {}

  /// Returns kPatternPeriod elements.
  [[nodiscard]] std::vector<std::byte> contribution(std::uint32_t rank) const;
  /// The reduction of all ranks' contributions.
  [[nodiscard]] std::vector<std::byte> reduced() const;
  [[nodiscard]] std::size_t element_bytes() const noexcept { return size_of(dtype_); }

 private:
  DType dtype_;
  ReduceOp op_;
  std::uint32_t ranks_;
};

/// Repeats `period` (whole elements of `element_bytes`) over `out`, beginning with its element number `first`.
void tile(std::span<const std::byte> period, std::size_t element_bytes, std::size_t first, std::span<std::byte> out);
/// Counts the elements of `data` that differ from those that tile() would write.
[[nodiscard]] std::uint64_t count_wrong(std::span<const std::byte> period, std::size_t element_bytes, std::size_t first,
                                        std::span<const std::byte> data);

}  // namespace tributary::cli
