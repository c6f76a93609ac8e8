#pragma once
// The lengths of whole numbers of 32, 64 and 128 bits, and their quotients, rounded once.
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <type_traits>

namespace tributary::kernels {

__extension__ using Wide = __int128;
__extension__ using WideMagnitude = unsigned __int128;

inline constexpr unsigned kExactBits = 53;  // float64 holds all whole numbers of so many bits

template <class Number>
unsigned bits_of(Number any) noexcept {  // `any`: all bits that a number of the block has above its sign
  if constexpr (sizeof(Number) <= sizeof(std::uint64_t)) {
    return static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(any)));
  } else {
    const auto upper = static_cast<std::uint64_t>(any >> 64U);
    return upper != 0 ? 64 + static_cast<unsigned>(std::bit_width(upper))
                      : static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(any)));
  }
}
template <class Number>
unsigned zeros_of(Number any) noexcept {
  const auto lower = static_cast<std::uint64_t>(any);
  if (lower != 0 || sizeof(Number) <= sizeof(lower)) return static_cast<unsigned>(std::countr_zero(lower));
  return 64 + static_cast<unsigned>(std::countr_zero(static_cast<std::uint64_t>(static_cast<Wide>(any) >> 64U)));
}

/// Returns whether 2^exponent is a normal number of float32.
constexpr bool is_normal_float32(int exponent) noexcept {
  return -126 <= exponent && exponent <= 127;
}
/// Returns whether 2^exponent is a normal number of float64.
constexpr bool is_normal(int exponent) noexcept {
  return -1022 <= exponent && exponent <= 1023;
}
/// Returns 2^exponent, a normal number.
inline double power_of_two(int exponent) noexcept {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52U);
}

/// Returns value / divisor, rounded to odd. `divisor` has at most 26 bits, so both products below are exact.
inline double odd_quotient(double value, std::uint32_t divisor) noexcept {
  const auto by = static_cast<double>(divisor);
  const double quotient = value / by;
  const auto bits = std::bit_cast<std::uint64_t>(quotient);
  const auto upper = std::bit_cast<double>(bits & ~std::uint64_t{0x7FFFFFF});
  const double rest = (value - upper * by) - (quotient - upper) * by;
  if (rest == 0) return quotient;
  const bool beyond = std::signbit(rest) != std::signbit(quotient);
  return std::bit_cast<double>((bits - (beyond ? 1 : 0)) | 1U);
}

/// Returns the float64 nearest to the number.
inline double nearest(std::int64_t number) noexcept {
  return static_cast<double>(number);
}
inline double nearest(Wide number) noexcept {
  // No branch: neither the sign nor the length of a sum can be foretold.
  const Wide sign = number >> 127U;
  const auto magnitude = static_cast<WideMagnitude>((number ^ sign) - sign);
  const int dropped = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(magnitude >> 63U)));
  // The first 63 bits; the last of them tells whether more follow. Bit 0 is below the bit at which float64 rounds.
  const WideMagnitude more = magnitude & ((WideMagnitude{1} << dropped) - 1);
  const std::uint64_t first = static_cast<std::uint64_t>(magnitude >> dropped) | static_cast<std::uint64_t>(more != 0);
  const double value = static_cast<double>(static_cast<std::int64_t>(first)) * power_of_two(dropped);
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) | (static_cast<std::uint64_t>(sign) << 63U));
}

/// Returns number * 2^exponent / divisor, rounded once to nearest, or to odd (53 bits). The divisor has at most 26
/// bits. Nothing if the result may be subnormal, or beyond float64.
template <class Number>
std::optional<double> long_quotient(Number number, int exponent, std::uint32_t divisor, bool odd) noexcept {
  using Magnitude = std::conditional_t<sizeof(Number) == sizeof(Wide), WideMagnitude, std::uint64_t>;
  constexpr int kBits = 8 * sizeof(Number);
  const Magnitude magnitude =
      number < 0 ? Magnitude{0} - static_cast<Magnitude>(number) : static_cast<Magnitude>(number);
  const int lead = kBits - static_cast<int>(bits_of(static_cast<Number>(magnitude)));
  // The number's first 64 bits, and 32 more, give a quotient of at least 70 bits; the rest only makes it inexact.
  const Magnitude shifted = magnitude << lead;
  const auto upper = static_cast<std::uint64_t>(shifted >> (kBits - 64));
  const std::uint64_t lower = sizeof(Number) == sizeof(Wide) ? static_cast<std::uint64_t>(shifted) : 0;
  const std::uint64_t first = upper / divisor;
  const std::uint64_t next = (upper % divisor << 32U) | lower >> 32U;
  const std::uint64_t second = next / divisor;
  const bool rest = next % divisor != 0 || (lower & 0xFFFFFFFF) != 0;
  // The quotient is first * 2^32 + second, and `first` has at least 38 bits. Keep the first 64 of all bits.
  const int width = static_cast<int>(std::bit_width(first));
  const int dropped = width - 32;
  std::uint64_t window = first << (64 - width) | second >> dropped;
  const bool below = rest || second << (64 - dropped) != 0;
  const int last = exponent - lead + (kBits - 64) - 32 + dropped;
  if (last < -1022 || last + 64 > 1023) return std::nullopt;
  if (odd) {
    window = window >> 11U | ((window & 0x7FF) != 0 || below ? 1 : 0);
    const double value = static_cast<double>(window) * power_of_two(last) * 2048;
    return number < 0 ? -value : value;
  }
  const double value = static_cast<double>(window | (below ? 1 : 0)) * power_of_two(last);
  return number < 0 ? -value : value;
}

}  // namespace tributary::kernels
