#pragma once
// The simplest code for a reduction, as the compiler makes it with -O3 -march=native.
#include <cstddef>
#include <cstdint>
#include <span>

#include "tributary/protocol/types.h"

namespace tributary::bench {

/// Computes out = inputs[0] op inputs[1] op ... for count elements. It combines small floats in float32; the divisor is
/// for avg.
using PlainReduce = void (*)(std::span<const void* const> inputs, void* out, std::size_t count, std::uint32_t divisor);

/// Returns the loop for 2, 4 or 8 inputs; null for another number, and where this CPU has no conversion of float16.
[[nodiscard]] PlainReduce plain_reduce(DType dtype, ReduceOp op, std::size_t inputs);

/// Returns the loop that writes `in` to `out` in the other format, or adds it to `out`; null where this CPU has no
/// conversion of float16.
using PlainConvert = void (*)(const void* in, void* out, std::size_t count);

[[nodiscard]] PlainConvert plain_narrow(DType to);
[[nodiscard]] PlainConvert plain_widen(DType from, bool accumulates);

}  // namespace tributary::bench
