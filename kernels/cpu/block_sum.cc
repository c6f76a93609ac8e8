#include "kernels/cpu/block_sum.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

#include "kernels/cpu/float_layout.h"
#include "kernels/cpu/whole_numbers.h"
#include "tributary/kernels/convert.h"
#include "tributary/protocol/assert.h"

namespace tributary::kernels {

using partial::Block;
using reference::ExactSum;

namespace {

// ---- The values of a rank.

template <class Float>
std::uint8_t marks_of(Float value) noexcept {
  const FloatBits<Float> it(value);
  if (!it.finite()) {
    if (it.fraction() != 0) return ExactSum::kNaN;
    return it.negative() ? ExactSum::kMinusInfinity : ExactSum::kInfinity;
  }
  return it.negative() && it.magnitude() == 0 ? ExactSum::kMinusZero : 0;
}

const PartialTable& kernels_here() noexcept {
  static const PartialTable& table = partial_table(active_target());
  return table;
}

void add_values(const float* values, std::size_t count, const ToNumber& to, std::int64_t* sums) noexcept {
  kernels_here().add32(values, count, to, sums);
}
void add_values(const double* values, std::size_t count, const ToNumber& to, std::int64_t* sums) noexcept {
  kernels_here().add64(values, count, to, sums);
}
template <class Float>
void add_values(const Float* values, std::size_t count, const ToNumber& to, Wide* sums) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    const FloatBits<Float> value(values[i]);
    if (!value.counts()) continue;
    const Wide magnitude = static_cast<Wide>(value.mantissa() >> to.unused) << (value.field() - to.base);
    sums[i] += value.negative() ? -magnitude : magnitude;
  }
}

/// Sums of values in two parts, each of which vectors add: Gaussian values of a few ranks need some bits more than 64.
class LongSums {
  static_assert(kLowerBits + std::bit_width(kPartialInputsMax - 1) < 63, "the lower parts of all inputs fit");

 public:
  explicit LongSums(std::size_t count) noexcept : count_(count) {
    std::fill_n(lower_.data(), count, 0);
    std::fill_n(upper_.data(), count, 0);
  }
  void add(const double* values, int base) noexcept {
    kernels_here().add64_long(values, count_, base, lower_.data(), upper_.data());
  }
  void add_to(Wide* sums) const noexcept {
    for (std::size_t i = 0; i < count_; ++i)
      sums[i] += static_cast<Wide>(upper_[i]) * (Wide{1} << kLowerBits) + lower_[i];
  }

 private:
  std::size_t count_;
  std::array<std::int64_t, kFormBlockElements> lower_, upper_;
};

/// Returns the kernels for short sums of this type; nullptr: it has none.
const SmallFloatKernels* small_kernels(DType dtype) noexcept {
  if (dtype == DType::float16) return &kernels_here().short_sums->float16;
  return dtype == DType::bfloat16 ? &kernels_here().short_sums->bfloat16 : nullptr;
}

/// The bits of a float32 that the values of a small type never use.
int unused_bits(DType dtype) noexcept {
  switch (dtype) {
    case DType::float16:
      return 13;
    case DType::bfloat16:
      return 16;
    case DType::float8_e4m3:
      return 20;
    case DType::float8_e5m2:
      return 21;
    default:
      return 0;
  }
}

}  // namespace

BlockSum::BlockSum(DType dtype, std::size_t inputs) noexcept
    : dtype_(dtype),
      small_(small_kernels(dtype)),
      unused_(unused_bits(dtype)),
      inputs_(inputs),
      range_(form_range_of(dtype)) {}

/// Calls the function with the values as float or double.
template <class Function>
void BlockSum::with_values(const std::byte* values, Function function) const noexcept {
  if (dtype_ == DType::float64) {
    std::array<double, kFormBlockElements> copy;
    std::memcpy(copy.data(), values, count_ * sizeof(double));
    return function(copy.data());
  }
  std::array<float, kFormBlockElements> copy;
  if (dtype_ == DType::float32) {
    std::memcpy(copy.data(), values, count_ * sizeof(float));
  } else {
    convert(dtype_, DType::float32, values, copy.data(), count_);
  }
  function(copy.data());
}

void BlockSum::begin_marks(bool marked) noexcept {
  if (marked_ == Marked::yes) return;
  // Marks begin as those of a sum of nothing, or of values without marks.
  if (marked) marks_.fill(marked_ == Marked::not_yet ? std::uint8_t{ExactSum::kMinusZero} : std::uint8_t{0});
  marked_ = marked ? Marked::yes : Marked::no;
}

template <class Float>
void BlockSum::reaches(const Magnitudes& all) noexcept {
  if (all.most == 0) return;
  using L = Layout<Float>;
  const auto field = [](std::uint64_t magnitude) { return std::max(static_cast<int>(magnitude >> L::kFraction), 1); };
  reaches(field(all.least) - L::kBias + unused_, field(all.most) - L::kBias + L::kFraction + 1);
}

void BlockSum::take(std::size_t input, const std::byte* values) noexcept {
  sources_[input] = {.values = values};
  if (small_ != nullptr && !marked()) {
    const Magnitudes all = small_->magnitudes(values, count_);
    if (!all.marked) {
      begin_marks(false);
      return reaches<float>(all);
    }
  }
  if (dtype_ == DType::float32) {
    const Magnitudes all = kernels_here().magnitudes32(values, count_);
    if (!all.marked && !marked()) {
      begin_marks(false);
      return reaches<float>(all);
    }
  }
  with_values(values, [this]<class Float>(const Float* floats) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(floats);
    const Magnitudes all = sizeof(Float) == sizeof(float) ? kernels_here().magnitudes32(bytes, count_)
                                                          : kernels_here().magnitudes64(bytes, count_);
    begin_marks(all.marked);
    if (marked()) {
      for (std::size_t i = 0; i < count_; ++i) mark(i, all.marked ? marks_of(floats[i]) : std::uint8_t{0});
    }
    reaches<Float>(all);
  });
}

void BlockSum::take(std::size_t input, const Block& block) noexcept {
  TRIBUTARY_ASSERT(block.count == count_, "a block of {} sums beside {}", block.count, count_);
  sources_[input] = {.block = block};
  begin_marks(!block.marks.empty());
  if (marked()) {
    for (std::size_t i = 0; i < count_; ++i)
      mark(i, block.marks.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(block.marks[i]));
  }
  if (block.width > 0) reaches(block.exponent, block.exponent + 8 * static_cast<int>(block.width));
}

/// Adds all inputs that are values of float64 to long sums.
void BlockSum::sum_long_values(Wide* sums) const noexcept {
  LongSums parts(count_);
  for (std::size_t k = 0; k < inputs_; ++k) {
    if (sources_[k].values == nullptr) continue;
    with_values(sources_[k].values, [&]<class Float>(const Float* floats) {
      if constexpr (sizeof(Float) == sizeof(double)) parts.add(floats, Layout<double>::kBias + low_);
    });
  }
  parts.add_to(sums);
}

template <class Number>
void BlockSum::sum(Number* sums) const noexcept {
  std::fill_n(sums, count_, Number{0});
  if (low_ > high_) return;  // every input is zero
  const bool in_parts = sizeof(Number) == sizeof(Wide) && dtype_ == DType::float64 && bits() <= kLongBits;
  if constexpr (sizeof(Number) == sizeof(Wide)) {
    if (in_parts) sum_long_values(sums);
  }
  for (std::size_t k = 0; k < inputs_; ++k) {
    const Source& source = sources_[k];
    if (source.values == nullptr) {
      if (source.block.width == 0) continue;
      with_width<Number>(source.block.width, [&](auto width) {
        add_numbers<Number, width()>(source.block.numbers.data(), count_, source.block.exponent - low_, sums);
      });
      continue;
    }
    if (in_parts) continue;
    with_values(source.values, [&]<class Float>(const Float* floats) {
      add_values(floats, count_, {.unused = unused_, .base = Layout<Float>::kBias - unused_ + low_}, sums);
    });
  }
}

/// Sums an input of 16-bit floats and forms, if is_short().
void BlockSum::sum_short(std::int32_t* sums) const noexcept {
  std::fill_n(sums, count_, 0);
  const auto factor = static_cast<float>(power_of_two(-low_));
  for (std::size_t k = 0; k < inputs_; ++k) {
    const Source& source = sources_[k];
    const Block& block = source.block;
    if (source.values != nullptr) {
      small_->add(source.values, count_, factor, sums);
    } else if (block.width == 3) {
      kernels_here().short_sums->add_bytes3(block.numbers.data(), count_, block.exponent - low_, sums);
    } else if (block.width != 0) {
      with_width<std::int32_t>(block.width, [&](auto width) {
        add_numbers<std::int32_t, width()>(block.numbers.data(), count_, block.exponent - low_, sums);
      });
    }
  }
}

/// Sums all inputs, if fits_float64(). Each input is a multiple of 2^low_, and the sums are less than 2^51 times as large,
/// so no addition rounds.
void BlockSum::sum_float64(double* sums) const noexcept {
  std::fill_n(sums, count_, 0.0);
  const Float64SumKernels& kernels = *kernels_here().float64_sums;
  for (std::size_t k = 0; k < inputs_; ++k) {
    const Source& source = sources_[k];
    const Block& block = source.block;
    if (source.values == nullptr) {
      if (block.width == 0) continue;
      TRIBUTARY_ASSERT(block.width <= kFloat64SumWidthMax, "numbers of {} bytes in float64", block.width);
      kernels.add_numbers(block.numbers.data(), count_, block.width, power_of_two(block.exponent), sums);
    } else if (dtype_ == DType::float32) {
      kernels.add_floats(source.values, count_, sums);
    } else {
      with_values(source.values, [&]<class Float>(const Float* floats) {
        if constexpr (sizeof(Float) == sizeof(float)) {
          kernels.add_floats(reinterpret_cast<const std::byte*>(floats), count_, sums);
        }
      });
    }
  }
}

/// Sums one element in the reference's number.
ExactSum BlockSum::sum_of(std::size_t i) const noexcept {
  ExactSum sum;
  for (std::size_t k = 0; k < inputs_; ++k) {
    const Source& source = sources_[k];
    if (source.values != nullptr) {
      sum.add(reference::value_at(dtype_, source.values, i));
    } else {
      const Block& block = source.block;
      sum.add(block.numbers.subspan(i * block.width, block.width), block.width == 0 ? 0 : block.exponent,
              block.marks.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(block.marks[i]));
    }
  }
  return sum;
}

std::byte* BlockSum::write_head(std::byte* out, int exponent, unsigned width) const noexcept {
  const bool has_marks = marked() && std::any_of(marks_.begin(), marks_.begin() + static_cast<std::ptrdiff_t>(count_),
                                                 [](std::uint8_t marks) { return marks != 0; });
  const auto stored = static_cast<std::int16_t>(exponent);
  std::memcpy(out, &stored, sizeof(stored));
  const auto width_and_mark = static_cast<std::uint16_t>(width | (has_marks ? partial::kMarked : 0U));
  std::memcpy(out + sizeof(stored), &width_and_mark, sizeof(width_and_mark));
  out += kFormBlockHeadBytes;
  if (!has_marks) return out;
  std::memcpy(out, marks_.data(), count_);
  return out + count_;
}

/// Writes a block whose numbers no form holds. Only a process that lies sends such numbers.
std::byte* BlockSum::write_nans(std::byte* out) noexcept {
  marked_ = Marked::yes;
  marks_.fill(ExactSum::kNaN);
  return write_head(out, 0, 0);
}

template <class Number, class Put>
std::byte* BlockSum::write_numbers(Number any, Number magnitudes, std::byte* out, Put put) const noexcept {
  if (any == 0) return write_head(out, 0, 0);
  const unsigned zeros = zeros_of(any);
  const unsigned width = (bits_of(magnitudes) + 1 - std::min(zeros, bits_of(magnitudes)) + 7) / 8;
  const int exponent = low_ + static_cast<int>(zeros);
  if (exponent + 8 * static_cast<int>(width) > range_.end()) return nullptr;
  out = write_head(out, exponent, width);
  put(zeros, width, out);
  return out + count_ * width;
}

template <class Number>
std::byte* BlockSum::write_sums(std::byte* out) const noexcept {
  std::array<Number, kFormBlockElements> sums;
  sum(sums.data());
  Number any = 0, magnitudes = 0;
  if (marked()) {
    for (std::size_t i = 0; i < count_; ++i) sums[i] = finite(i) ? sums[i] : 0;
  }
  for (std::size_t i = 0; i < count_; ++i) {
    any |= sums[i];
    magnitudes |= sums[i] ^ (sums[i] >> (8 * sizeof(Number) - 1));
  }
  return write_numbers(any, magnitudes, out, [&](unsigned zeros, unsigned width, std::byte* at) {
    with_width<Number>(width, [&](auto bytes) { put_numbers<Number, bytes()>(sums.data(), count_, zeros, at); });
  });
}

std::byte* BlockSum::write_short(std::byte* out) const noexcept {
  std::array<std::int32_t, kFormBlockElements> sums;
  sum_short(sums.data());
  const ShortSumTable& kernels = *kernels_here().short_sums;
  const auto [any, magnitudes] = kernels.see(sums.data(), count_);
  return write_numbers(any, magnitudes, out, [&](unsigned zeros, unsigned width, std::byte* at) {
    if (width == 3) return kernels.put_bytes3(sums.data(), count_, zeros, at);
    with_width<std::int32_t>(width,
                             [&](auto bytes) { put_numbers<std::int32_t, bytes()>(sums.data(), count_, zeros, at); });
  });
}

std::byte* BlockSum::write_float64(std::byte* out) const noexcept {
  alignas(64) std::array<double, kFormBlockElements> sums;
  sum_float64(sums.data());
  const Float64SumKernels& kernels = *kernels_here().float64_sums;
  const auto [any, magnitude] = kernels.see(sums.data(), count_, power_of_two(-low_));
  return write_numbers(any, magnitude, out, [&](unsigned zeros, unsigned width, std::byte* at) {
    const double factor = power_of_two(-low_ - static_cast<int>(zeros));
    if (width <= kFloat64SumWidthMax) return kernels.put_numbers(sums.data(), count_, factor, width, at);
    std::array<std::int64_t, kFormBlockElements> numbers;
    for (std::size_t i = 0; i < count_; ++i) numbers[i] = static_cast<std::int64_t>(sums[i] * factor);
    with_width<std::int64_t>(width,
                             [&](auto bytes) { put_numbers<std::int64_t, bytes()>(numbers.data(), count_, 0, at); });
  });
}

std::byte* BlockSum::write_long(std::byte* out) const noexcept {
  int low = std::numeric_limits<int>::max(), high = std::numeric_limits<int>::min();
  for (std::size_t i = 0; i < count_; ++i) {
    if (!finite(i)) continue;
    const auto extent = sum_of(i).settle();
    if (extent.low > extent.high) continue;
    // In two's complement, -2^n needs no more bits than 2^n - 1.
    const bool negative_power = extent.negative && extent.low + 1 == extent.high;
    low = std::min(low, extent.low);
    high = std::max(high, extent.high - (negative_power ? 1 : 0));
  }
  if (low > high) return write_head(out, 0, 0);
  const unsigned width = static_cast<unsigned>(high - low + 1 + 7) / 8;
  if (low + 8 * static_cast<int>(width) > range_.end()) return nullptr;
  out = write_head(out, low, width);
  for (std::size_t i = 0; i < count_; ++i, out += width) {
    ExactSum sum = finite(i) ? sum_of(i) : ExactSum();
    const auto extent = sum.settle();
    sum.put(extent, low, {out, width});
  }
  return out;
}

std::byte* BlockSum::write(std::byte* out) noexcept {
  std::byte* const end = bits() == 0      ? write_head(out, 0, 0)
                         : is_short()     ? write_short(out)
                         : fits_float64() ? write_float64(out)
                         : bits() <= 64   ? write_sums<std::int64_t>(out)
                         : bits() <= 128  ? write_sums<Wide>(out)
                                          : write_long(out);
  return end != nullptr ? end : write_nans(out);
}

// ---- Rounding.

double BlockSum::special(std::size_t i) const noexcept {
  const unsigned marks = marks_[i];
  constexpr unsigned kBoth = ExactSum::kInfinity | ExactSum::kMinusInfinity;
  if ((marks & ExactSum::kNaN) != 0 || (marks & kBoth) == kBoth) return std::numeric_limits<double>::quiet_NaN();
  return (marks & ExactSum::kInfinity) != 0 ? std::numeric_limits<double>::infinity()
                                            : -std::numeric_limits<double>::infinity();
}

/// Returns the quotient of a sum that is not zero as put_values() needs it: for float64 rounded to nearest, for smaller
/// types rounded to odd.
template <class Number>
double BlockSum::quotient(Number sum, std::uint32_t divisor) const noexcept {
  const bool is_power = std::has_single_bit(divisor);
  const int exponent = low_ - (is_power ? std::countr_zero(divisor) : 0);
  const bool normal = is_normal(exponent);
  if (dtype_ == DType::float64) {
    if (is_power && normal) return nearest(sum) * power_of_two(exponent);
  } else if (normal && bits_of(sum < 0 ? ~sum : sum) <= kExactBits) {
    const double exact = static_cast<double>(sum) * power_of_two(exponent);
    return is_power ? exact : odd_quotient(exact, divisor);
  }
  if (const auto rounded = long_quotient(sum, low_, divisor, dtype_ != DType::float64)) return *rounded;
  ExactSum whole;
  // Only the bytes that the number has: those above it may lie beyond the reference's digits.
  const std::size_t bytes = (bits_of(sum < 0 ? ~sum : sum) + 8) / 8;
  whole.add(std::as_bytes(std::span(&sum, 1)).first(bytes), low_, 0);
  return whole.take(divisor, reference::rounding_of(dtype_));
}

/// Rounds all sums at once, if the divisor is a power of two, and float64 holds each of the sums or is their type.
/// Returns whether it has.
bool BlockSum::scale_all(const std::int64_t* sums, std::uint32_t divisor, double* values) const noexcept {
  std::int64_t magnitudes = 0;
  for (std::size_t i = 0; i < count_; ++i) magnitudes |= sums[i] ^ (sums[i] >> 63);
  if (!std::has_single_bit(divisor) || (bits_of(magnitudes) > kExactBits && dtype_ != DType::float64)) return false;
  const int exponent = low_ - std::countr_zero(divisor);
  if (low_ > high_ || !is_normal(exponent)) return false;
  kernels_here().scale(sums, count_, power_of_two(exponent), values);
  return true;
}

bool BlockSum::scale_all(const Wide* sums, std::uint32_t divisor, double* values) const noexcept {
  if (dtype_ != DType::float64 || !std::has_single_bit(divisor) || low_ > high_) return false;
  const int exponent = low_ - std::countr_zero(divisor);
  if (!is_normal(exponent)) return false;
  const double factor = power_of_two(exponent);
  for (std::size_t i = 0; i < count_; ++i) values[i] = nearest(sums[i]) * factor;
  return true;
}

template <class Number>
void BlockSum::round_numbers(std::uint32_t divisor, double* values) const noexcept {
  std::array<Number, kFormBlockElements> sums;
  sum(sums.data());
  if (!scale_all(sums.data(), divisor, values)) {
    for (std::size_t i = 0; i < count_; ++i) values[i] = sums[i] == 0 ? 0.0 : quotient(sums[i], divisor);
  }
  if (!marked()) return;
  for (std::size_t i = 0; i < count_; ++i) {
    if (!finite(i)) values[i] = special(i);
    if (finite(i) && sums[i] == 0 && marks_[i] != 0) values[i] = -0.0;
  }
}

void BlockSum::round_long(std::uint32_t divisor, double* values) const noexcept {
  for (std::size_t i = 0; i < count_; ++i) values[i] = sum_of(i).take(divisor, reference::rounding_of(dtype_));
}

void BlockSum::put_values(const double* values, std::byte* out) const noexcept {
  if (dtype_ == DType::float64) {
    std::memcpy(out, values, count_ * sizeof(double));
    return;
  }
  std::array<float, kFormBlockElements> floats;
  if (dtype_ == DType::float32) {
    for (std::size_t i = 0; i < count_; ++i) floats[i] = static_cast<float>(values[i]);
    std::memcpy(out, floats.data(), count_ * sizeof(float));
    return;
  }
  for (std::size_t i = 0; i < count_; ++i) floats[i] = reference::odd_float(values[i]);
  convert(DType::float32, dtype_, floats.data(), out, count_);
  // The conversion may give NaN a sign and a payload, also a NaN that stands for infinity in e4m3.
  for (std::size_t i = 0; i < count_; ++i) {
    if (dtype_ == DType::float8_e4m3 || std::isnan(floats[i])) reference::put_rounded(dtype_, out, i, values[i]);
  }
}

/// Rounds short sums, if a power of two divides them and no result is subnormal. Returns whether it has.
bool BlockSum::round_short(std::uint32_t divisor, std::byte* out) const noexcept {
  if (!is_short() || !std::has_single_bit(divisor)) return false;
  const int exponent = low_ - std::countr_zero(divisor);
  if (!is_normal_float32(exponent)) return false;
  std::array<std::int32_t, kFormBlockElements> sums;
  sum_short(sums.data());
  small_->round(sums.data(), count_, static_cast<float>(power_of_two(exponent)), out);
  return true;
}

/// Rounds sums that float64 holds. Returns whether it has.
bool BlockSum::round_float64(std::uint32_t divisor, std::byte* out) const noexcept {
  if (!fits_float64()) return false;
  alignas(64) std::array<double, kFormBlockElements> sums;
  sum_float64(sums.data());
  // The quotient by a power of two is a normal float64, too, and so exact: 2^low_ is a normal number far from the least.
  const bool is_power = std::has_single_bit(divisor);
  const double factor = is_power ? power_of_two(-std::countr_zero(divisor)) : 1;
  if (is_power && dtype_ == DType::float32) {
    kernels_here().float64_sums->round(sums.data(), count_, factor, out);
    return true;
  }
  for (std::size_t i = 0; i < count_; ++i)
    sums[i] = is_power ? sums[i] * factor : sums[i] == 0 ? 0.0 : odd_quotient(sums[i], divisor);
  put_values(sums.data(), out);
  return true;
}

void BlockSum::round(std::uint32_t divisor, std::byte* out) noexcept {
  if (round_short(divisor, out) || round_float64(divisor, out)) return;
  std::array<double, kFormBlockElements> values;
  if (bits() <= 64) {
    round_numbers<std::int64_t>(divisor, values.data());
  } else if (bits() <= 128) {
    round_numbers<Wide>(divisor, values.data());
  } else {
    round_long(divisor, values.data());
  }
  put_values(values.data(), out);
}

}  // namespace tributary::kernels
