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

  void add(double value) noexcept;
  /// Returns the sum divided by `divisor`, rounded once, and starts a new sum. Rounding::odd is for results in the
  /// normal range of float64.
  [[nodiscard]] double take(std::uint32_t divisor, Rounding rounding) noexcept;

 private:
  /// The exponent of the lowest bit: 78 bits below the smallest float64, for quotients.
  static constexpr int kLowestExponent = -1152;
  static constexpr int kDigitBits = 32;
  /// The highest bit is above the sum of 2^28 of the largest values, and the last digit has the sign.
  static constexpr int kDigits = 71;

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

/// The contract of exact_sum() in kernels/exact.h, for the elements [first, end).
void exact_sum(DType dtype, std::span<const void* const> inputs, void* out, std::size_t first, std::size_t end,
               std::uint32_t divisor) noexcept;

}  // namespace tributary::kernels::reference
