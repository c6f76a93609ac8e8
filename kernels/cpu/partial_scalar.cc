// The kernels of partial_table.h in plain loops, for a CPU that has no vector target.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/float_layout.h"
#include "kernels/cpu/scalar_tables.h"
#include "kernels/cpu/whole_numbers.h"
#include "kernels/reference/exact_sum.h"

namespace tributary::kernels::scalar {
namespace {

template <class Float>
void see(const FloatBits<Float>& value, Magnitudes& all) noexcept {
  if (value.counts()) {
    all.least = std::min(all.least, std::uint64_t{value.magnitude()});
    all.most = std::max(all.most, std::uint64_t{value.magnitude()});
  }
  all.marked |= !value.finite() || (value.negative() && value.magnitude() == 0);
}

template <class Float>
Magnitudes magnitudes(const std::byte* values, std::size_t count) noexcept {
  Magnitudes all;
  for (std::size_t i = 0; i < count; ++i) {
    Float value = 0;
    std::memcpy(&value, values + i * sizeof(value), sizeof(value));
    see(FloatBits<Float>(value), all);
  }
  return all;
}

template <class Float>
void add(const Float* values, std::size_t count, const ToNumber& to, std::int64_t* sums) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    const FloatBits<Float> value(values[i]);
    if (!value.counts()) continue;
    const auto magnitude = static_cast<std::int64_t>(value.mantissa() >> to.unused) << (value.field() - to.base);
    sums[i] += value.negative() ? -magnitude : magnitude;
  }
}

void add_long(const double* values, std::size_t count, int base, std::int64_t* lower, std::int64_t* upper) noexcept {
  constexpr std::uint64_t kMask = (std::uint64_t{1} << kLowerBits) - 1;
  for (std::size_t i = 0; i < count; ++i) {
    const FloatBits<double> value(values[i]);
    if (!value.counts()) continue;
    const std::uint64_t mantissa = value.mantissa();
    const int shift = value.field() - base;
    const auto low = static_cast<std::int64_t>(shift < kLowerBits ? (mantissa << shift) & kMask : 0);
    const auto high = static_cast<std::int64_t>(shift < kLowerBits ? mantissa >> (kLowerBits - shift)
                                                                   : mantissa << (shift - kLowerBits));
    lower[i] += value.negative() ? -low : low;
    upper[i] += value.negative() ? -high : high;
  }
}

void scale(const std::int64_t* sums, std::size_t count, double factor, double* values) noexcept {
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<double>(sums[i]) * factor;
}

// ---- Sums of 32 bits.

template <DType kDType>
float small_value(const std::byte* values, std::size_t i) noexcept {
  return static_cast<float>(reference::value_at(kDType, values, i));
}
template <DType kDType>
Magnitudes small_magnitudes(const std::byte* values, std::size_t count) noexcept {
  Magnitudes all;
  for (std::size_t i = 0; i < count; ++i) see(FloatBits<float>(small_value<kDType>(values, i)), all);
  return all;
}
template <DType kDType>
void small_add(const std::byte* values, std::size_t count, float factor, std::int32_t* sums) noexcept {
  for (std::size_t i = 0; i < count; ++i) sums[i] += static_cast<std::int32_t>(small_value<kDType>(values, i) * factor);
}
template <DType kDType>
void small_round(const std::int32_t* sums, std::size_t count, float factor, std::byte* values) noexcept {
  for (std::size_t i = 0; i < count; ++i)
    reference::put_rounded(kDType, values, i, static_cast<double>(sums[i]) * static_cast<double>(factor));
}
template <DType kDType>
constexpr SmallFloatKernels kSmallFloat = {
    .magnitudes = small_magnitudes<kDType>, .add = small_add<kDType>, .round = small_round<kDType>};

ShortSumTable::Seen see_numbers(const std::int32_t* sums, std::size_t count) noexcept {
  ShortSumTable::Seen seen;
  for (std::size_t i = 0; i < count; ++i) {
    seen.any |= sums[i];
    seen.magnitudes |= sums[i] ^ (sums[i] >> 31);
  }
  return seen;
}

constexpr ShortSumTable kShortSums = {.float16 = kSmallFloat<DType::float16>,
                                      .bfloat16 = kSmallFloat<DType::bfloat16>,
                                      .see = see_numbers,
                                      .add_bytes3 = add_numbers<std::int32_t, 3>,
                                      .put_bytes3 = put_numbers<std::int32_t, 3>};

// ---- Sums of float64.

void add_floats(const std::byte* values, std::size_t count, double* sums) noexcept {
  for (std::size_t i = 0; i < count; ++i) sums[i] += reference::value_at(DType::float32, values, i);
}

void add_numbers_to_float64(const std::byte* numbers, std::size_t count, unsigned width, double factor,
                            double* sums) noexcept {
  with_width<std::int64_t>(width, [&](auto bytes) {
    for (std::size_t i = 0; i < count; ++i) {
      std::int64_t number = 0;
      add_numbers<std::int64_t, bytes()>(numbers + i * width, 1, 0, &number);
      sums[i] += static_cast<double>(number) * factor;
    }
  });
}

Float64SumKernels::Seen see_float64(const double* sums, std::size_t count, double factor) noexcept {
  Float64SumKernels::Seen seen;
  for (std::size_t i = 0; i < count; ++i) {
    const auto number = static_cast<std::int64_t>(sums[i] * factor);
    seen.any |= number;
    seen.magnitude = std::max(seen.magnitude, number ^ (number >> 63));
  }
  return seen;
}

void put_float64_numbers(const double* sums, std::size_t count, double factor, unsigned width,
                         std::byte* numbers) noexcept {
  with_width<std::int64_t>(width, [&](auto bytes) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto number = static_cast<std::int64_t>(sums[i] * factor);
      put_numbers<std::int64_t, bytes()>(&number, 1, 0, numbers + i * width);
    }
  });
}

void round_float64(const double* sums, std::size_t count, double factor, std::byte* values) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = static_cast<float>(sums[i] * factor);
    std::memcpy(values + i * sizeof(value), &value, sizeof(value));
  }
}

constexpr Float64SumKernels kFloat64Sums = {.add_floats = add_floats,
                                            .add_numbers = add_numbers_to_float64,
                                            .see = see_float64,
                                            .put_numbers = put_float64_numbers,
                                            .round = round_float64};

}  // namespace

const PartialTable kPartialTable = {.magnitudes32 = magnitudes<float>,
                                    .magnitudes64 = magnitudes<double>,
                                    .add32 = add<float>,
                                    .add64 = add<double>,
                                    .add64_long = add_long,
                                    .scale = scale,
                                    .short_sums = &kShortSums,
                                    .float64_sums = &kFloat64Sums};

}  // namespace tributary::kernels::scalar
