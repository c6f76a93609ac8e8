// The kernels of partial_table.h in plain loops, for a CPU that has no vector target.
#include <algorithm>

#include "kernels/cpu/float_layout.h"
#include "kernels/cpu/scalar_tables.h"

namespace tributary::kernels::scalar {
namespace {

template <class Float>
Magnitudes magnitudes(const Float* values, std::size_t count) noexcept {
  Magnitudes all;
  for (std::size_t i = 0; i < count; ++i) {
    const FloatBits<Float> value(values[i]);
    if (value.counts()) {
      all.least = std::min(all.least, std::uint64_t{value.magnitude()});
      all.most = std::max(all.most, std::uint64_t{value.magnitude()});
    }
    all.marked |= !value.finite() || (value.negative() && value.magnitude() == 0);
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

}  // namespace

const PartialTable kPartialTable = {.magnitudes32 = magnitudes<float>,
                                    .magnitudes64 = magnitudes<double>,
                                    .add32 = add<float>,
                                    .add64 = add<double>,
                                    .add64_long = add_long,
                                    .scale = scale};

}  // namespace tributary::kernels::scalar
