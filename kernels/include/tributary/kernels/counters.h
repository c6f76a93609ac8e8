#pragma once
// Counts the results of a reduction that are not finite. reduce() itself does not count, and pays nothing for the
// counts.
#include <cstddef>
#include <cstdint>
#include <span>

#include "tributary/protocol/types.h"

namespace tributary::kernels {

/// The calls add to the counters and never reset them. Threads must not share them.
struct NonFinite {
  std::uint64_t infinities = 0;
  std::uint64_t nans = 0;
};

/// Counts the values among `count` elements of dtype that are not finite; integers have none. Any alignment; any thread
/// may call it.
void count_non_finite(DType dtype, const void* data, std::size_t count, NonFinite& found) noexcept;

/// Works like reduce() (see reduce.h), and counts the results, block by block, while each block is in the first cache.
void reduce_counted(DType dtype, ReduceOp op, std::span<const void* const> inputs, void* out, std::size_t count,
                    std::uint32_t divisor, NonFinite& found) noexcept;

}  // namespace tributary::kernels
