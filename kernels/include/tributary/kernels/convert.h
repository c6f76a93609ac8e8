#pragma once
// Conversions between float32 and the smaller formats that travel on the wire, and sums that convert as they add.
#include <cstddef>
#include <cstdint>

#include "tributary/protocol/types.h"

namespace tributary::kernels {

/// The result for an infinity, and for a finite value that rounds beyond the largest finite value of the new format.
enum class Overflow : std::uint8_t {
  to_infinity,  // infinity, as in IEEE 754; NaN in float8 e4m3, which has no infinity
  saturate,     // the largest finite value of that sign
};

/// The calls add to the counters and never reset them, so the counters can serve many calls. Threads must not share
/// them.
struct ConvertCounters {
  std::uint64_t overflows = 0;  // number of finite values that were too large
  std::uint64_t nans = 0;       // number of NaN among the inputs
};

struct ConvertOptions {
  Overflow overflow = Overflow::to_infinity;
  ConvertCounters* counters = nullptr;  // null: the call counts no values, which is faster
};

/// True if one of the two types is float32 and the other is float16, bfloat16, float8_e4m3 or float8_e5m2.
[[nodiscard]] bool can_convert(DType from, DType to) noexcept;

/// out[i] = in[i], converted, for every i in [0, count).
///
/// in, out  count elements of `from` and of `to`, a pair that can_convert allows; any alignment; disjoint
///
/// From float32 each value is rounded once, to nearest even; subnormal results are kept, and a NaN is made quiet. The
/// conversion to float32 is exact; a NaN stays a NaN, quiet or not. All targets give the same bits, except in the
/// payload of a NaN. Never allocates or throws; any thread may call it.
void convert(DType from, DType to, const void* in, void* out, std::size_t count,
             const ConvertOptions& options = {}) noexcept;

/// accumulator[i] += in[i], in float32, for every i in [0, count): converts and adds in one pass over memory.
///
/// in           count elements of `from`, a format that convert widens; any alignment; disjoint from the accumulator
/// accumulator  count elements
///
/// Uses only the counters of the options: `overflows` counts finite accumulators that became infinite.
void convert_accumulate(DType from, const void* in, float* accumulator, std::size_t count,
                        const ConvertOptions& options = {}) noexcept;

// ---- int8 with one scale per block

inline constexpr std::size_t kScaleBlockMin = 32;
inline constexpr std::size_t kScaleBlockMax = 256;

/// True for 32, 64, 96, ... 256 elements.
[[nodiscard]] constexpr bool is_scale_block(std::size_t block) noexcept {
  return block >= kScaleBlockMin && block <= kScaleBlockMax && block % kScaleBlockMin == 0;
}
[[nodiscard]] constexpr std::size_t scales_count(std::size_t count, std::size_t block) noexcept {
  return (count + block - 1) / block;
}

/// For every block of `block` elements (the last one may be shorter): scales[b] = max |in| / 127, and out[i] = in[i] /
/// scales[b] rounded to the nearest integer, ties to even.
///
/// in      count float32
/// out     count int8, -127..127
/// scales  scales_count(count, block) float32; none below the smallest normal float32, so that reciprocals are finite
///
/// |in[i] - out[i] scales[b]| <= (1/2 + 2^-15) scales[b]: half a step, and the rounding errors of the reciprocal and of
/// one product, each 2^-24 relative to at most 127 steps. A block with a NaN or an infinity gets the scale NaN and
/// zeros: all its elements are NaN after dequantize(), so that a check for overflow finds them. The counter `nans`
/// counts the NaN, and `overflows` the infinities.
void quantize(const float* in, std::int8_t* out, float* scales, std::size_t count, std::size_t block,
              ConvertCounters* counters = nullptr) noexcept;

/// out[i] = in[i] * scales[b], one product rounded to float32.
void dequantize(const std::int8_t* in, const float* scales, float* out, std::size_t count, std::size_t block) noexcept;

/// accumulator[i] += in[i] * scales[b]: every target rounds the product to float32, then the sum (never fused).
void dequantize_accumulate(const std::int8_t* in, const float* scales, float* accumulator, std::size_t count,
                           std::size_t block) noexcept;

}  // namespace tributary::kernels
