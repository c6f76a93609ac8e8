#pragma once
// The sum that a step of an average is made of, on the machine's best target.
#include <cstddef>
#include <span>

#include "tributary/protocol/types.h"

namespace tributary::kernels {

/// ReduceTable::weighted (see kernel_table.h) for 1 to kReduceInputsMax inputs of a float type. `out` as reduce()'s.
void weighted_sum(DType dtype, std::span<const void* const> inputs, std::span<const double> weights, double quotient,
                  void* out, std::size_t count) noexcept;

}  // namespace tributary::kernels
