#pragma once
// Conversions between the stored form of an element and its number, in the plainest code, for the loops with which
// benchmarks compare kernels. Only sources that are compiled for this machine include this file, so its namespace has
// no name.
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
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

/// Reads float8 by a table of its 256 values, and finds the code nearest to a value by a binary
/// search.
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

}  // namespace
}  // namespace tributary::bench
