#pragma once
// The kernels for partial sums that one target offers: they turn the values of ranks into whole numbers of 64 bits, and
// these into values; or into numbers of 32 bits or float64, if these are enough. block_sum.cc proves that they are.
#include <cstddef>
#include <cstdint>

#include "tributary/kernels/target.h"

namespace tributary::kernels {

/// The bits, without the sign, of the values that are finite and not zero; and whether there are NaN, infinities or -0.
struct Magnitudes {
  std::uint64_t least = UINT64_MAX;  // above `most` if there is no such value
  std::uint64_t most = 0;
  bool marked = false;
};

/// How the mantissa m of a value becomes a number: (m >> unused) << (field - base). A field is the exponent's bits, at
/// least 1. Values that are not finite become zero.
struct ToNumber {
  int unused = 0;
  int base = 0;
};

/// The lower part of a long number. It leaves room for the sum of kPartialInputsMax parts, with their signs.
inline constexpr int kLowerBits = 56;
/// The most bits of a sum of long numbers, with its sign. So the upper parts of all inputs add up to less than 2^62,
/// whatever their signs are.
inline constexpr int kLongBits = kLowerBits + 62;

/// The kernels for sums that fit in numbers of 32 bits, of values of 16 bits: float16 or bfloat16. Such a sum costs a
/// quarter of the time of one in 64 bits.
struct SmallFloatKernels {
  /// The magnitudes are those of the values as float32.
  Magnitudes (*magnitudes)(const std::byte* values, std::size_t count) noexcept;
  /// sums[i] += values[i] * factor; the factor is a power of two, and each product and each sum is a whole number of 31
  /// bits and a sign.
  void (*add)(const std::byte* values, std::size_t count, float factor, std::int32_t* sums) noexcept;
  /// values[i] = sums[i] * factor, rounded once to nearest even; the factor is a power of two and a normal float32.
  void (*round)(const std::int32_t* sums, std::size_t count, float factor, std::byte* values) noexcept;
};

struct ShortSumTable {
  SmallFloatKernels float16, bfloat16;
  /// The bits that are set in any number, and in any number without its sign (that of -n is n - 1).
  struct Seen {
    std::int32_t any = 0, magnitudes = 0;
  };
  Seen (*see)(const std::int32_t* sums, std::size_t count) noexcept;
  /// sums[i] += numbers[i] * 2^shift; the numbers have three bytes each, in two's complement.
  void (*add_bytes3)(const std::byte* numbers, std::size_t count, int shift, std::int32_t* sums) noexcept;
  /// numbers[i] = sums[i] / 2^zeros, in three bytes
  void (*put_bytes3)(const std::int32_t* sums, std::size_t count, unsigned zeros, std::byte* numbers) noexcept;
};

/// The bits of the sums for which Float64SumKernels are made, with their sign, and the bytes of their numbers at most.
inline constexpr int kFloat64SumBits = 52;
inline constexpr unsigned kFloat64SumWidthMax = 6;

/// The kernels for sums that float64 holds exactly: multiples of a power of two, less than 2^51 times as large.
struct Float64SumKernels {
  /// sums[i] += values[i]; the values are finite float32
  void (*add_floats)(const std::byte* values, std::size_t count, double* sums) noexcept;
  /// sums[i] += numbers[i] * factor; the numbers have 1 to kFloat64SumWidthMax bytes each, in two's complement, and the
  /// factor is a power of two.
  void (*add_numbers)(const std::byte* numbers, std::size_t count, unsigned width, double factor,
                      double* sums) noexcept;
  /// `any` has the lowest bit that is set in any of the numbers sums[i] * factor, and is 0 if all are zero; `magnitude`
  /// is the largest of them without its sign (that of -n is n - 1).
  struct Seen {
    std::int64_t any = 0, magnitude = 0;
  };
  Seen (*see)(const double* sums, std::size_t count, double factor) noexcept;
  /// numbers[i] = sums[i] * factor, in 1 to kFloat64SumWidthMax bytes
  void (*put_numbers)(const double* sums, std::size_t count, double factor, unsigned width,
                      std::byte* numbers) noexcept;
  /// values[i] = sums[i] * factor, as float32, rounded once to nearest even
  void (*round)(const double* sums, std::size_t count, double factor, std::byte* values) noexcept;
};

struct PartialTable {
  Magnitudes (*magnitudes32)(const std::byte* values, std::size_t count) noexcept;
  Magnitudes (*magnitudes64)(const std::byte* values, std::size_t count) noexcept;
  /// sums[i] += the number of values[i]
  void (*add32)(const float* values, std::size_t count, const ToNumber& to, std::int64_t* sums) noexcept;
  void (*add64)(const double* values, std::size_t count, const ToNumber& to, std::int64_t* sums) noexcept;
  /// The same for sums of up to kLongBits, with no unused bits: upper[i] * 2^kLowerBits + lower[i] += the number of
  /// values[i]
  void (*add64_long)(const double* values, std::size_t count, int base, std::int64_t* lower,
                     std::int64_t* upper) noexcept;
  /// values[i] = sums[i] * factor, rounded once to nearest; the factor is a power of two, and no result is subnormal.
  void (*scale)(const std::int64_t* sums, std::size_t count, double factor, double* values) noexcept;
  const ShortSumTable* short_sums;
  const Float64SumKernels* float64_sums;
};

/// Returns the table of a target, which must be one of available_targets().
[[nodiscard]] const PartialTable& partial_table(Target target) noexcept;

}  // namespace tributary::kernels
