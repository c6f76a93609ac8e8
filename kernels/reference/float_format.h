#pragma once
// The small floating-point formats, computed from their definition without bit tricks: slow, and easy to check by eye.
#include <cstdint>

#include "tributary/kernels/convert.h"
#include "tributary/protocol/types.h"

namespace tributary::kernels::reference {

/// A format with sign, exponent and mantissa from the top down, as in IEEE 754. In a format without infinity (OCP
/// float8 e4m3) the all-ones exponent holds ordinary values, except for the all-ones pattern, which is NaN. Source: OCP
/// 8-bit Floating Point Specification (OFP8), revision 1.0, 2023.
struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;
  bool has_infinity;

  [[nodiscard]] constexpr int bias() const noexcept { return (1 << (exponent_bits - 1)) - 1; }
  [[nodiscard]] constexpr std::uint32_t sign_bit() const noexcept { return 1U << (exponent_bits + mantissa_bits); }
  [[nodiscard]] constexpr std::uint32_t exponent_mask() const noexcept {
    return ((1U << exponent_bits) - 1) << mantissa_bits;
  }
  [[nodiscard]] constexpr std::uint32_t largest_finite() const noexcept {
    return has_infinity ? exponent_mask() - 1 : sign_bit() - 2;
  }
  [[nodiscard]] constexpr std::uint32_t quiet_nan() const noexcept {
    return has_infinity ? exponent_mask() | (1U << (mantissa_bits - 1)) : sign_bit() - 1;
  }
};

/// `dtype` is float16, bfloat16, float8_e4m3 or float8_e5m2.
[[nodiscard]] FloatFormat format_of(DType dtype) noexcept;

/// The conversion is exact: every value of the small formats is a float32.
[[nodiscard]] float decode(FloatFormat format, std::uint32_t bits) noexcept;

/// Rounds to nearest, ties to even. A NaN becomes the quiet NaN with the same sign.
[[nodiscard]] std::uint32_t encode(FloatFormat format, float value, Overflow overflow = Overflow::to_infinity) noexcept;

}  // namespace tributary::kernels::reference
