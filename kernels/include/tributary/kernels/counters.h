#pragma once
// Counts the values that point to trouble: NaN, infinities and subnormal numbers. reduce() itself does not count, and
// pays nothing for the counts.
#include <cstddef>
#include <cstdint>
#include <span>

#include "tributary/protocol/types.h"

namespace tributary::kernels {

/// The calls add to the counters and never reset them. Threads must not share them.
struct ValueCounts {
  std::uint64_t infinities = 0;
  std::uint64_t nans = 0;
  std::uint64_t subnormals = 0;  // values below the smallest normal number of their format, without zeros

  ValueCounts& operator+=(const ValueCounts& other) noexcept {
    infinities += other.infinities;
    nans += other.nans;
    subnormals += other.subnormals;
    return *this;
  }
  [[nodiscard]] bool operator==(const ValueCounts&) const noexcept = default;
};

/// Counts such values among `count` elements of dtype; integers have none. Any alignment; any thread may call it.
void count_values(DType dtype, const void* data, std::size_t count, ValueCounts& found) noexcept;

/// Returns the index of the first NaN among `count` elements; `count` if there is none.
[[nodiscard]] std::size_t first_nan(DType dtype, const void* data, std::size_t count) noexcept;

/// Works like reduce() (see reduce.h), and counts the results, block by block, while each block is in the first cache.
void reduce_counted(DType dtype, ReduceOp op, std::span<const void* const> inputs, void* out, std::size_t count,
                    std::uint32_t divisor, ValueCounts& found) noexcept;

}  // namespace tributary::kernels
