#pragma once
// Products of an array's elements with one factor: the first step of a pre-multiplied sum.
#include <cstddef>

#include "tributary/protocol/types.h"

namespace tributary::kernels {

/// out[i] = in[i] * factor, for every i in [0, count).
///
/// - in: count elements of dtype, any alignment
/// - factor: one element of dtype
/// - out: count elements; may be the same array as `in`; else disjoint from it
///
/// The bits are those of reduce() with ReduceOp::prod and the two inputs `in` and an array of factors: integers wrap,
/// and each product of floats is rounded once to its type, to nearest even. Never allocates or throws; any thread may
/// call it.
void multiply_by(DType dtype, const void* in, const void* factor, void* out, std::size_t count) noexcept;

}  // namespace tributary::kernels
