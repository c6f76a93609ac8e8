#pragma once
// The sum that anyone would write first, as the compiler makes it with -O3 -march=native.
#include <cstddef>
#include <span>

#include "tributary/protocol/types.h"

namespace tributary::bench {

/// out = sum of 2, 4 or 8 inputs of count elements of float32, bfloat16, float16 or int32, 16-bit floats summed in
/// float32.
using PlainSum = void (*)(std::span<const void* const> inputs, void* out, std::size_t count);

/// Null for a dtype or number of inputs it was not written for.
[[nodiscard]] PlainSum plain_sum(DType dtype, std::size_t inputs);

}  // namespace tributary::bench
