#pragma once
// The weighted sum for a step of an average, on the machine's best target.
#include <cstddef>
#include <span>

#include "tributary/protocol/types.h"

namespace tributary::kernels {

/// Calls ReduceTable::weighted (see kernel_table.h) for 1 to kReduceInputsMax inputs of a float type. `out` may overlap
/// inputs as in reduce().
void weighted_sum(DType dtype, std::span<const void* const> inputs, std::span<const double> weights, double quotient,
                  void* out, std::size_t count) noexcept;

}  // namespace tributary::kernels
