#pragma once
// What tributary::kernels::reduce must compute, one element at a time.
#include <cstddef>
#include <cstdint>
#include <span>

#include "tributary/protocol/types.h"

namespace tributary::kernels::reference {

/// The contract of kernels/reduce.h, word for word, at the speed of a scalar loop.
void reduce(DType dtype, ReduceOp op, std::span<const void* const> inputs, void* out, std::size_t count,
            std::uint32_t divisor = 1) noexcept;

}  // namespace tributary::kernels::reference
