#pragma once
// The K-way sum as one writes it first with Highway's own operations: widen, add, narrow, store, one pass over all
// inputs. It does not unroll, prefetch or store past the caches. A kernel of this project must be at least as fast, on
// every CPU.
#include <cstddef>
#include <span>

#include "tributary/protocol/types.h"

namespace tributary::bench {

/// out = inputs[0] + inputs[1] + ..., count elements, the small floats added in float32 and rounded once to nearest
/// even (NaNs apart). A rest at the end that fills no vector is left out.
using DirectSum = void (*)(std::span<const void* const> inputs, void* out, std::size_t count);

/// For float32, int32, bfloat16 and float16, and 2, 4 or 8 inputs; null for others.
[[nodiscard]] DirectSum direct_sum(DType dtype, std::size_t inputs);

}  // namespace tributary::bench
