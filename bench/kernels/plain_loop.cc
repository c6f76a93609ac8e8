#include "plain_loop.h"

#include <array>
#include <bit>
#include <cmath>
#include <type_traits>

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace tributary::bench {
namespace {

// ---- Formats: how an element is stored, and the number it stands for.

template <class T>
struct Same {
  using Stored = T;
  static T widen(T value) { return value; }
  static T narrow(T value) { return value; }
};

struct Brain {
  using Stored = std::uint16_t;
  static float widen(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
  static std::uint16_t narrow(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = bits + 0x7FFF + (bits >> 16 & 1);
    return static_cast<std::uint16_t>((value != value ? bits | 0x400000 : rounded) >> 16);
  }
};

#if defined(__F16C__)
struct Half {
  using Stored = std::uint16_t;
  static float widen(std::uint16_t bits) { return _cvtsh_ss(bits); }
  static std::uint16_t narrow(float value) { return _cvtss_sh(value, 0); }
};
#elif defined(__aarch64__)
struct Half {
  using Stored = __fp16;
  static float widen(__fp16 value) { return value; }
  static __fp16 narrow(float value) { return static_cast<__fp16>(value); }
};
#endif

/// float8 by a table of its 256 values, and by a search for the code nearest to a value, halving the interval each
/// time.
template <int kExponentBits, int kMantissaBits, bool kInfinity>
struct Tiny {
  using Stored = std::uint8_t;
  static constexpr int kLargest = kInfinity ? (((1 << kExponentBits) - 1) << kMantissaBits) - 1 : 0x7E;

  static float value_of(int code) {
    const int exponent = (code & 0x7F) >> kMantissaBits;
    const int fraction = code & ((1 << kMantissaBits) - 1);
    const int bias = (1 << (kExponentBits - 1)) - 1;
    const int hidden = exponent == 0 ? 0 : 1 << kMantissaBits;
    const float magnitude =
        std::ldexp(static_cast<float>(hidden + fraction), (exponent == 0 ? 1 : exponent) - bias - kMantissaBits);
    return (code & 0x80) != 0 ? -magnitude : magnitude;
  }
  static std::array<float, 256> all_values() {
    std::array<float, 256> values;
    for (int i = 0; i < 256; ++i) values[static_cast<std::size_t>(i)] = value_of(i);
    return values;
  }
  static inline const std::array<float, 256> values = all_values();
  static float widen(std::uint8_t code) { return values[code]; }
  static std::uint8_t narrow(float value) {
    const float magnitude = std::fabs(value);
    int low = 0;
    int high = kLargest + 1;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (widen(static_cast<std::uint8_t>(middle)) <= magnitude ? low : high) = middle;
    }
    const float below = magnitude - widen(static_cast<std::uint8_t>(low));
    const float above = low == kLargest ? below + 1 : widen(static_cast<std::uint8_t>(low + 1)) - magnitude;
    if (above < below || (above == below && low % 2 == 1)) ++low;
    return static_cast<std::uint8_t>(low | (std::signbit(value) ? 0x80 : 0));
  }
};

// ---- Operations. Integers wrap as unsigned ones, without undefined behaviour.

template <ReduceOp kOp, class T>
T combine(T a, T b) {
  if constexpr (kOp == ReduceOp::min) return a < b || a != a ? a : b;
  if constexpr (kOp == ReduceOp::max) return a > b || a != a ? a : b;
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
  using Stored = typename Format::Stored;
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
  }
  return nullptr;
}

}  // namespace

PlainReduce plain_reduce(DType dtype, ReduceOp op, std::size_t inputs) {
  switch (dtype) {
    case DType::int8:
      return for_op<Same<std::int8_t>>(op, inputs);
    case DType::uint8:
      return for_op<Same<std::uint8_t>>(op, inputs);
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

}  // namespace tributary::bench
