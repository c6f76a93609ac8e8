#pragma once
// The exact sum of one block: of the values of ranks, and of blocks of forms.
//
// A block of sums is made of float64, which hold the sums exactly if these have few enough bits; else of whole numbers
// of 64 bits, of 128 bits, or, if its values lie too far apart, element by element of the reference's long fixed-point
// numbers. Sums of 16-bit floats mostly fit in numbers of 32 bits. All five are exact.
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "kernels/cpu/partial_form.h"
#include "kernels/cpu/partial_table.h"
#include "kernels/cpu/whole_number_rounding.h"
#include "kernels/reference/exact_sum.h"
#include "tributary/kernels/partial_sum.h"
#include "tributary/protocol/sum_form.h"
#include "tributary/protocol/types.h"

namespace tributary::kernels {

class BlockSum {
 public:
  BlockSum(DType dtype, std::size_t inputs) noexcept;

  /// Starts a block of `count` elements.
  void begin(std::size_t count) noexcept {
    count_ = count;
    marked_ = Marked::not_yet;
    low_ = std::numeric_limits<int>::max();
    high_ = std::numeric_limits<int>::min();
  }
  void take(std::size_t input, const partial::Block& block) noexcept;
  void take(std::size_t input, const std::byte* values) noexcept;

  /// Writes the block's form. Returns its end.
  [[nodiscard]] std::byte* write(std::byte* out) noexcept;
  void round(std::uint32_t divisor, std::byte* out) noexcept;

 private:
  struct Source {
    const std::byte* values = nullptr;  // the values of a rank; nullptr: a block of a form
    partial::Block block{};
  };
  template <class Function>
  void with_values(const std::byte* values, Function function) const noexcept;
  /// Notes that an input has marks, or none. Hardly any block has marks, so their array is written only for those.
  void begin_marks(bool marked) noexcept;
  /// Adds the marks of one input to those of the sum.
  void mark(std::size_t i, std::uint8_t marks) noexcept {
    constexpr std::uint8_t kEvery = reference::ExactSum::kMinusZero, kAny = reference::ExactSum::kAllMarks & ~kEvery;
    marks_[i] = static_cast<std::uint8_t>((marks_[i] & marks & kEvery) | ((marks_[i] | marks) & kAny));
  }
  /// The values or numbers of this source that are not zero are multiples of 2^low and less than 2^high.
  void reaches(int low, int high) noexcept {
    low_ = std::min(low_, low);
    high_ = std::max(high_, high);
  }
  template <class Float>
  void reaches(const Magnitudes& all) noexcept;
  void sum_long_values(Wide* sums) const noexcept;
  void sum_short(std::int32_t* sums) const noexcept;
  void sum_float64(double* sums) const noexcept;
  template <class Number>
  void sum(Number* sums) const noexcept;
  /// Writes the head of a block of these numbers, and then calls put(zeros, width, out) to write the numbers.
  template <class Number, class Put>
  [[nodiscard]] std::byte* write_numbers(Number any, Number magnitudes, std::byte* out, Put put) const noexcept;
  template <class Number>
  [[nodiscard]] std::byte* write_sums(std::byte* out) const noexcept;
  [[nodiscard]] std::byte* write_short(std::byte* out) const noexcept;
  [[nodiscard]] std::byte* write_float64(std::byte* out) const noexcept;
  [[nodiscard]] std::byte* write_long(std::byte* out) const noexcept;
  [[nodiscard]] std::byte* write_head(std::byte* out, int exponent, unsigned width) const noexcept;
  [[nodiscard]] std::byte* write_nans(std::byte* out) noexcept;
  [[nodiscard]] bool round_short(std::uint32_t divisor, std::byte* out) const noexcept;
  [[nodiscard]] bool round_float64(std::uint32_t divisor, std::byte* out) const noexcept;
  template <class Number>
  void round_numbers(std::uint32_t divisor, double* values) const noexcept;
  template <class Number>
  [[nodiscard]] double quotient(Number sum, std::uint32_t divisor) const noexcept;
  [[nodiscard]] bool scale_all(const std::int64_t* sums, std::uint32_t divisor, double* values) const noexcept;
  bool scale_all(const Wide* sums, std::uint32_t divisor, double* values) const noexcept;
  void round_long(std::uint32_t divisor, double* values) const noexcept;
  void put_values(const double* values, std::byte* out) const noexcept;
  [[nodiscard]] reference::ExactSum sum_of(std::size_t i) const noexcept;
  /// Returns the number of bits of a sum of all inputs, with its sign.
  [[nodiscard]] int bits() const noexcept {
    return low_ > high_ ? 0 : high_ - low_ + static_cast<int>(std::bit_width(inputs_ - 1)) + 1;
  }
  /// Returns whether all sums fit in 32 bits, and float32 has the factor that makes whole numbers of values. Where it
  /// has, no value is subnormal there.
  [[nodiscard]] bool is_short() const noexcept {
    return small_ != nullptr && !marked() && 0 < bits() && bits() <= 32 && is_normal_float32(-low_);
  }
  /// Returns whether float64 holds all sums, and all sums of some of the inputs.
  [[nodiscard]] bool fits_float64() const noexcept {
    return dtype_ != DType::float64 && !marked() && bits() <= kFloat64SumBits;
  }
  [[nodiscard]] bool marked() const noexcept { return marked_ == Marked::yes; }
  [[nodiscard]] bool finite(std::size_t i) const noexcept {
    return !marked() || (marks_[i] & ~reference::ExactSum::kMinusZero) == 0;
  }
  [[nodiscard]] double special(std::size_t i) const noexcept;

  DType dtype_;
  const SmallFloatKernels* small_;  // nullptr: no values of 16 bits
  int unused_;
  std::size_t inputs_;
  FormRange range_;
  std::size_t count_ = 0;
  std::array<Source, kPartialInputsMax> sources_;
  enum class Marked : std::uint8_t { not_yet, no, yes };  // no: no sum has marks
  Marked marked_ = Marked::not_yet;
  std::array<std::uint8_t, kFormBlockElements> marks_{};  // of each sum; only for Marked::yes
  int low_ = 0, high_ = 0;                                // all inputs are multiples of 2^low_, and less than 2^high_
};

}  // namespace tributary::kernels
