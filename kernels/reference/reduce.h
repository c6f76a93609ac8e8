#pragma once
// The results that tributary::kernels::reduce must give, one element at a time.
#include <cstddef>
#include <cstdint>
#include <span>

#include "tributary/protocol/types.h"

namespace tributary::kernels::reference {

/// The function of kernels/reduce.h, with the same contract, as a scalar loop.
void reduce(DType dtype, ReduceOp op, std::span<const void* const> inputs, void* out, std::size_t count,
            std::uint32_t divisor = 1) noexcept;

/// The largest finite value of a float type.
[[nodiscard]] double largest_of(DType dtype) noexcept;

/// The contract of ReduceTable::weighted in cpu/kernel_table.h. `weights`: one for each input.
void weighted_sum(DType dtype, std::span<const void* const> inputs, const double* weights, double quotient, void* out,
                  std::size_t count) noexcept;

}  // namespace tributary::kernels::reference
