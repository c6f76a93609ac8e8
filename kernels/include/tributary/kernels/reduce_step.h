#pragma once
// One of the reductions through which an element passes on its way over a tree, a ring or a host.
//
// A sum that is rounded to float16 or float8 between two steps can become infinite although the average of the same
// values is finite. So an average of floats travels as its sum times 2^-k, k = ceil(log2(number of its ranks)), which
// is never larger than the largest of its values. A product with a power of two is exact, so the average has the bits
// of a sum that is divided once at its end. Exceptions are results below the normal range, and sums that would have
// been infinite.
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "tributary/kernels/reduce.h"
#include "tributary/protocol/types.h"

namespace tributary::kernels {

/// True for the types whose averages travel scaled. An integer average is a sum that wraps, and is divided at its end.
[[nodiscard]] constexpr bool averages_in_steps(DType dtype) noexcept {
  return accumulates_wider(dtype) || dtype == DType::float32 || dtype == DType::float64;
}

/// Returns the k by which a sum of this number of ranks travels scaled: the smallest k with 2^k >= ranks.
[[nodiscard]] constexpr int scale_of_ranks(std::uint64_t ranks) noexcept {
  return static_cast<int>(std::bit_width(ranks - 1));
}

struct Step {
  std::uint32_t divisor = 1;               // the number of all ranks in the last step of an average; else 1
  std::span<const std::uint32_t> ranks{};  // for each input, the number of ranks in its sum; empty: 1 each
  std::uint32_t ranks_in_all = 0;          // the number of ranks in this step's result; 0: the sum of `ranks`
  // Several calls with the same ranks_in_all may make one step, which gives the bits of one call:
  bool begun = false;       // the first input is the earlier call's result; its number in `ranks` is ignored
  bool unfinished = false;  // further inputs follow in another call
};

/// reduce() (see reduce.h), as one step of several.
///
/// - op: may also be kScaledSum (see scaled_sum.h), whose result is scaled by the k of all ranks; integers are summed
/// - op: an exact operator or kOrderedProduct (see numerics.h) needs the inputs of all ranks in one step, for
///   kOrderedProduct in the order of the ranks, and their number as the divisor
/// - step: for an average of floats, each input is the result of an earlier step over `ranks` ranks (for one rank: its
///   values), and `out` is an input of a later step, or, with a divisor other than 1, the average. For all other calls
///   `ranks` is ignored, and the divisor is reduce()'s.
///
/// An average of finite values is finite, for every number and order of steps: where rounding alone would make it
/// larger than the largest value, it is the largest. float32 and float64 values below the smallest normal value lose up
/// to k + 1 bits: each input has an error of at most half the smallest subnormal.
void reduce_step(DType dtype, ReduceOp op, std::span<const void* const> inputs, void* out, std::size_t count,
                 const Step& step = {}) noexcept;

/// out[i] = in[i] * numerator / denominator, rounded to the accumulator's type twice and to dtype once. If in[i] is
/// finite, the result is at most the largest value. `out` may be `in`. For the types of averages_in_steps() only.
void rescale(DType dtype, const void* in, void* out, std::size_t count, std::uint32_t numerator,
             std::uint32_t denominator) noexcept;

}  // namespace tributary::kernels
