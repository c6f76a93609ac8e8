#pragma once
// What ranks contribute in a benchmark, and what must come out, without doubt about rounding.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tributary/protocol/types.h"

namespace tributary::cli {

/// The values repeat after kPeriod elements, a prime, so that data from another place in a tensor is not the same data.
inline constexpr std::size_t kPatternPeriod = 4093;

/// Every value and every partial sum or product, in whatever order, is exact in the dtype: so there is one right
/// result for any tree, ring or order, bit by bit.
class Pattern {
 public:
  Pattern(DType dtype, ReduceOp op, std::uint32_t ranks) : dtype_(dtype), op_(op), ranks_(ranks) {}

  /// kPatternPeriod elements.
  [[nodiscard]] std::vector<std::byte> contribution(std::uint32_t rank) const;
  /// The reduction of all ranks' contributions.
  [[nodiscard]] std::vector<std::byte> reduced() const;
  [[nodiscard]] std::size_t element_bytes() const noexcept { return size_of(dtype_); }

 private:
  DType dtype_;
  ReduceOp op_;
  std::uint32_t ranks_;
};

/// Repeats `period` (whole elements of so many bytes) over `out`, beginning with its element number `first`.
void tile(std::span<const std::byte> period, std::size_t element_bytes, std::size_t first, std::span<std::byte> out);
/// How many elements of `data` differ from what tile() would have written.
[[nodiscard]] std::uint64_t count_wrong(std::span<const std::byte> period, std::size_t element_bytes, std::size_t first,
                                        std::span<const std::byte> data);

}  // namespace tributary::cli
