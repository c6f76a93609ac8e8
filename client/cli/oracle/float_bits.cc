#include "client/cli/oracle/float_bits.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace tributary::cli {

FloatBits float_bits_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::float16:
      return {5, 10};
    case DType::bfloat16:
      return {8, 7};
    case DType::float32:
      return {8, 23};
    case DType::float8_e4m3:
      return {4, 3, false};
    case DType::float8_e5m2:
      return {5, 2};
    default:
      return {11, 52};
  }
}

void BitSum::add(std::uint64_t bits) noexcept {
  const bool negative = (bits & format_.sign()) != 0;
  if (format_.is_nan(bits)) nan_ = true;
  if (format_.is_infinite(bits)) (negative ? minus_infinite_ : infinite_) = true;
  if (bits != format_.sign()) only_minus_zero_ = false;
  if (format_.is_nan(bits) || format_.is_infinite(bits)) return;
  const std::uint64_t field = (bits >> format_.fraction_bits) & format_.exponents();
  const std::uint64_t mantissa = (bits & format_.fractions()) | (field == 0 ? 0 : 1ULL << format_.fraction_bits);
  const int place = format_.least() + static_cast<int>(std::max<std::uint64_t>(field, 1)) - 1 - kLowest;
  const auto word = static_cast<std::size_t>(place / 64);
  const int shift = place % 64;
  const std::uint64_t parts[] = {mantissa << shift, shift == 0 ? 0 : mantissa >> (64 - shift)};
  std::uint64_t carry = 0;
  for (std::size_t i = word; i < kWords && (i < word + 2 || carry != 0); ++i) {
    const std::uint64_t part = i < word + 2 ? parts[i - word] : 0;
    const std::uint64_t before = words_[i];
    if (negative) {
      words_[i] = before - part - carry;
      carry = before < part || (before == part && carry != 0) ? 1 : 0;
    } else {
      words_[i] = before + part + carry;
      carry = words_[i] < before || (words_[i] == before && carry != 0) ? 1 : 0;
    }
  }
}

/// Makes a negative number positive. Returns whether it was negative.
bool BitSum::negate(Words& words) noexcept {
  if (words.back() >> 63U == 0) return false;
  bool carry = true;
  for (std::uint64_t& word : words) {
    word = ~word + (carry ? 1 : 0);
    carry = carry && word == 0;
  }
  return true;
}

/// Returns whether there is a remainder.
bool BitSum::divide(Words& words, std::uint32_t divisor) noexcept {
  std::uint64_t rest = 0;
  for (std::size_t i = kWords; i-- > 0;) {
    const std::uint64_t upper = rest << 32U | words[i] >> 32U;
    rest = upper % divisor;
    const std::uint64_t lower = rest << 32U | (words[i] & 0xFFFFFFFF);
    rest = lower % divisor;
    words[i] = (upper / divisor) << 32U | lower / divisor;
  }
  return rest != 0;
}

std::uint64_t BitSum::round(const Words& magnitude, bool rest) const noexcept {
  const auto bit = [&](int exponent) {
    const int place = exponent - kLowest;
    return place < 0 ? 0 : magnitude[static_cast<std::size_t>(place / 64)] >> (place % 64) & 1U;
  };
  int top = kLowest + static_cast<int>(kWords) * 64 - 1;
  while (top >= kLowest && bit(top) == 0) --top;
  int last = std::max(top - static_cast<int>(format_.fraction_bits), format_.least());  // the last bit that is kept
  std::uint64_t mantissa = 0;
  for (int exponent = top; exponent >= last; --exponent) mantissa = mantissa << 1U | bit(exponent);
  bool lower = rest;
  for (int exponent = last - 2; exponent >= kLowest && !lower; --exponent) lower = bit(exponent) != 0;
  if (bit(last - 1) != 0 && (lower || (mantissa & 1U) != 0)) ++mantissa;
  if (mantissa >> (format_.fraction_bits + 1) != 0) {
    mantissa >>= 1U;
    ++last;
  }
  const bool normal = mantissa >> format_.fraction_bits != 0;
  const auto field = static_cast<std::uint64_t>(last - format_.least()) + (normal ? 1 : 0);
  const std::uint64_t bits = (field << format_.fraction_bits) | (mantissa & format_.fractions());
  if (bits <= format_.largest()) return bits;
  return format_.has_infinity ? format_.infinity() : format_.nan();
}

std::uint64_t BitSum::rounded(std::uint32_t divisor) const noexcept {
  if (nan_ || (infinite_ && minus_infinite_)) return format_.nan();
  if ((infinite_ || minus_infinite_) && !format_.has_infinity) return format_.nan();
  if (infinite_) return format_.infinity();
  if (minus_infinite_) return format_.sign() | format_.infinity();
  if (only_minus_zero_) return format_.sign();
  Words magnitude = words_;
  const bool negative = negate(magnitude);
  const bool rest = divide(magnitude, divisor);
  const std::uint64_t bits = round(magnitude, rest);
  return bits == format_.nan() ? bits : bits | (negative ? format_.sign() : 0);
}

double value_of(FloatBits format, std::uint64_t bits) noexcept {
  if (format.is_nan(bits)) return std::numeric_limits<double>::quiet_NaN();
  const std::uint64_t field = (bits >> format.fraction_bits) & format.exponents();
  const std::uint64_t mantissa = (bits & format.fractions()) | (field == 0 ? 0 : 1ULL << format.fraction_bits);
  const int exponent = format.least() + static_cast<int>(std::max<std::uint64_t>(field, 1)) - 1;
  const double magnitude = format.is_infinite(bits) ? std::numeric_limits<double>::infinity()
                                                    : std::ldexp(static_cast<double>(mantissa), exponent);
  return (bits & format.sign()) != 0 ? -magnitude : magnitude;
}

std::uint64_t bits_of_product(FloatBits format, double product) noexcept {
  BitSum one(float_bits_of(DType::float64));
  one.add(std::bit_cast<std::uint64_t>(product));
  one.format_ = format;
  return one.rounded(1);
}

}  // namespace tributary::cli
