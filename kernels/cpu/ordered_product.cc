#include "tributary/kernels/ordered_product.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/reference/exact_sum.h"
#include "tributary/kernels/convert.h"
#include "tributary/protocol/assert.h"
#include "tributary/protocol/numerics.h"

namespace tributary::kernels {
namespace {

constexpr std::size_t kBlockElements = 256;
using Doubles = std::array<double, kBlockElements>;

/// Reads `count` values, at most a block.
void read(DType dtype, const std::byte* from, std::size_t count, Doubles& values) noexcept {
  if (dtype == DType::float64) {
    std::memcpy(values.data(), from, count * sizeof(double));
    return;
  }
  std::array<float, kBlockElements> floats;
  if (dtype == DType::float32) {
    std::memcpy(floats.data(), from, count * sizeof(float));
  } else {
    convert(dtype, DType::float32, from, floats.data(), count);
  }
  std::copy_n(floats.data(), count, values.data());
}

/// Rounds the values to the type, once.
void write(DType dtype, const Doubles& values, std::size_t count, std::byte* out) noexcept {
  if (dtype == DType::float64) {
    std::memcpy(out, values.data(), count * sizeof(double));
    return;
  }
  std::array<float, kBlockElements> floats;
  if (dtype == DType::float32) {
    for (std::size_t i = 0; i < count; ++i) floats[i] = static_cast<float>(values[i]);
    std::memcpy(out, floats.data(), count * sizeof(float));
    return;
  }
  for (std::size_t i = 0; i < count; ++i) floats[i] = reference::odd_float(values[i]);
  convert(DType::float32, dtype, floats.data(), out, count);
  // The conversion may give NaN a sign and a payload, also a NaN that stands for infinity in e4m3.
  for (std::size_t i = 0; i < count; ++i) {
    if (dtype == DType::float8_e4m3 || std::isnan(floats[i])) reference::put_rounded(dtype, out, i, values[i]);
  }
}

}  // namespace

void ordered_product(DType dtype, std::span<const void* const> inputs, void* out, std::size_t count) noexcept {
  TRIBUTARY_ASSERT(!inputs.empty() && is_float(dtype), "a product of {} inputs of type {}", inputs.size(), dtype);
  const std::size_t element = size_of(dtype);
  const auto at = [&](const void* array, std::size_t begin) {
    return static_cast<const std::byte*>(array) + begin * element;
  };
  Doubles product, factors;
  for (std::size_t begin = 0; begin < count; begin += kBlockElements) {
    const std::size_t n = std::min(kBlockElements, count - begin);
    read(dtype, at(inputs[0], begin), n, product);
    for (const void* const input : inputs.subspan(1)) {
      read(dtype, at(input, begin), n, factors);
      for (std::size_t i = 0; i < n; ++i) product[i] *= factors[i];
    }
    // The sign and the payload of a NaN would depend on the processor.
    for (std::size_t i = 0; i < n; ++i) {
      if (std::isnan(product[i])) product[i] = std::numeric_limits<double>::quiet_NaN();
    }
    write(dtype, product, n, static_cast<std::byte*>(out) + begin * element);
  }
}

}  // namespace tributary::kernels
