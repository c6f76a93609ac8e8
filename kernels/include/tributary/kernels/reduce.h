#pragma once
// Element-wise reductions on host memory, by kernels that are chosen for the machine at run time.
#include <cstddef>
#include <cstdint>
#include <span>

#include "tributary/protocol/types.h"

namespace tributary::kernels {

inline constexpr std::size_t kReduceInputsMax = 64;

/// out[i] = (((inputs[0][i] op inputs[1][i]) op inputs[2][i]) op ...), for every i in [0, count), always in this order,
/// in one pass.
///
/// - inputs: 1 to 64 arrays of count elements of dtype, any alignment; with one input the call is a copy (and a
///   division, for avg)
/// - out: count elements; may be the same array as one of the inputs; else disjoint from all of them
/// - divisor: only for ReduceOp::avg: the sum is divided by it, once, before the only rounding; 1 does not change the
///   sum. So a root passes the number of ranks, and other aggregators pass 1. Other ops ignore it.
///
/// Integers wrap; an integer average truncates toward zero. float16, bfloat16 and the float8 formats are combined in
/// float32 and rounded once, to nearest even. min and max propagate NaN. The bits depend only on the inputs and their
/// order: all targets, lengths and alignments give the same bits (a NaN result is a quiet NaN with any payload). Never
/// allocates or throws; any thread may call it.
void reduce(DType dtype, ReduceOp op, std::span<const void* const> inputs, void* out, std::size_t count,
            std::uint32_t divisor = 1) noexcept;

}  // namespace tributary::kernels
