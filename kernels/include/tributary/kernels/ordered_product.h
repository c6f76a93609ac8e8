#pragma once
// Products of floats in the order of the ranks: a product has no exact form, but a fixed order gives fixed bits.
#include <cstddef>
#include <span>

#include "tributary/protocol/types.h"

namespace tributary::kernels {

/// out[i] = round(((inputs[0][i] * inputs[1][i]) * inputs[2][i]) * ...), for every i in [0, count), in this order.
///
/// - dtype: a float type
/// - inputs: at least one array of count elements of dtype, any alignment
/// - out: count elements; may be the same array as one of the inputs; else disjoint from all of them
///
/// Each product is rounded to float64, to nearest even, and the last one is then rounded once to dtype. So the bits
/// depend only on the values and their order, on every target. Every NaN is one fixed quiet NaN: positive, and without
/// payload. Beyond the largest value the result is infinity (NaN in float8 e4m3). The call never allocates or throws;
/// any thread may call it.
void ordered_product(DType dtype, std::span<const void* const> inputs, void* out, std::size_t count) noexcept;

}  // namespace tributary::kernels
