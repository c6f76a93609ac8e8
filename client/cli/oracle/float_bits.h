#pragma once
// The formats of floats as bits, random bits for them, exact sums of them, and products in order. `tributary verify-bits`
// compares the library's results with these, so nothing here is shared with the library.
#include <array>
#include <cstddef>
#include <cstdint>

#include "tributary/protocol/types.h"

namespace tributary::cli {

/// A binary format: sign, exponent and fraction, from the top down.
struct FloatBits {
  unsigned exponent_bits = 0, fraction_bits = 0;
  bool has_infinity = true;  // float8 e4m3 has none; only its largest pattern is NaN

  [[nodiscard]] constexpr std::uint64_t sign() const noexcept { return 1ULL << (exponent_bits + fraction_bits); }
  [[nodiscard]] constexpr std::uint64_t exponents() const noexcept { return (1ULL << exponent_bits) - 1; }
  [[nodiscard]] constexpr std::uint64_t fractions() const noexcept { return (1ULL << fraction_bits) - 1; }
  [[nodiscard]] constexpr std::uint64_t infinity() const noexcept { return exponents() << fraction_bits; }
  [[nodiscard]] constexpr std::uint64_t largest() const noexcept { return has_infinity ? infinity() - 1 : sign() - 2; }
  [[nodiscard]] constexpr std::uint64_t nan() const noexcept {
    return has_infinity ? infinity() | 1ULL << (fraction_bits - 1) : sign() - 1;
  }
  [[nodiscard]] constexpr std::uint64_t one() const noexcept { return (exponents() >> 1U) << fraction_bits; }
  /// Returns the exponent of the smallest value above zero.
  [[nodiscard]] constexpr int least() const noexcept {
    return 2 - static_cast<int>(exponents() >> 1U) - 1 - static_cast<int>(fraction_bits);
  }
  [[nodiscard]] constexpr bool is_nan(std::uint64_t bits) const noexcept { return (bits & (sign() - 1)) > limit(); }
  [[nodiscard]] constexpr bool is_infinite(std::uint64_t bits) const noexcept {
    return has_infinity && (bits & (sign() - 1)) == infinity();
  }

 private:
  [[nodiscard]] constexpr std::uint64_t limit() const noexcept { return has_infinity ? infinity() : largest(); }
};
[[nodiscard]] FloatBits float_bits_of(DType dtype) noexcept;
/// Returns random bits that depend on all bits of `x` (splitmix64's finalizer).
[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31U);
}

/// The exact sum of values of one format: one long number of which each bit has its place.
class BitSum {
 public:
  explicit BitSum(FloatBits format) noexcept : format_(format) {}
  void add(std::uint64_t bits) noexcept;
  /// Returns the bits of the sum divided by `divisor`, rounded once, to nearest even.
  [[nodiscard]] std::uint64_t rounded(std::uint32_t divisor) const noexcept;

 private:
  static constexpr int kLowest = -1216;  // exponent of the lowest bit: below any value, with room for a quotient
  static constexpr std::size_t kWords = 38;
  using Words = std::array<std::uint64_t, kWords>;

  static bool negate(Words& words) noexcept;
  static bool divide(Words& words, std::uint32_t divisor) noexcept;
  [[nodiscard]] std::uint64_t round(const Words& magnitude, bool rest) const noexcept;

  friend std::uint64_t bits_of_product(FloatBits format, double product) noexcept;

  FloatBits format_;
  Words words_{};  // two's complement, the lowest word first
  bool nan_ = false, infinite_ = false, minus_infinite_ = false, only_minus_zero_ = true;
};

/// Returns the value of these bits as a float64.
[[nodiscard]] double value_of(FloatBits format, std::uint64_t bits) noexcept;
/// Returns the bits of a product in float64, rounded once, to nearest even.
[[nodiscard]] std::uint64_t bits_of_product(FloatBits format, double product) noexcept;

}  // namespace tributary::cli
