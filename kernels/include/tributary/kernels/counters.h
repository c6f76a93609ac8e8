#pragma once
// How many results of a reduction are not finite, for those who ask. reduce itself counts nothing and pays nothing.
#include <cstddef>
#include <cstdint>
#include <span>

#include "tributary/protocol/types.h"

namespace tributary::kernels {

/// Added to, never reset. Not shared between threads.
struct NonFinite {
  std::uint64_t infinities = 0;
  std::uint64_t nans = 0;
};

/// Adds what `count` elements of dtype hold; integers hold none. Any alignment; any thread.
void count_non_finite(DType dtype, const void* data, std::size_t count, NonFinite& found) noexcept;

/// reduce (see reduce.h), counting the results. A block at a time, which is counted while it is in the first cache.
void reduce_counted(DType dtype, ReduceOp op, std::span<const void* const> inputs, void* out, std::size_t count,
                    std::uint32_t divisor, NonFinite& found) noexcept;

}  // namespace tributary::kernels
