#include "bench/kernels/plain_loop.h"

#include <array>
#include <cmath>
#include <type_traits>

#include "bench/kernels/plain_formats.h"

namespace tributary::bench {
namespace {

// ---- Operations. Integers wrap like unsigned integers, without undefined behaviour.

template <class T>
bool is_nan(T value) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(value);
  return false;
}

template <ReduceOp kOp, class T>
T combine(T a, T b) {
  if constexpr (kOp == ReduceOp::min) return a < b || is_nan(a) ? a : b;
  if constexpr (kOp == ReduceOp::max) return a > b || is_nan(a) ? a : b;
  if constexpr (std::is_integral_v<T>) {
    using U = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
    return static_cast<T>(kOp == ReduceOp::prod ? static_cast<U>(a) * static_cast<U>(b)
                                                : static_cast<U>(a) + static_cast<U>(b));
  } else {
    return kOp == ReduceOp::prod ? a * b : a + b;
  }
}

template <ReduceOp kOp, class T>
T finish(T value, std::uint32_t divisor) {
  if constexpr (kOp != ReduceOp::avg) {
    return value;
  } else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
    return static_cast<T>(value / static_cast<std::int64_t>(divisor));
  } else {
    return static_cast<T>(value / static_cast<T>(divisor));
  }
}

template <class Format, ReduceOp kOp, std::size_t kInputs>
void loop(std::span<const void* const> inputs, void* out, std::size_t count, std::uint32_t divisor) {
  using Stored = Format::Stored;
  std::array<const Stored*, kInputs> in;
  for (std::size_t k = 0; k < kInputs; ++k) in[k] = static_cast<const Stored*>(inputs[k]);
  auto* __restrict to = static_cast<Stored*>(out);
  for (std::size_t i = 0; i < count; ++i) {
    auto total = Format::widen(in[0][i]);
    for (std::size_t k = 1; k < kInputs; ++k) total = combine<kOp>(total, Format::widen(in[k][i]));
    to[i] = Format::narrow(finish<kOp>(total, divisor));
  }
}

template <class Format, ReduceOp kOp>
PlainReduce for_inputs(std::size_t inputs) {
  switch (inputs) {
    case 2:
      return loop<Format, kOp, 2>;
    case 4:
      return loop<Format, kOp, 4>;
    case 8:
      return loop<Format, kOp, 8>;
    default:
      return nullptr;
  }
}

template <class Format>
PlainReduce for_op(ReduceOp op, std::size_t inputs) {
  switch (op) {
    case ReduceOp::sum:
      return for_inputs<Format, ReduceOp::sum>(inputs);
    case ReduceOp::prod:
      return for_inputs<Format, ReduceOp::prod>(inputs);
    case ReduceOp::min:
      return for_inputs<Format, ReduceOp::min>(inputs);
    case ReduceOp::max:
      return for_inputs<Format, ReduceOp::max>(inputs);
    case ReduceOp::avg:
      return for_inputs<Format, ReduceOp::avg>(inputs);
    default:  // operators on bits and truth values have no plain loop
      return nullptr;
  }
}

// ---- Conversions from and to float32.

template <class Format>
void narrow_loop(const void* in, void* out, std::size_t count) {
  const auto* const from = static_cast<const float*>(in);
  auto* __restrict to = static_cast<Format::Stored*>(out);
  for (std::size_t i = 0; i < count; ++i) to[i] = Format::narrow(from[i]);
}

template <class Format, bool kAccumulates>
void widen_loop(const void* in, void* out, std::size_t count) {
  const auto* const from = static_cast<const Format::Stored*>(in);
  auto* __restrict to = static_cast<float*>(out);
  for (std::size_t i = 0; i < count; ++i) {
    const float value = Format::widen(from[i]);
    to[i] = kAccumulates ? to[i] + value : value;
  }
}

template <class Format>
PlainConvert widen_loop_of(bool accumulates) {
  return accumulates ? widen_loop<Format, true> : widen_loop<Format, false>;
}

}  // namespace

PlainReduce plain_reduce(DType dtype, ReduceOp op, std::size_t inputs) {
  switch (dtype) {
    case DType::int8:
      return for_op<Same<std::int8_t>>(op, inputs);
    case DType::uint8:
      return for_op<Same<std::uint8_t>>(op, inputs);
    case DType::int16:
      return for_op<Same<std::int16_t>>(op, inputs);
    case DType::uint16:
      return for_op<Same<std::uint16_t>>(op, inputs);
    case DType::int32:
      return for_op<Same<std::int32_t>>(op, inputs);
    case DType::uint32:
      return for_op<Same<std::uint32_t>>(op, inputs);
    case DType::int64:
      return for_op<Same<std::int64_t>>(op, inputs);
    case DType::uint64:
      return for_op<Same<std::uint64_t>>(op, inputs);
#if defined(__F16C__) || defined(__aarch64__)
    case DType::float16:
      return for_op<Half>(op, inputs);
#else
    case DType::float16:
      return nullptr;
#endif
    case DType::bfloat16:
      return for_op<Brain>(op, inputs);
    case DType::float32:
      return for_op<Same<float>>(op, inputs);
    case DType::float64:
      return for_op<Same<double>>(op, inputs);
    case DType::float8_e4m3:
      return for_op<Tiny<4, 3, false>>(op, inputs);
    case DType::float8_e5m2:
      return for_op<Tiny<5, 2, true>>(op, inputs);
  }
  return nullptr;
}

PlainConvert plain_narrow(DType to) {
  switch (to) {
#if defined(__F16C__) || defined(__aarch64__)
    case DType::float16:
      return narrow_loop<Half>;
#endif
    case DType::bfloat16:
      return narrow_loop<Brain>;
    case DType::float8_e4m3:
      return narrow_loop<Tiny<4, 3, false>>;
    case DType::float8_e5m2:
      return narrow_loop<Tiny<5, 2, true>>;
    default:
      return nullptr;
  }
}

PlainConvert plain_widen(DType from, bool accumulates) {
  switch (from) {
#if defined(__F16C__) || defined(__aarch64__)
    case DType::float16:
      return widen_loop_of<Half>(accumulates);
#endif
    case DType::bfloat16:
      return widen_loop_of<Brain>(accumulates);
    case DType::float8_e4m3:
      return widen_loop_of<Tiny<4, 3, false>>(accumulates);
    case DType::float8_e5m2:
      return widen_loop_of<Tiny<5, 2, true>>(accumulates);
    default:
      return nullptr;
  }
}

}  // namespace tributary::bench
