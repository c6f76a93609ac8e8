#pragma once
// Sums of floats with one rounding: their bits do not depend on the order of the inputs.
#include <cstddef>
#include <cstdint>
#include <span>

#include "tributary/protocol/types.h"

namespace tributary::kernels {

/// The most inputs of exact_sum(): the reference's digits hold the sums of so many values.
inline constexpr std::size_t kExactInputsMax = std::size_t{1} << 28;

/// The greatest divisor of the fast kernels: it has 26 bits, so that the parts of a quotient have exact products.
inline constexpr std::uint32_t kExactDivisorMax = (1U << 26U) - 1;

/// out[i] = round((inputs[0][i] + inputs[1][i] + ...) / divisor), for every i in [0, count).
///
/// - dtype: a float type
/// - inputs: 1 to kExactInputsMax arrays of count elements of dtype, any alignment
/// - out: count elements; may be the same array as one of the inputs; else disjoint from all of them
/// - divisor: 1 for a sum; the number of ranks for an average. One above kExactDivisorMax takes the slower path
///
/// The sum and the quotient are those of real numbers; the result is rounded once, to nearest even, and beyond the
/// largest value it is infinity (NaN in float8 e4m3). So all orders of the inputs, targets, lengths and alignments give
/// the same bits. Special values:
/// - A NaN, or infinities of both signs, give one fixed quiet NaN: positive, and without payload.
/// - Infinities of one sign give that infinity (NaN in float8 e4m3, which has none).
/// - A sum of zero is +0, except if every input is -0: then it is -0.
///
/// Values whose exponents lie far apart (for float32, 2^26 or more among the inputs of one element) take a slower path.
/// The call never allocates or throws; any thread may call it.
void exact_sum(DType dtype, std::span<const void* const> inputs, void* out, std::size_t count,
               std::uint32_t divisor = 1) noexcept;

}  // namespace tributary::kernels
