#include "plain_loop.h"

#include <array>
#include <bit>
#include <cstdint>

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace tributary::bench {
namespace {

template <class T>
struct Same {
  using Stored = T;
  static T widen(T value) { return value; }
  static T narrow(T value) { return value; }
};

// An int32 sum wraps as unsigned, without undefined behaviour.
using Integer = Same<std::uint32_t>;

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

template <class Format, std::size_t kInputs>
void sum(std::span<const void* const> inputs, void* out, std::size_t count) {
  using Stored = typename Format::Stored;
  std::array<const Stored*, kInputs> in;
  for (std::size_t k = 0; k < kInputs; ++k) in[k] = static_cast<const Stored*>(inputs[k]);
  auto* __restrict to = static_cast<Stored*>(out);
  for (std::size_t i = 0; i < count; ++i) {
    auto total = Format::widen(in[0][i]);
    for (std::size_t k = 1; k < kInputs; ++k) total += Format::widen(in[k][i]);
    to[i] = Format::narrow(total);
  }
}

template <class Format>
PlainSum for_inputs(std::size_t inputs) {
  switch (inputs) {
    case 2:
      return sum<Format, 2>;
    case 4:
      return sum<Format, 4>;
    case 8:
      return sum<Format, 8>;
    default:
      return nullptr;
  }
}

}  // namespace

PlainSum plain_sum(DType dtype, std::size_t inputs) {
  switch (dtype) {
    case DType::float32:
      return for_inputs<Same<float>>(inputs);
    case DType::bfloat16:
      return for_inputs<Brain>(inputs);
    case DType::float16:
      return for_inputs<Half>(inputs);
    case DType::int32:
      return for_inputs<Integer>(inputs);
    default:
      return nullptr;
  }
}

}  // namespace tributary::bench
