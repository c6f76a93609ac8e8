// A block of sums is made of whole numbers of 64 bits, of 128 bits, or, if its values lie too far apart, element by
// element of the reference's long fixed-point numbers. All three are exact.
#include "tributary/kernels/partial_sum.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "kernels/cpu/partial_form.h"
#include "kernels/reference/exact_sum.h"
#include "tributary/kernels/convert.h"
#include "tributary/protocol/assert.h"
#include "tributary/protocol/frame.h"
#include "tributary/protocol/numerics.h"

namespace tributary::kernels {
namespace {

using partial::Block;
using reference::ExactSum;
__extension__ using Wide = __int128;

constexpr unsigned kExactBits = 53;  // float64 holds all whole numbers of so many bits

// ---- The values of a rank.

/// A finite value is a whole number below 2^kBits times 2^(field - kBias), with a field of at least 1.
template <class Float>
struct Layout;
template <>
struct Layout<float> {
  using Bits = std::uint32_t;
  static constexpr int kFraction = 23, kBias = 150, kField = 0xFF;
};
template <>
struct Layout<double> {
  using Bits = std::uint64_t;
  static constexpr int kFraction = 52, kBias = 1075, kField = 0x7FF;
};

template <class Float>
struct Value {
  using L = Layout<Float>;
  explicit Value(Float value) noexcept : bits(std::bit_cast<typename L::Bits>(value)) {}
  [[nodiscard]] int stored_field() const noexcept { return static_cast<int>(bits >> L::kFraction) & L::kField; }
  [[nodiscard]] int field() const noexcept { return std::max(stored_field(), 1); }
  [[nodiscard]] L::Bits fraction() const noexcept { return bits & ((typename L::Bits{1} << L::kFraction) - 1); }
  [[nodiscard]] L::Bits mantissa() const noexcept {
    return fraction() | (stored_field() == 0 ? 0 : typename L::Bits{1} << L::kFraction);
  }
  [[nodiscard]] bool negative() const noexcept { return bits >> (sizeof(bits) * 8 - 1) != 0; }
  [[nodiscard]] bool finite() const noexcept { return stored_field() != L::kField; }
  [[nodiscard]] std::uint8_t marks() const noexcept {
    if (!finite())
      return fraction() != 0 ? ExactSum::kNaN : negative() ? ExactSum::kMinusInfinity : ExactSum::kInfinity;
    return negative() && mantissa() == 0 ? ExactSum::kMinusZero : 0;
  }
  L::Bits bits;
};

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

// ---- Whole numbers of 1 to 16 bytes.

template <class Number, unsigned kWidth>
void add_numbers(const Block& block, int shift, Number* sums) noexcept {
  constexpr unsigned kUnused = 8 * (sizeof(Number) - kWidth);
  for (std::size_t i = 0; i < block.count; ++i) {
    Number number = 0;
    std::memcpy(&number, block.numbers.data() + i * kWidth, kWidth);
    sums[i] += ((number << kUnused) >> kUnused) * (Number{1} << shift);
  }
}

template <class Number, unsigned kWidth>
void put_numbers(const Number* sums, std::size_t count, unsigned zeros, std::byte* out) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    const Number number = sums[i] >> zeros;
    std::memcpy(out + i * kWidth, &number, kWidth);
  }
}

/// Calls the function for this width, 1 to sizeof(Number).
template <class Number, class Function>
void with_width(unsigned width, Function function) noexcept {
  TRIBUTARY_ASSERT(width >= 1 && width <= sizeof(Number), "numbers of {} bytes", width);
  [&]<unsigned... kWidths>(std::integer_sequence<unsigned, kWidths...>) {
    static_cast<void>(
        ((width == kWidths + 1 ? (function(std::integral_constant<unsigned, kWidths + 1>()), true) : false) || ...));
  }(std::make_integer_sequence<unsigned, sizeof(Number)>());
}

template <class Number>
unsigned bits_of(Number any) noexcept {  // `any`: all bits that a number of the block has above its sign
  if constexpr (sizeof(Number) == sizeof(std::uint64_t)) {
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
  if (lower != 0 || sizeof(Number) == sizeof(lower)) return static_cast<unsigned>(std::countr_zero(lower));
  return 64 + static_cast<unsigned>(std::countr_zero(static_cast<std::uint64_t>(static_cast<Wide>(any) >> 64U)));
}

/// Returns 2^exponent, a normal number.
double power_of_two(int exponent) noexcept {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52U);
}

/// Returns value / divisor, rounded to odd. `divisor` has at most 26 bits, so both products below are exact.
double odd_quotient(double value, std::uint32_t divisor) noexcept {
  const auto by = static_cast<double>(divisor);
  const double quotient = value / by;
  const auto bits = std::bit_cast<std::uint64_t>(quotient);
  const auto upper = std::bit_cast<double>(bits & ~std::uint64_t{0x7FFFFFF});
  const double rest = (value - upper * by) - (quotient - upper) * by;
  if (rest == 0) return quotient;
  const bool beyond = std::signbit(rest) != std::signbit(quotient);
  return std::bit_cast<double>((bits - (beyond ? 1 : 0)) | 1U);
}

// ---- One block.

class BlockSum {
 public:
  BlockSum(DType dtype, std::size_t inputs) noexcept
      : dtype_(dtype), unused_(unused_bits(dtype)), inputs_(inputs), range_(form_range_of(dtype)) {}

  /// Starts a block of `count` elements.
  void begin(std::size_t count) noexcept {
    count_ = count;
    marks_.fill(ExactSum::kMinusZero);
    low_ = std::numeric_limits<int>::max();
    high_ = std::numeric_limits<int>::min();
  }
  void take(std::size_t input, const Block& block) noexcept;
  void take(std::size_t input, const std::byte* values) noexcept;

  /// Writes the block's form. Returns its end.
  [[nodiscard]] std::byte* write(std::byte* out) noexcept;
  void round(std::uint32_t divisor, std::byte* out) noexcept;

 private:
  struct Source {
    const std::byte* values = nullptr;  // the values of a rank; nullptr: a block of a form
    Block block{};
  };
  template <class Function>
  void with_values(const std::byte* values, Function function) const noexcept;
  /// Adds the marks of one input to those of the sum.
  void mark(std::size_t i, std::uint8_t marks) noexcept {
    constexpr std::uint8_t kEvery = ExactSum::kMinusZero, kAny = ExactSum::kAllMarks & ~kEvery;
    marks_[i] = static_cast<std::uint8_t>((marks_[i] & marks & kEvery) | ((marks_[i] | marks) & kAny));
  }
  /// The values or numbers of this source that are not zero are multiples of 2^low and less than 2^high.
  void reaches(int low, int high) noexcept {
    low_ = std::min(low_, low);
    high_ = std::max(high_, high);
  }
  template <class Number>
  void sum(Number* sums) const noexcept;
  template <class Number>
  [[nodiscard]] std::byte* write_numbers(std::byte* out) const noexcept;
  [[nodiscard]] std::byte* write_long(std::byte* out) const noexcept;
  [[nodiscard]] std::byte* write_head(std::byte* out, int exponent, unsigned width) const noexcept;
  [[nodiscard]] std::byte* write_nans(std::byte* out) noexcept;
  template <class Number>
  void round_numbers(std::uint32_t divisor, double* values) const noexcept;
  template <class Number>
  [[nodiscard]] double quotient(Number sum, std::uint32_t divisor) const noexcept;
  void round_long(std::uint32_t divisor, double* values) const noexcept;
  void put_values(const double* values, std::byte* out) const noexcept;
  [[nodiscard]] ExactSum sum_of(std::size_t i) const noexcept;
  /// Returns the number of bits of a sum of all inputs, with its sign.
  [[nodiscard]] int bits() const noexcept {
    return low_ > high_ ? 0 : high_ - low_ + static_cast<int>(std::bit_width(inputs_ - 1)) + 1;
  }
  [[nodiscard]] bool finite(std::size_t i) const noexcept { return (marks_[i] & ~ExactSum::kMinusZero) == 0; }
  [[nodiscard]] double special(std::size_t i) const noexcept;

  DType dtype_;
  int unused_;
  std::size_t inputs_;
  FormRange range_;
  std::size_t count_ = 0;
  std::array<Source, kPartialInputsMax> sources_;
  std::array<std::uint8_t, kFormBlockElements> marks_{};  // of each sum
  int low_ = 0, high_ = 0;                                // all inputs are multiples of 2^low_, and less than 2^high_
};

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

void BlockSum::take(std::size_t input, const std::byte* values) noexcept {
  sources_[input] = {.values = values};
  with_values(values, [this]<class Float>(const Float* floats) {
    int least = Layout<Float>::kField, most = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      const Value<Float> value(floats[i]);
      const bool counts = value.finite() && value.mantissa() != 0;
      least = std::min(least, counts ? value.field() : Layout<Float>::kField);
      most = std::max(most, counts ? value.field() : 0);
      mark(i, value.marks());
    }
    constexpr int kBias = Layout<Float>::kBias;
    if (most > 0) reaches(least - kBias + unused_, most - kBias + Layout<Float>::kFraction + 1);
  });
}

void BlockSum::take(std::size_t input, const Block& block) noexcept {
  TRIBUTARY_ASSERT(block.count == count_, "a block of {} sums beside {}", block.count, count_);
  sources_[input] = {.block = block};
  for (std::size_t i = 0; i < count_; ++i)
    mark(i, block.marks.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(block.marks[i]));
  if (block.width > 0) reaches(block.exponent, block.exponent + 8 * static_cast<int>(block.width));
}

template <class Number>
void BlockSum::sum(Number* sums) const noexcept {
  std::fill_n(sums, count_, Number{0});
  if (low_ > high_) return;  // every input is zero
  for (std::size_t k = 0; k < inputs_; ++k) {
    const Source& source = sources_[k];
    if (source.values == nullptr) {
      if (source.block.width == 0) continue;
      with_width<Number>(source.block.width, [&](auto width) {
        add_numbers<Number, width()>(source.block, source.block.exponent - low_, sums);
      });
      continue;
    }
    with_values(source.values, [&]<class Float>(const Float* floats) {
      const int base = Layout<Float>::kBias - unused_ + low_;
      for (std::size_t i = 0; i < count_; ++i) {
        const Value<Float> value(floats[i]);
        const bool counts = value.finite() && value.mantissa() != 0;
        const auto magnitude = static_cast<Number>(counts ? value.mantissa() >> unused_ : 0)
                               << (counts ? value.field() - base : 0);
        sums[i] += value.negative() ? -magnitude : magnitude;
      }
    });
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
  const bool marked = std::any_of(marks_.begin(), marks_.begin() + static_cast<std::ptrdiff_t>(count_),
                                  [](std::uint8_t marks) { return marks != 0; });
  const auto stored = static_cast<std::int16_t>(exponent);
  std::memcpy(out, &stored, sizeof(stored));
  const auto width_and_mark = static_cast<std::uint16_t>(width | (marked ? partial::kMarked : 0U));
  std::memcpy(out + sizeof(stored), &width_and_mark, sizeof(width_and_mark));
  out += kFormBlockHeadBytes;
  if (!marked) return out;
  std::memcpy(out, marks_.data(), count_);
  return out + count_;
}

/// Writes a block whose numbers no form holds. Only a process that lies sends such numbers.
std::byte* BlockSum::write_nans(std::byte* out) noexcept {
  marks_.fill(ExactSum::kNaN);
  return write_head(out, 0, 0);
}

template <class Number>
std::byte* BlockSum::write_numbers(std::byte* out) const noexcept {
  std::array<Number, kFormBlockElements> sums;
  sum(sums.data());
  Number any = 0, magnitudes = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    if (!finite(i)) sums[i] = 0;
    any |= sums[i];
    magnitudes |= sums[i] < 0 ? ~sums[i] : sums[i];
  }
  if (any == 0) return write_head(out, 0, 0);
  const unsigned zeros = zeros_of(any);
  const unsigned width = (bits_of(magnitudes) + 1 - std::min(zeros, bits_of(magnitudes)) + 7) / 8;
  const int exponent = low_ + static_cast<int>(zeros);
  if (exponent + 8 * static_cast<int>(width) > range_.end()) return nullptr;
  out = write_head(out, exponent, width);
  with_width<Number>(width, [&](auto bytes) { put_numbers<Number, bytes()>(sums.data(), count_, zeros, out); });
  return out + count_ * width;
}

std::byte* BlockSum::write_long(std::byte* out) const noexcept {
  int low = std::numeric_limits<int>::max(), high = std::numeric_limits<int>::min();
  for (std::size_t i = 0; i < count_; ++i) {
    if (!finite(i)) continue;
    const auto extent = sum_of(i).settle();
    if (extent.low > extent.high) continue;
    low = std::min(low, extent.low);
    high = std::max(high, extent.high);
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
  std::byte* const end = bits() == 0     ? write_head(out, 0, 0)
                         : bits() <= 64  ? write_numbers<std::int64_t>(out)
                         : bits() <= 128 ? write_numbers<Wide>(out)
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
  constexpr int kLeastNormal = -1022, kMostNormal = 1023;
  const bool normal = kLeastNormal <= exponent && exponent <= kMostNormal;
  if (dtype_ == DType::float64) {
    if (is_power && normal) return static_cast<double>(sum) * power_of_two(exponent);
  } else if (normal && bits_of(sum < 0 ? ~sum : sum) <= kExactBits) {
    const double exact = static_cast<double>(sum) * power_of_two(exponent);
    return is_power ? exact : odd_quotient(exact, divisor);
  }
  ExactSum whole;
  whole.add(std::as_bytes(std::span(&sum, 1)), low_, 0);
  return whole.take(divisor, reference::rounding_of(dtype_));
}

template <class Number>
void BlockSum::round_numbers(std::uint32_t divisor, double* values) const noexcept {
  std::array<Number, kFormBlockElements> sums;
  sum(sums.data());
  for (std::size_t i = 0; i < count_; ++i) {
    if (!finite(i)) {
      values[i] = special(i);
    } else if (sums[i] == 0) {
      values[i] = marks_[i] != 0 ? -0.0 : 0.0;
    } else {
      values[i] = quotient(sums[i], divisor);
    }
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

void BlockSum::round(std::uint32_t divisor, std::byte* out) noexcept {
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

// ---- All blocks of a call.

/// Reads all inputs, block by block.
class Inputs {
 public:
  Inputs(DType dtype, std::span<const PartialInput> inputs, std::size_t count) noexcept
      : inputs_(inputs), element_(size_of(dtype)), left_(count), sum_(dtype, inputs.size()) {
    TRIBUTARY_ASSERT(is_float(dtype) && !inputs.empty() && inputs.size() <= kPartialInputsMax,
                     "a partial sum of {} inputs of type {}", inputs.size(), dtype);
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      if (inputs[k].is_form) readers_[k] = partial::FormReader(dtype, inputs[k].bytes);
      const std::size_t elements = inputs[k].is_form ? readers_[k].elements() : inputs[k].bytes.size() / element_;
      TRIBUTARY_ASSERT(elements == count, "input {} of a partial sum has {} elements of {}", k, elements, count);
    }
  }
  /// Returns the sum of the next block; nullptr at the end.
  [[nodiscard]] BlockSum* next() noexcept {
    const std::size_t count = std::min(left_, kFormBlockElements);
    if (count == 0) return nullptr;
    sum_.begin(count);
    for (std::size_t k = 0; k < inputs_.size(); ++k) {
      if (!inputs_[k].is_form) {
        sum_.take(k, inputs_[k].bytes.data() + done_ * element_);
        continue;
      }
      const auto block = readers_[k].next();
      TRIBUTARY_ASSERT(block.has_value(), "input {} of a partial sum is no form", k);
      sum_.take(k, *block);
    }
    done_ += count;
    left_ -= count;
    return &sum_;
  }
  [[nodiscard]] std::size_t done() const noexcept { return done_; }

 private:
  std::span<const PartialInput> inputs_;
  std::size_t element_, done_ = 0, left_;
  BlockSum sum_;
  std::array<partial::FormReader, kPartialInputsMax> readers_;
};

}  // namespace

std::size_t add_partial_sums(DType dtype, std::span<const PartialInput> inputs, std::size_t count,
                             std::span<std::byte> out) noexcept {
  TRIBUTARY_ASSERT(out.size() >= form_bytes_max(dtype, count), "a form of {} elements of {} in {} bytes", count, dtype,
                   out.size());
  std::uint64_t ranks = 0;
  for (const PartialInput& input : inputs) ranks += ranks_of(dtype, input);
  // Only a process that lies sends forms of more ranks than there may be.
  const std::array<std::uint32_t, 2> head{static_cast<std::uint32_t>(count),
                                          static_cast<std::uint32_t>(std::min<std::uint64_t>(ranks, kRanksMax))};
  static_assert(sizeof(head) == kFormHeadBytes);
  std::memcpy(out.data(), head.data(), sizeof(head));
  std::byte* end = out.data() + kFormHeadBytes;
  Inputs blocks(dtype, inputs, count);
  while (BlockSum* const sum = blocks.next()) end = sum->write(end);
  return static_cast<std::size_t>(end - out.data());
}

void round_partial_sums(DType dtype, std::span<const PartialInput> inputs, void* out, std::size_t count,
                        std::uint32_t divisor) noexcept {
  TRIBUTARY_ASSERT(divisor != 0 && divisor < 1U << 26U, "a sum is divided by {}", divisor);
  Inputs blocks(dtype, inputs, count);
  auto* at = static_cast<std::byte*>(out);
  while (BlockSum* const sum = blocks.next()) {
    sum->round(divisor, at);
    at = static_cast<std::byte*>(out) + blocks.done() * size_of(dtype);
  }
}

// A level makes one form of each part of the inputs; levels follow until few enough inputs are left.
std::span<const PartialInput> ManyPartialSums::condensed(DType dtype, std::span<const PartialInput> inputs,
                                                         std::size_t count) {
  std::size_t used = 0;
  while (inputs.size() > kPartialInputsMax) {
    std::vector<PartialInput> level;
    for (std::size_t begin = 0; begin < inputs.size(); begin += kPartialInputsMax) {
      if (used == forms_.size()) forms_.emplace_back();
      std::vector<std::byte>& form = forms_[used++];
      form.resize(form_bytes_max(dtype, count));
      const auto part = inputs.subspan(begin, std::min(kPartialInputsMax, inputs.size() - begin));
      level.push_back({.bytes = std::span(form).first(add_partial_sums(dtype, part, count, form)), .is_form = true});
    }
    inputs_ = std::move(level);
    inputs = inputs_;
  }
  return inputs;
}

}  // namespace tributary::kernels
