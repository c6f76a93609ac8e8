#pragma once
// Whole numbers of several words, and their rounding to a float type. All of it is arithmetic on integers, so nvcc and
// g++ make the same bits.
#include <bit>

#include "kernels/cuda/device/portable.cuh"
#include "tributary/protocol/types.h"

// Loops over the words of short numbers are unrolled; those over long ones would be too much code.
#if defined(__CUDACC__)
#define TRIBUTARY_UNROLL_WORDS _Pragma("unroll kUnrolled")
#else
#define TRIBUTARY_UNROLL_WORDS
#endif

namespace tributary::kernels::cuda {

TRIBUTARY_DEVICE int width_of(std::uint64_t number) {
#if defined(__CUDA_ARCH__)
  return 64 - __clzll(static_cast<long long>(number));
#else
  return static_cast<int>(std::bit_width(number));
#endif
}

/// Returns the index of the lowest bit that is set; `number` is not 0.
TRIBUTARY_DEVICE int lowest_bit_of(std::uint64_t number) {
#if defined(__CUDA_ARCH__)
  return __ffsll(static_cast<long long>(number)) - 1;
#else
  return std::countr_zero(number);
#endif
}

/// A number in two's complement; words[0] has its lowest bits.
template <int kWords>
struct WholeNumber {
  // Few words stay in registers, if the compiler knows each index. Many words lie in the thread's own memory.
  static constexpr bool kFew = kWords <= 2;
  static constexpr int kBits = 64 * kWords;
  static constexpr int kUnrolled = kFew ? kWords : 1;

  /// Adds, or subtracts, magnitude * 2^shift.
  TRIBUTARY_DEVICE void add(std::uint64_t magnitude, bool subtract, int shift) {
    const int first = shift / 64;
    const int places = shift % 64;
    const std::uint64_t lower = magnitude << places;
    const std::uint64_t upper = places == 0 ? 0 : magnitude >> (64 - places);
    std::uint64_t carry = 0;
    TRIBUTARY_UNROLL_WORDS
    for (int i = kFew ? 0 : first; i < kWords; ++i) {
      const std::uint64_t part = i == first ? lower : i == first + 1 ? upper : 0;
      carry = subtract ? subtract_at(i, part, carry) : add_at(i, part, carry);
      if (!kFew && i > first && carry == 0) return;
    }
  }

  /// Adds number * 2^shift, where the number has `width` bytes in two's complement.
  TRIBUTARY_DEVICE void add_bytes(const std::uint8_t* bytes, std::uint32_t width, int shift) {
    std::uint32_t done = 0;
    while (done < width) {
      const std::uint32_t some = width - done < 8 ? width - done : 8;
      std::uint64_t part = 0;
      for (std::uint32_t i = 0; i < some; ++i) part |= static_cast<std::uint64_t>(bytes[done + i]) << (8 * i);
      add(part, false, shift + static_cast<int>(8 * done));
      done += some;
    }
    const int end = shift + static_cast<int>(8 * width);
    if (width > 0 && bytes[width - 1] >= 0x80 && end < kBits) add(1, true, end);
  }

  [[nodiscard]] TRIBUTARY_DEVICE bool negative() const { return words[kWords - 1] >> 63 != 0; }
  [[nodiscard]] TRIBUTARY_DEVICE bool zero() const {
    std::uint64_t any = 0;
    TRIBUTARY_UNROLL_WORDS
    for (int i = 0; i < kWords; ++i) any |= words[i];
    return any == 0;
  }

  /// Returns the index of the lowest bit that is set, of a number that is not 0.
  [[nodiscard]] TRIBUTARY_DEVICE int lowest_bit() const {
    int lowest = kBits;
    TRIBUTARY_UNROLL_WORDS
    for (int i = kWords - 1; i >= 0; --i) {
      if (words[i] != 0) lowest = 64 * i + lowest_bit_of(words[i]);
    }
    return lowest;
  }
  /// Returns the number of bits below the sign.
  [[nodiscard]] TRIBUTARY_DEVICE int width() const {
    const std::uint64_t sign = negative() ? ~std::uint64_t{0} : 0;
    int bits = 0;
    TRIBUTARY_UNROLL_WORDS
    for (int i = 0; i < kWords; ++i) {
      if ((words[i] ^ sign) != 0) bits = 64 * i + width_of(words[i] ^ sign);
    }
    return bits;
  }

  /// Returns the 64 bits from `position` on; those beyond the number are its sign.
  [[nodiscard]] TRIBUTARY_DEVICE std::uint64_t bits_from(int position) const {
    const int first = position / 64;
    const int places = position % 64;
    const std::uint64_t lower = word(first) >> places;
    return places == 0 ? lower : lower | word(first + 1) << (64 - places);
  }
  [[nodiscard]] TRIBUTARY_DEVICE bool any_bit_below(int position) const {
    std::uint64_t any = 0;
    TRIBUTARY_UNROLL_WORDS
    for (int i = 0; i < kWords; ++i) {
      const int bits = position - 64 * i;
      if (bits > 0) any |= bits >= 64 ? words[i] : words[i] << (64 - bits);
    }
    return any != 0;
  }

  TRIBUTARY_DEVICE void negate() {
    std::uint64_t carry = 1;
    TRIBUTARY_UNROLL_WORDS
    for (int i = 0; i < kWords; ++i) {
      words[i] = ~words[i] + carry;
      carry = carry != 0 && words[i] == 0 ? 1 : 0;
    }
  }

  /// Divides a number that is not negative. Returns whether a remainder is left.
  [[nodiscard]] TRIBUTARY_DEVICE bool divide(std::uint32_t divisor) {
    std::uint64_t rest = 0;
    TRIBUTARY_UNROLL_WORDS
    for (int i = kWords - 1; i >= 0; --i) {
      const std::uint64_t upper = rest << 32 | words[i] >> 32;
      const std::uint64_t lower = upper % divisor << 32 | (words[i] & 0xFFFFFFFF);
      words[i] = upper / divisor << 32 | lower / divisor;
      rest = lower % divisor;
    }
    return rest != 0;
  }

  std::uint64_t words[static_cast<std::size_t>(kWords)];

 private:
  [[nodiscard]] TRIBUTARY_DEVICE std::uint64_t word(int index) const {
    std::uint64_t found = negative() ? ~std::uint64_t{0} : 0;
    if constexpr (kFew) {
      TRIBUTARY_UNROLL_WORDS
      for (int i = 0; i < kWords; ++i) found = i == index ? words[i] : found;
      return found;
    }
    return index < kWords ? words[index] : found;
  }
  TRIBUTARY_DEVICE std::uint64_t add_at(int index, std::uint64_t part, std::uint64_t carry) {
    const std::uint64_t sum = words[index] + part;
    words[index] = sum + carry;
    return sum < part || words[index] < carry ? 1 : 0;
  }
  TRIBUTARY_DEVICE std::uint64_t subtract_at(int index, std::uint64_t part, std::uint64_t carry) {
    const std::uint64_t before = words[index];
    const std::uint64_t difference = before - part;
    words[index] = difference - carry;
    return before < part || difference < carry ? 1 : 0;
  }
};

template <int kWords>
TRIBUTARY_DEVICE WholeNumber<kWords> zero_number() {
  [[maybe_unused]] constexpr int kUnrolled = WholeNumber<kWords>::kUnrolled;
  WholeNumber<kWords> number;
  TRIBUTARY_UNROLL_WORDS
  for (int i = 0; i < kWords; ++i) number.words[i] = 0;
  return number;
}

/// The bits of a float type: a finite value is a whole number times a power of two.
template <class Bits, int kFractionBits, int kExponentBits, int kLeastExponent, bool kWithInfinity = true>
struct FloatLayout {
  using Stored = Bits;
  static constexpr int kFraction = kFractionBits;
  static constexpr int kLeast = kLeastExponent;  // the smallest value is 2^kLeast
  static constexpr bool kInfinity = kWithInfinity;
  static constexpr int kFields = 1 << kExponentBits;
  static constexpr std::uint64_t kSign = std::uint64_t{1} << (kFractionBits + kExponentBits);
  static constexpr std::uint64_t kBeyond = kWithInfinity ? std::uint64_t{kFields - 1} << kFractionBits : kSign - 1;
  static constexpr std::uint64_t kNaN = kWithInfinity ? kBeyond | std::uint64_t{1} << (kFractionBits - 1) : kBeyond;
};
template <DType kDType>
struct LayoutOf;
template <>
struct LayoutOf<DType::float64> : FloatLayout<std::uint64_t, 52, 11, -1074> {};
template <>
struct LayoutOf<DType::float32> : FloatLayout<std::uint32_t, 23, 8, -149> {};
template <>
struct LayoutOf<DType::bfloat16> : FloatLayout<std::uint16_t, 7, 8, -133> {};
template <>
struct LayoutOf<DType::float16> : FloatLayout<std::uint16_t, 10, 5, -24> {};
template <>
struct LayoutOf<DType::float8_e5m2> : FloatLayout<std::uint8_t, 2, 5, -16> {};
template <>
struct LayoutOf<DType::float8_e4m3> : FloatLayout<std::uint8_t, 3, 4, -9, false> {};

/// Returns the bits of the value nearest to number * 2^low, ties to even; `number` is positive. `rest`: a positive
/// number below the lowest bit belongs to it, too.
template <class Layout, int kWords>
TRIBUTARY_DEVICE std::uint64_t rounded(const WholeNumber<kWords>& number, int low, bool rest) {
  const int top = low + number.width() - 1;
  const int last = top - Layout::kFraction > Layout::kLeast ? top - Layout::kFraction : Layout::kLeast;
  if (last - Layout::kLeast >= Layout::kFields) return Layout::kBeyond;
  const int dropped = last - low;
  std::uint64_t mantissa;
  if (dropped <= 0) {
    mantissa = number.words[0] << -dropped;
  } else {
    mantissa = number.bits_from(dropped);
    const bool half = (number.bits_from(dropped - 1) & 1) != 0;
    if (half && ((mantissa & 1) != 0 || rest || number.any_bit_below(dropped - 1))) ++mantissa;
  }
  // A mantissa that reaches the next power of two raises the exponent by itself.
  const std::uint64_t bits = (static_cast<std::uint64_t>(last - Layout::kLeast) << Layout::kFraction) + mantissa;
  return bits < Layout::kBeyond ? bits : Layout::kBeyond;
}

/// Returns the bits of number * 2^low / divisor, rounded once; `number` is not 0.
template <class Layout, int kWords>
TRIBUTARY_DEVICE std::uint64_t quotient(WholeNumber<kWords> number, int low, std::uint32_t divisor) {
  const bool negative = number.negative();
  if (negative) number.negate();
  std::uint64_t bits;
  if ((divisor & (divisor - 1)) == 0) {
    bits = rounded<Layout>(number, low - lowest_bit_of(divisor), false);
  } else {
    // Two words more: a quotient by at most 32 bits then has more bits than any type.
    constexpr int kMore = 2;
    [[maybe_unused]] constexpr int kUnrolled = WholeNumber<kWords>::kUnrolled;
    auto longer = zero_number<kWords + kMore>();
    TRIBUTARY_UNROLL_WORDS
    for (int i = 0; i < kWords; ++i) longer.words[i + kMore] = number.words[i];
    const bool rest = longer.divide(divisor);
    bits = rounded<Layout>(longer, low - 64 * kMore, rest);
  }
  return negative && bits != Layout::kNaN ? bits | Layout::kSign : bits;
}

}  // namespace tributary::kernels::cuda
