#pragma once
// Contributions whose rounded sums depend on the order of the additions, and their exact sums.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tributary/protocol/types.h"

namespace tributary::cli {

/// True for sums and averages of floats.
[[nodiscard]] bool has_exact_pattern(DType dtype, ReduceOp op) noexcept;

/// Returns a rank's contribution of kPatternPeriod elements (pattern.h): values of both signs whose exponents differ,
/// and for each 64th element values that lie far apart.
[[nodiscard]] std::vector<std::byte> exact_contribution(DType dtype, std::uint32_t rank);

/// Returns the exact sum (or average) of the contributions of all ranks, rounded once. It is computed without the
/// kernels that the library uses.
[[nodiscard]] std::vector<std::byte> exact_reduced(DType dtype, ReduceOp op, std::uint32_t ranks);

/// Returns the distance of two elements in units of the last place: the number of steps from one value to the other. A
/// NaN lies beyond infinity.
[[nodiscard]] std::uint64_t units_between(DType dtype, const std::byte* a, const std::byte* b) noexcept;

}  // namespace tributary::cli
