#pragma once
// The exact sum of any number of floats, as a long fixed-point number, and its rounding.
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "tributary/protocol/types.h"

namespace tributary::kernels::reference {

/// A sum of float64 values without any rounding. It has one digit for every 32 bits of the range of float64, and room
/// for carries in each digit, so that an addition touches three digits. All small floats are float64 values, too.
///
/// Source of the idea: R. M. Neal, Fast exact summation using small and large superaccumulators, 2015, arXiv:1505.05571.
class ExactSum {
 public:
  enum class Rounding : std::uint8_t {
    nearest,  // to nearest, ties to even
    odd,      // an inexact result becomes the neighbour with an odd last bit, which a later rounding to at most 51 bits
              // treats like the exact value (Boldo and Melquiond, IEEE Transactions on Computers 57 (2008), 462-471)
  };

  /// The facts of a sum that are no part of its number, as bits.
  enum Marks : std::uint8_t {
    kNaN = 1,
    kInfinity = 2,
    kMinusInfinity = 4,
    kMinusZero = 8,  // every value was -0
    kAllMarks = 15,
  };
  /// The bits of a sum: those below 2^low are zero, and its magnitude is less than 2^high. A sum of zero has low > high.
  struct Extent {
    int low = 0, high = -1;
    bool negative = false;
  };

  void add(double value) noexcept;
  /// Adds a whole number in two's complement, little-endian, times 2^exponent, and the marks of its sum. The number is
  /// within 2^1054 and a multiple of 2^-1074.
  void add(std::span<const std::byte> number, int exponent, std::uint8_t marks) noexcept;
  [[nodiscard]] std::uint8_t marks() const noexcept;
  /// Makes the number's magnitude ready for put().
  [[nodiscard]] Extent settle() noexcept;
  /// Writes the settled sum as a whole number times 2^exponent, in two's complement, and starts a new sum.
  void put(const Extent& extent, int exponent, std::span<std::byte> out) noexcept;
  /// Returns the sum divided by `divisor`, rounded once, and starts a new sum. Rounding::odd is for results in the
  /// normal range of float64.
  [[nodiscard]] double take(std::uint32_t divisor, Rounding rounding) noexcept;

 private:
  /// The exponent of the lowest bit: 78 bits below the smallest float64, for quotients.
  static constexpr int kLowestExponent = -1152;
  static constexpr int kDigitBits = 32;
  /// The highest bit is above the sum of 2^28 of the largest values, and the last digit has the sign.
  static constexpr int kDigits = 71;

  void add_digit(int digit, std::int64_t value) noexcept;
  void add_to_digits(std::uint64_t mantissa, int position, bool negative) noexcept;
  [[nodiscard]] bool settle_sign() noexcept;
  void carry() noexcept;
  [[nodiscard]] bool divide(std::uint32_t divisor) noexcept;
  [[nodiscard]] double rounded(bool rest, Rounding rounding) const noexcept;
  void clear() noexcept;

  std::array<std::int64_t, kDigits> digits_{};
  int low_ = kDigits;  // digits outside of [low_, high_] are zero
  int high_ = -1;
  bool nan_ = false;
  bool infinite_[2] = {};        // index: 1 for -infinity
  bool only_minus_zero_ = true;  // every value was -0
};

/// Writes value i of the array: `value` was rounded to float64 by ExactSum::Rounding::odd, or to nearest for float64.
void put_rounded(DType dtype, void* out, std::size_t index, double value) noexcept;
[[nodiscard]] double value_at(DType dtype, const void* array, std::size_t index) noexcept;
/// Returns the rounding that put_rounded() needs.
[[nodiscard]] constexpr ExactSum::Rounding rounding_of(DType dtype) noexcept {
  return dtype == DType::float64 ? ExactSum::Rounding::nearest : ExactSum::Rounding::odd;
}
/// Returns float32's neighbour of the value with an odd last bit, or the value itself if it is a float32.
[[nodiscard]] float odd_float(double value) noexcept;

/// The contract of exact_sum() in kernels/exact.h, for the elements [first, end).
void exact_sum(DType dtype, std::span<const void* const> inputs, void* out, std::size_t first, std::size_t end,
               std::uint32_t divisor) noexcept;

}  // namespace tributary::kernels::reference
