#include "kernels/reference/reduce.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/reference/float_format.h"

namespace tributary::kernels::reference {
namespace {

// The type of one dtype in memory, and the type in which it is combined.
template <class T>
struct Plain {
  using Stored = T;
  using Accumulator = T;
  static T decode(T stored) noexcept { return stored; }
  static T encode(T value) noexcept { return value; }
};

template <DType kDType>
struct Small {
  using Stored = std::conditional_t<size_of(kDType) == 1, std::uint8_t, std::uint16_t>;
  using Accumulator = float;
  static float decode(Stored stored) noexcept { return reference::decode(format_of(kDType), stored); }
  static Stored encode(float value) noexcept {
    return static_cast<Stored>(reference::encode(format_of(kDType), value));
  }
};

// Integers wrap, but the language allows this for unsigned integers only. The conversion to 64 bits keeps the small
// types from being promoted to int.
template <class T>
T wrap(std::uint64_t value) noexcept {
  return static_cast<T>(value);
}

template <class T>
T add(T a, T b) noexcept {
  if constexpr (std::is_floating_point_v<T>)
    return a + b;
  else
    return wrap<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

template <class T>
T multiply(T a, T b) noexcept {
  if constexpr (std::is_floating_point_v<T>)
    return a * b;
  else
    return wrap<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

// IEEE 754-2019 minimum and maximum: if either value is NaN, the result is NaN; -0 is below +0.
template <class T>
bool below(T a, T b) noexcept {
  if constexpr (std::is_floating_point_v<T>) {
    if (a == b) return std::signbit(a) && !std::signbit(b);
  }
  return a < b;
}

template <class T>
T minimum(T a, T b) noexcept {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
  }
  return below(b, a) ? b : a;
}

template <class T>
T maximum(T a, T b) noexcept {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
  }
  return below(a, b) ? b : a;
}

/// The operators on bits and truth values. Floats have none: only integers come here.
template <class T>
T combine_bits(ReduceOp op, T a, T b) noexcept {
  switch (op) {
    case ReduceOp::band:
      return static_cast<T>(a & b);
    case ReduceOp::bor:
      return static_cast<T>(a | b);
    case ReduceOp::bxor:
      return static_cast<T>(a ^ b);
    case ReduceOp::land:
      return static_cast<T>(a != 0 && b != 0);
    case ReduceOp::lor:
      return static_cast<T>(a != 0 || b != 0);
    case ReduceOp::lxor:
      return static_cast<T>((a != 0) != (b != 0));
    default:
      return a;
  }
}

template <class T>
T combine(ReduceOp op, T a, T b) noexcept {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::avg:
      return add(a, b);
    case ReduceOp::prod:
      return multiply(a, b);
    case ReduceOp::min:
      return minimum(a, b);
    case ReduceOp::max:
      return maximum(a, b);
    default:
      if constexpr (std::is_integral_v<T>) return combine_bits(op, a, b);
      return a;
  }
}

/// Logical operators make 0 or 1 also from a single input.
template <class T>
T truth(ReduceOp op, T value) noexcept {
  if constexpr (std::is_integral_v<T>) {
    if (is_logical(op)) return static_cast<T>(value != 0);
  }
  return value;
}

// An int64 holds every int32 sum and every divisor; uint64 is divided without conversion.
template <class T>
T divide(T sum, std::uint32_t divisor) noexcept {
  if constexpr (std::is_floating_point_v<T>)
    return sum / static_cast<T>(divisor);
  else if constexpr (std::is_signed_v<T>)
    return static_cast<T>(std::int64_t{sum} / std::int64_t{divisor});
  else
    return static_cast<T>(std::uint64_t{sum} / std::uint64_t{divisor});
}

template <class Format>
using StoredOf = Format::Stored;

template <class Format>
Format::Accumulator load(const void* array, std::size_t index) noexcept {
  StoredOf<Format> stored;
  std::memcpy(&stored, static_cast<const std::byte*>(array) + index * sizeof(stored), sizeof(stored));
  return Format::decode(stored);
}

template <class Format>
void reduce_format(ReduceOp op, std::span<const void* const> inputs, void* out, std::size_t count,
                   std::uint32_t divisor) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    auto value = load<Format>(inputs[0], i);
    for (const void* input : inputs.subspan(1)) value = combine(op, value, load<Format>(input, i));
    if (op == ReduceOp::avg && divisor != 1) value = divide(value, divisor);
    value = truth(op, value);
    const StoredOf<Format> stored = Format::encode(value);
    std::memcpy(static_cast<std::byte*>(out) + i * sizeof(stored), &stored, sizeof(stored));
  }
}

template <class Format>
void weighted_format(DType dtype, std::span<const void* const> inputs, const double* weights, double quotient,
                     void* out, std::size_t count) noexcept {
  using T = Format::Accumulator;
  const auto largest = static_cast<T>(largest_of(dtype));
  for (std::size_t i = 0; i < count; ++i) {
    T value = load<Format>(inputs[0], i) * static_cast<T>(weights[0]);
    for (std::size_t k = 1; k < inputs.size(); ++k) value += load<Format>(inputs[k], i) * static_cast<T>(weights[k]);
    const bool finite = std::isfinite(value);
    value /= static_cast<T>(quotient);
    if (finite) value = std::clamp(value, -largest, largest);
    const StoredOf<Format> stored = Format::encode(value);
    std::memcpy(static_cast<std::byte*>(out) + i * sizeof(stored), &stored, sizeof(stored));
  }
}

}  // namespace

double largest_of(DType dtype) noexcept {
  if (dtype == DType::float64) return std::numeric_limits<double>::max();
  if (dtype == DType::float32) return std::numeric_limits<float>::max();
  return decode(format_of(dtype), format_of(dtype).largest_finite());
}

void weighted_sum(DType dtype, std::span<const void* const> inputs, const double* weights, double quotient, void* out,
                  std::size_t count) noexcept {
  switch (dtype) {
    case DType::float16:
      return weighted_format<Small<DType::float16>>(dtype, inputs, weights, quotient, out, count);
    case DType::bfloat16:
      return weighted_format<Small<DType::bfloat16>>(dtype, inputs, weights, quotient, out, count);
    case DType::float32:
      return weighted_format<Plain<float>>(dtype, inputs, weights, quotient, out, count);
    case DType::float64:
      return weighted_format<Plain<double>>(dtype, inputs, weights, quotient, out, count);
    case DType::float8_e4m3:
      return weighted_format<Small<DType::float8_e4m3>>(dtype, inputs, weights, quotient, out, count);
    case DType::float8_e5m2:
      return weighted_format<Small<DType::float8_e5m2>>(dtype, inputs, weights, quotient, out, count);
    default:
      return;  // integers have no weights
  }
}

void reduce(DType dtype, ReduceOp op, std::span<const void* const> inputs, void* out, std::size_t count,
            std::uint32_t divisor) noexcept {
  switch (dtype) {
    case DType::int8:
      return reduce_format<Plain<std::int8_t>>(op, inputs, out, count, divisor);
    case DType::uint8:
      return reduce_format<Plain<std::uint8_t>>(op, inputs, out, count, divisor);
    case DType::int32:
      return reduce_format<Plain<std::int32_t>>(op, inputs, out, count, divisor);
    case DType::uint32:
      return reduce_format<Plain<std::uint32_t>>(op, inputs, out, count, divisor);
    case DType::int64:
      return reduce_format<Plain<std::int64_t>>(op, inputs, out, count, divisor);
    case DType::uint64:
      return reduce_format<Plain<std::uint64_t>>(op, inputs, out, count, divisor);
    case DType::int16:
      return reduce_format<Plain<std::int16_t>>(op, inputs, out, count, divisor);
    case DType::uint16:
      return reduce_format<Plain<std::uint16_t>>(op, inputs, out, count, divisor);
    case DType::float16:
      return reduce_format<Small<DType::float16>>(op, inputs, out, count, divisor);
    case DType::bfloat16:
      return reduce_format<Small<DType::bfloat16>>(op, inputs, out, count, divisor);
    case DType::float32:
      return reduce_format<Plain<float>>(op, inputs, out, count, divisor);
    case DType::float64:
      return reduce_format<Plain<double>>(op, inputs, out, count, divisor);
    case DType::float8_e4m3:
      return reduce_format<Small<DType::float8_e4m3>>(op, inputs, out, count, divisor);
    case DType::float8_e5m2:
      return reduce_format<Small<DType::float8_e5m2>>(op, inputs, out, count, divisor);
  }
}

}  // namespace tributary::kernels::reference
