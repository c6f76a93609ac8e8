#include "kernels/reference/float_format.h"
#include "tributary/protocol/assert.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tributary::kernels::reference {

FloatFormat format_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::float16:
      return {5, 10, true};
    case DType::bfloat16:
      return {8, 7, true};
    case DType::float8_e5m2:
      return {5, 2, true};
    default:
      TRIBUTARY_ASSERT(dtype == DType::float8_e4m3, "type {} is no float with a format", dtype);
      return {4, 3, false};
  }
}

float decode(FloatFormat format, std::uint32_t bits) noexcept {
  const std::uint32_t magnitude = bits & (format.sign_bit() - 1);
  const auto exponent = static_cast<int>(magnitude >> format.mantissa_bits);
  const std::uint32_t fraction = magnitude & ((1U << format.mantissa_bits) - 1);
  const std::uint32_t hidden = exponent == 0 ? 0 : 1U << format.mantissa_bits;
  float value =
      std::ldexp(static_cast<float>(hidden + fraction), std::max(exponent, 1) - format.bias() - format.mantissa_bits);
  if (magnitude > format.largest_finite()) {
    const bool infinite = format.has_infinity && fraction == 0;
    value = infinite ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  }
  return (bits & format.sign_bit()) != 0 ? -value : value;
}

std::uint32_t encode(FloatFormat format, float value, Overflow overflow) noexcept {
  const std::uint32_t sign = std::signbit(value) ? format.sign_bit() : 0;
  if (std::isnan(value)) return sign | format.quiet_nan();

  const std::uint32_t beyond = overflow == Overflow::saturate ? format.largest_finite()
                               : format.has_infinity          ? format.exponent_mask()
                                                              : format.quiet_nan();
  if (std::isinf(value)) return sign | beyond;

  // The value is rounded to a whole number of units. A unit is the value of the last bit at this magnitude, and stays
  // the same below the smallest normal number.
  const double magnitude = std::fabs(static_cast<double>(value));
  const int exponent = magnitude == 0 ? 1 - format.bias() : std::max(std::ilogb(magnitude), 1 - format.bias());
  const auto units = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(magnitude, format.mantissa_bits - exponent)));
  // Consecutive magnitudes have consecutive codes, so a carry out of the mantissa raises the exponent by itself.
  const auto codes_below = static_cast<std::uint32_t>(exponent + format.bias() - 1) << format.mantissa_bits;
  const std::uint32_t code = codes_below + units;
  return sign | (code > format.largest_finite() ? beyond : code);
}

}  // namespace tributary::kernels::reference
