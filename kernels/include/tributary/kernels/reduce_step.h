#pragma once
// One of the reductions that an element passes through on its way over a tree, a ring or a host.
//
// A sum rounded to float16 or float8 between two steps becomes infinite long before the average of the same values
// does. So an average of floats travels as its sum times 2^-k, k = ceil(log2(ranks that are in it)), which is never
// larger than the largest of its values. A product with a power of two is exact, so the average has the bits of a sum
// that is divided once at its end, but for results below the normal range, and for sums that would have been infinite.
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "tributary/kernels/reduce.h"
#include "tributary/protocol/types.h"

namespace tributary::kernels {

/// True for the types whose averages travel scaled. An integer average is a sum that wraps, divided at its end.
[[nodiscard]] constexpr bool averages_in_steps(DType dtype) noexcept {
  return accumulates_wider(dtype) || dtype == DType::float32 || dtype == DType::float64;
}

/// The k by which the sum of so many ranks travels scaled: the least with 2^k >= ranks.
[[nodiscard]] constexpr int scale_of_ranks(std::uint64_t ranks) noexcept {
  return static_cast<int>(std::bit_width(ranks - 1));
}

struct Step {
  std::uint32_t divisor = 1;               // the last step of an average: the number of all ranks; else 1
  std::span<const std::uint32_t> ranks{};  // by input: how many ranks' values are in it; empty: one each
  std::uint32_t ranks_in_all = 0;          // of what this step makes; 0: the sum of `ranks`
  // One step may be made in several calls, which name the same ranks_in_all, with the bits of one call:
  bool begun = false;       // the first input is what the call before left, and `ranks` has any number for it
  bool unfinished = false;  // further inputs follow in another call
};

/// reduce() (see reduce.h), as one step of several.
///
/// - op: may be kScaledSum, too (see scaled_sum.h), whose result is scaled by the k of all ranks; integers are summed
/// - step: of an average of floats each input holds what an earlier step left of `ranks` ranks (of one rank: its
///   values), and `out` is what a later step takes, or, with a divisor other than 1, the average. For everything else
///   ranks are ignored, and the divisor is reduce()'s.
///
/// An average of finite values is finite, in every number and order of steps: where rounding alone would make it larger
/// than the largest value, it is the largest. float32 and float64 values below the smallest normal one lose up to
/// k + 1 bits, each input an error of at most half the smallest subnormal.
void reduce_step(DType dtype, ReduceOp op, std::span<const void* const> inputs, void* out, std::size_t count,
                 const Step& step = {}) noexcept;

/// out[i] = in[i] * numerator / denominator, rounded to the accumulator's type twice and to dtype once; where in[i] is
/// finite, at most the largest value. `out` may be `in`. For the types of averages_in_steps().
void rescale(DType dtype, const void* in, void* out, std::size_t count, std::uint32_t numerator,
             std::uint32_t denominator) noexcept;

}  // namespace tributary::kernels
