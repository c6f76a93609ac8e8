#include "kernels/reference/exact_sum.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/reference/float_format.h"
#include "tributary/protocol/assert.h"
#include "tributary/protocol/numerics.h"

namespace tributary::kernels::reference {
namespace {

constexpr int kFractionBits = 52;  // bits of a float64's fraction
constexpr int kExponentMax = 0x7FF;
constexpr int kSmallestExponent = -1074;
constexpr std::uint64_t kDigitMask = 0xFFFFFFFF;

template <class T>
T element(const void* array, std::size_t index) noexcept {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(array) + index * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void put(void* array, std::size_t index, T value) noexcept {
  std::memcpy(static_cast<std::byte*>(array) + index * sizeof(T), &value, sizeof(T));
}

/// `value` is rounded to float64 by Rounding::odd.
void put_small(DType dtype, void* out, std::size_t index, double value) noexcept {
  const FloatFormat format = format_of(dtype);
  std::uint32_t bits = encode(format, odd_float(value));
  if ((bits & (format.sign_bit() - 1)) == format.quiet_nan()) bits = format.quiet_nan();  // also of -infinity in e4m3
  if (size_of(dtype) == 1) {
    put(out, index, static_cast<std::uint8_t>(bits));
  } else {
    put(out, index, static_cast<std::uint16_t>(bits));
  }
}

}  // namespace

double value_at(DType dtype, const void* array, std::size_t index) noexcept {
  if (dtype == DType::float64) return element<double>(array, index);
  if (dtype == DType::float32) return static_cast<double>(element<float>(array, index));
  const std::uint32_t bits =
      size_of(dtype) == 1 ? element<std::uint8_t>(array, index) : element<std::uint16_t>(array, index);
  return static_cast<double>(decode(format_of(dtype), bits));
}

float odd_float(double value) noexcept {
  const auto nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || std::isnan(value)) return nearest;
  const std::uint32_t beyond = std::fabs(static_cast<double>(nearest)) > std::fabs(value) ? 1 : 0;
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(nearest) - beyond) | 1U);
}

void put_rounded(DType dtype, void* out, std::size_t index, double value) noexcept {
  if (dtype == DType::float64) return put(out, index, value);
  if (dtype == DType::float32) return put(out, index, static_cast<float>(value));
  put_small(dtype, out, index, value);
}

void ExactSum::add(double value) noexcept {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const bool negative = (bits >> 63U) != 0;
  const auto exponent = static_cast<int>((bits >> kFractionBits) & kExponentMax);
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << kFractionBits) - 1);
  if (exponent == kExponentMax) {
    (fraction != 0 ? nan_ : infinite_[negative ? 1 : 0]) = true;
    return;
  }
  const std::uint64_t mantissa = exponent == 0 ? fraction : fraction | (std::uint64_t{1} << kFractionBits);
  if (mantissa != 0 || !negative) only_minus_zero_ = false;
  if (mantissa != 0) add_to_digits(mantissa, std::max(exponent, 1) - 1 + kSmallestExponent - kLowestExponent, negative);
}

void ExactSum::add_to_digits(std::uint64_t mantissa, int position, bool negative) noexcept {
  const int digit = position / kDigitBits;
  const auto shift = static_cast<unsigned>(position % kDigitBits);
  const std::uint64_t lower = (mantissa & kDigitMask) << shift;
  const std::uint64_t upper = (mantissa >> kDigitBits) << shift;
  const auto first = static_cast<std::int64_t>(lower & kDigitMask);
  const auto second = static_cast<std::int64_t>((lower >> kDigitBits) + (upper & kDigitMask));
  const auto third = static_cast<std::int64_t>(upper >> kDigitBits);
  const std::int64_t sign = negative ? -1 : 1;
  digits_[static_cast<std::size_t>(digit)] += sign * first;
  digits_[static_cast<std::size_t>(digit) + 1] += sign * second;
  digits_[static_cast<std::size_t>(digit) + 2] += sign * third;
  low_ = std::min(low_, digit);
  high_ = std::max(high_, digit + 2);
}

void ExactSum::add(std::span<const std::byte> number, int exponent, std::uint8_t marks) noexcept {
  nan_ = nan_ || (marks & kNaN) != 0;
  infinite_[0] = infinite_[0] || (marks & kInfinity) != 0;
  infinite_[1] = infinite_[1] || (marks & kMinusInfinity) != 0;
  only_minus_zero_ = only_minus_zero_ && (marks & kMinusZero) != 0;
  const int position = exponent - kLowestExponent;
  const auto shift = static_cast<unsigned>(position % kDigitBits);
  int digit = position / kDigitBits;
  for (std::size_t at = 0; at < number.size(); at += sizeof(std::uint32_t), ++digit) {
    const std::size_t bytes = std::min(sizeof(std::uint32_t), number.size() - at);
    std::uint32_t part = 0;
    std::memcpy(&part, number.data() + at, bytes);
    const bool last = at + bytes == number.size();
    const auto unused = static_cast<unsigned>(kDigitBits - 8 * bytes);
    const std::int64_t value = last ? static_cast<std::int32_t>(part << unused) >> unused : std::int64_t{part};
    const std::int64_t shifted = value * (std::int64_t{1} << shift);
    add_digit(digit, shifted & static_cast<std::int64_t>(kDigitMask));
    add_digit(digit + 1, shifted >> kDigitBits);
  }
}

void ExactSum::add_digit(int digit, std::int64_t value) noexcept {
  TRIBUTARY_ASSERT(digit >= 0 && digit < kDigits, "digit {} of an exact sum", digit);
  digits_[static_cast<std::size_t>(digit)] += value;
  low_ = std::min(low_, digit);
  high_ = std::max(high_, digit);
}

std::uint8_t ExactSum::marks() const noexcept {
  return static_cast<std::uint8_t>((nan_ ? kNaN : 0) | (infinite_[0] ? kInfinity : 0) |
                                   (infinite_[1] ? kMinusInfinity : 0) | (only_minus_zero_ ? kMinusZero : 0));
}

ExactSum::Extent ExactSum::settle() noexcept {
  if (high_ < 0) return {};
  Extent extent{.negative = settle_sign()};
  const auto digit = [&](int i) { return static_cast<std::uint64_t>(digits_[static_cast<std::size_t>(i)]); };
  int top = high_, bottom = low_;
  while (top >= low_ && digit(top) == 0) --top;
  if (top < low_) return {};
  while (digit(bottom) == 0) ++bottom;
  extent.low = kLowestExponent + kDigitBits * bottom + std::countr_zero(digit(bottom));
  extent.high = kLowestExponent + kDigitBits * top + static_cast<int>(std::bit_width(digit(top)));
  return extent;
}

void ExactSum::put(const Extent& extent, int exponent, std::span<std::byte> out) noexcept {
  const bool zero = extent.low > extent.high;
  TRIBUTARY_ASSERT(zero || exponent <= extent.low, "a sum with a bit of 2^{} is written from 2^{} on", extent.low,
                   exponent);
  std::uint32_t carry = extent.negative ? 1 : 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const int position = exponent - kLowestExponent + static_cast<int>(8 * i);
    const int digit = position / kDigitBits;
    const auto at = [&](int d) {
      return zero || d < low_ || d > high_ ? 0 : static_cast<std::uint64_t>(digits_[static_cast<std::size_t>(d)]);
    };
    std::uint32_t byte = ((at(digit) | at(digit + 1) << kDigitBits) >> (position % kDigitBits)) & 0xFF;
    if (extent.negative) {
      byte = (byte ^ 0xFF) + carry;
      carry = byte >> 8;
    }
    out[i] = static_cast<std::byte>(byte);
  }
  clear();
}

/// Leaves 32 bits in every digit below high_, which takes the sign.
void ExactSum::carry() noexcept {
  for (int i = low_; i < high_; ++i) {
    std::int64_t& digit = digits_[static_cast<std::size_t>(i)];
    digits_[static_cast<std::size_t>(i) + 1] += digit >> kDigitBits;
    digit = static_cast<std::int64_t>(static_cast<std::uint64_t>(digit) & kDigitMask);
  }
}

/// Makes the sum positive, with 32 bits in every digit. Returns whether it was negative.
bool ExactSum::settle_sign() noexcept {
  high_ = std::min(high_ + 2, kDigits - 1);  // the carries of so many digits go no further
  carry();
  if (digits_[static_cast<std::size_t>(high_)] >= 0) return false;
  for (int i = low_; i <= high_; ++i) digits_[static_cast<std::size_t>(i)] = -digits_[static_cast<std::size_t>(i)];
  carry();
  return true;
}

/// Divides by long division. Returns whether a remainder is left.
bool ExactSum::divide(std::uint32_t divisor) noexcept {
  if (divisor == 1) return false;
  std::uint64_t rest = 0;
  low_ = 0;
  for (int i = high_; i >= 0; --i) {
    std::int64_t& digit = digits_[static_cast<std::size_t>(i)];
    rest = (rest << kDigitBits) | static_cast<std::uint64_t>(digit);
    digit = static_cast<std::int64_t>(rest / divisor);
    rest %= divisor;
  }
  return rest != 0;
}

/// Rounds the positive number. `rest`: a positive number below the lowest digit belongs to it, too.
double ExactSum::rounded(bool rest, Rounding rounding) const noexcept {
  int top = high_;
  while (top >= low_ && digits_[static_cast<std::size_t>(top)] == 0) --top;
  if (top < low_) return 0;
  const auto digit = [&](int i) {
    return i < low_ ? 0 : static_cast<std::uint64_t>(digits_[static_cast<std::size_t>(i)]);
  };
  const int lead = std::countl_zero(digit(top)) - kDigitBits;
  TRIBUTARY_ASSERT(lead >= 0, "digit {} of an exact sum is {}", top, digit(top));
  // The 64 bits from the first bit that is set, and whether a lower bit is set.
  std::uint64_t window =
      digit(top) << (kDigitBits + lead) | digit(top - 1) << lead | digit(top - 2) >> (kDigitBits - lead);
  bool lower = rest || (digit(top - 2) << (kDigitBits + lead)) != 0;
  for (int i = top - 3; i >= low_ && !lower; --i) lower = digit(i) != 0;
  const int exponent = kLowestExponent + kDigitBits * (top + 1) - 1 - lead;  // exponent of the first bit
  const int kept = std::min(kFractionBits + 1, exponent - kSmallestExponent + 1);
  if (kept < 0) return 0;  // less than half of the smallest value
  const std::uint64_t below = kept == 0 ? window : window << kept;
  std::uint64_t mantissa = kept == 0 ? 0 : window >> (64 - kept);
  constexpr std::uint64_t kHalf = std::uint64_t{1} << 63U;
  if (rounding == Rounding::odd) {
    if (below != 0 || lower) mantissa |= 1;
  } else if (below > kHalf || (below == kHalf && (lower || (mantissa & 1) != 0))) {
    ++mantissa;
  }
  return std::ldexp(static_cast<double>(mantissa), exponent - kept + 1);
}

double ExactSum::take(std::uint32_t divisor, Rounding rounding) noexcept {
  double result = only_minus_zero_ ? -0.0 : 0.0;
  if (nan_ || (infinite_[0] && infinite_[1])) {
    result = std::numeric_limits<double>::quiet_NaN();
  } else if (infinite_[0] || infinite_[1]) {
    result = infinite_[1] ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  } else if (const Extent extent = settle(); extent.low <= extent.high) {  // a number counts more than a mark of -0
    const bool rest = divide(divisor);
    const double magnitude = rounded(rest, rounding);
    result = extent.negative ? -magnitude : magnitude;
  }
  clear();
  return result;
}

void ExactSum::clear() noexcept {
  for (int i = low_; i <= high_; ++i) digits_[static_cast<std::size_t>(i)] = 0;
  low_ = kDigits;
  high_ = -1;
  nan_ = infinite_[0] = infinite_[1] = false;
  only_minus_zero_ = true;
}

void exact_sum(DType dtype, std::span<const void* const> inputs, void* out, std::size_t first, std::size_t end,
               std::uint32_t divisor) noexcept {
  TRIBUTARY_ASSERT(is_float(dtype), "an exact sum of type {}", dtype);
  ExactSum sum;
  for (std::size_t i = first; i < end; ++i) {
    for (const void* const input : inputs) sum.add(value_at(dtype, input, i));
    put_rounded(dtype, out, i, sum.take(divisor, rounding_of(dtype)));
  }
}

}  // namespace tributary::kernels::reference
