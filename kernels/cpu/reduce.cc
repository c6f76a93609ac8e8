#include "tributary/kernels/reduce.h"

#include "../reference/reduce.h"

namespace tributary::kernels {

void reduce(DType dtype, ReduceOp op, std::span<const void* const> inputs, void* out, std::size_t count,
            std::uint32_t divisor) noexcept {
  reference::reduce(dtype, op, inputs, out, count, divisor);
}

}  // namespace tributary::kernels
