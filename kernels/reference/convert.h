#pragma once
// The results that tributary::kernels::convert and the other functions of convert.h must give, one element at a time.
// See kernels/convert.h for the contracts.
#include <cstddef>
#include <cstdint>

#include "tributary/kernels/convert.h"
#include "tributary/kernels/counters.h"
#include "tributary/protocol/types.h"

namespace tributary::kernels::reference {

void convert(DType from, DType to, const void* in, void* out, std::size_t count,
             const ConvertOptions& options = {}) noexcept;
void convert_accumulate(DType from, const void* in, float* accumulator, std::size_t count,
                        const ConvertOptions& options = {}) noexcept;
void quantize(const float* in, std::int8_t* out, float* scales, std::size_t count, std::size_t block,
              ConvertCounters* counters = nullptr) noexcept;
void dequantize(const std::int8_t* in, const float* scales, float* out, std::size_t count, std::size_t block) noexcept;
void dequantize_accumulate(const std::int8_t* in, const float* scales, float* accumulator, std::size_t count,
                           std::size_t block) noexcept;
void count_values(DType dtype, const void* data, std::size_t count, ValueCounts& found) noexcept;

}  // namespace tributary::kernels::reference
