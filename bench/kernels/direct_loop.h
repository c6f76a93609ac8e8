#pragma once
// The K-way sum as a programmer first writes it with Highway's own operations: widen, add, narrow, store, in one pass
// over all inputs. It does not unroll, prefetch or store past the caches. A kernel of this project must be at least as
// fast, on every CPU.
#include <cstddef>
#include <span>

#include "tributary/protocol/types.h"

namespace tributary::bench {

/// Computes out = inputs[0] + inputs[1] + ... for count elements. It adds small floats in float32 and rounds once to
/// nearest even (except for NaNs). It leaves out elements at the end that do not fill a vector.
using DirectSum = void (*)(std::span<const void* const> inputs, void* out, std::size_t count);

/// Returns the loop for float32, int32, bfloat16 or float16, and 2, 4 or 8 inputs; null for all others.
[[nodiscard]] DirectSum direct_sum(DType dtype, std::size_t inputs);

}  // namespace tributary::bench
