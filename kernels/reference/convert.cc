#include "kernels/reference/convert.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/reference/float_format.h"

namespace tributary::kernels::reference {
namespace {

template <class T>
T load(const void* array, std::size_t index) noexcept {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(array) + index * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void store(void* array, std::size_t index, T value) noexcept {
  std::memcpy(static_cast<std::byte*>(array) + index * sizeof(T), &value, sizeof(T));
}

std::uint32_t load_bits(DType dtype, const void* array, std::size_t index) noexcept {
  return size_of(dtype) == 1 ? load<std::uint8_t>(array, index) : load<std::uint16_t>(array, index);
}

void store_bits(DType dtype, void* array, std::size_t index, std::uint32_t bits) noexcept {
  if (size_of(dtype) == 1)
    store(array, index, static_cast<std::uint8_t>(bits));
  else
    store(array, index, static_cast<std::uint16_t>(bits));
}

/// True for a finite value that, without saturation, rounds beyond the largest finite value of the format.
bool overflows(FloatFormat format, float value) noexcept {
  if (!std::isfinite(value)) return false;
  return (encode(format, value) & (format.sign_bit() - 1)) > format.largest_finite();
}

void narrow(DType to, const void* in, void* out, std::size_t count, const ConvertOptions& options) noexcept {
  const FloatFormat format = format_of(to);
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = load<float>(in, i);
    store_bits(to, out, i, encode(format, value, options.overflow));
    if (options.counters == nullptr) continue;
    options.counters->nans += std::isnan(value) ? 1U : 0U;
    options.counters->overflows += overflows(format, value) ? 1U : 0U;
  }
}

void widen(DType from, const void* in, void* out, std::size_t count, const ConvertOptions& options) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    const float value = decode(format_of(from), load_bits(from, in, i));
    store(out, i, value);
    if (options.counters != nullptr) options.counters->nans += std::isnan(value) ? 1U : 0U;
  }
}

}  // namespace

void convert(DType from, DType to, const void* in, void* out, std::size_t count,
             const ConvertOptions& options) noexcept {
  if (from == DType::float32)
    narrow(to, in, out, count, options);
  else
    widen(from, in, out, count, options);
}

void convert_accumulate(DType from, const void* in, float* accumulator, std::size_t count,
                        const ConvertOptions& options) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    const float value = decode(format_of(from), load_bits(from, in, i));
    const auto before = load<float>(accumulator, i);
    const float sum = before + value;
    store(accumulator, i, sum);
    if (options.counters == nullptr) continue;
    options.counters->nans += std::isnan(value) ? 1U : 0U;
    options.counters->overflows += std::isfinite(before) && std::isinf(sum) ? 1U : 0U;
  }
}

void quantize(const float* in, std::int8_t* out, float* scales, std::size_t count, std::size_t block,
              ConvertCounters* counters) noexcept {
  for (std::size_t first = 0; first < count; first += block) {
    const std::size_t end = std::min(first + block, count);
    float largest = 0;
    bool finite = true;
    for (std::size_t i = first; i < end; ++i) {
      finite = finite && std::isfinite(in[i]);
      largest = std::max(largest, std::fabs(in[i]));
      if (counters == nullptr) continue;
      counters->nans += std::isnan(in[i]) ? 1U : 0U;
      counters->overflows += std::isinf(in[i]) ? 1U : 0U;
    }
    const float scale = std::max(largest / 127.0F, std::numeric_limits<float>::min());
    const float reciprocal = 1.0F / scale;
    scales[first / block] = finite ? scale : std::numeric_limits<float>::quiet_NaN();
    for (std::size_t i = first; i < end; ++i) {
      out[i] = finite ? static_cast<std::int8_t>(std::nearbyint(in[i] * reciprocal)) : std::int8_t{0};
    }
  }
}

void dequantize(const std::int8_t* in, const float* scales, float* out, std::size_t count, std::size_t block) noexcept {
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<float>(in[i]) * scales[i / block];
}

void dequantize_accumulate(const std::int8_t* in, const float* scales, float* accumulator, std::size_t count,
                           std::size_t block) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    const float value = static_cast<float>(in[i]) * scales[i / block];
    accumulator[i] += value;
  }
}

void count_values(DType dtype, const void* data, std::size_t count, ValueCounts& found) noexcept {
  const auto see = [&](double value, double smallest_normal) {
    found.nans += std::isnan(value) ? 1U : 0U;
    found.infinities += std::isinf(value) ? 1U : 0U;
    found.subnormals += value != 0 && std::fabs(value) < smallest_normal ? 1U : 0U;
  };
  for (std::size_t i = 0; i < count; ++i) {
    if (dtype == DType::float64)
      see(load<double>(data, i), std::numeric_limits<double>::min());
    else if (dtype == DType::float32)
      see(load<float>(data, i), std::numeric_limits<float>::min());
    else if (accumulates_wider(dtype))
      see(decode(format_of(dtype), load_bits(dtype, data, i)), std::ldexp(1.0, 1 - format_of(dtype).bias()));
  }
}

}  // namespace tributary::kernels::reference
