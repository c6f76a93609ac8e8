#pragma once
// Converts the small floats to float32 and back, by the device's instructions where it has them, else by integers. Both
// ways give the same bits, except in a NaN's payload.
#include "kernels/cuda/device/portable.cuh"
#include "tributary/protocol/types.h"

namespace tributary::kernels::cuda {

/// Rounds to nearest even by integer arithmetic. kSaturate: returns the largest finite value instead of infinity (or of
/// NaN, where there is no infinity).
template <int kExponentBits, int kMantissaBits, bool kInfinity, bool kSaturate>
TRIBUTARY_DEVICE std::uint32_t encode_by_integers(float value) {
  constexpr int kShift = 23 - kMantissaBits;
  constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  constexpr std::uint32_t kSign = 1U << (kExponentBits + kMantissaBits);
  constexpr std::uint32_t kExponentMask = ((1U << kExponentBits) - 1) << kMantissaBits;
  constexpr std::uint32_t kLargest = kInfinity ? kExponentMask - 1 : kSign - 2;
  constexpr std::uint32_t kNaN = kInfinity ? kExponentMask | (1U << (kMantissaBits - 1)) : kSign - 1;
  constexpr std::uint32_t kBeyond = kSaturate ? kLargest : kInfinity ? kExponentMask : kNaN;
  constexpr std::uint32_t kSmallestNormal = static_cast<std::uint32_t>(127 + 1 - kBias) << 23;
  // The last bit of this float32 has the value of the format's smallest subnormal, so an addition of it rounds a small
  // value to a multiple of that subnormal.
  constexpr std::uint32_t kMagic = static_cast<std::uint32_t>(127 + 1 - kBias + kShift) << 23;

  const auto bits = bits_as<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  const std::uint32_t sign = (bits >> (31 - kExponentBits - kMantissaBits)) & kSign;
  if (magnitude > 0x7F800000U) return sign | kNaN;
  std::uint32_t code;
  if (magnitude < kSmallestNormal) {
    code = bits_as<std::uint32_t>(bits_as<float>(magnitude) + bits_as<float>(kMagic)) - kMagic;
  } else {
    const std::uint32_t odd = (magnitude >> kShift) & 1;
    code = ((magnitude + ((1U << (kShift - 1)) - 1) + odd) >> kShift) -
           (static_cast<std::uint32_t>(127 - kBias) << kMantissaBits);
  }
  return sign | (code > kLargest ? kBeyond : code);
}

/// The format's bits, moved to their place in a float32, are the value times 2^-k, subnormals included; a product
/// corrects this factor.
template <int kExponentBits, int kMantissaBits, bool kInfinity>
TRIBUTARY_DEVICE float decode_by_integers(std::uint32_t code) {
  constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  constexpr std::uint32_t kSign = 1U << (kExponentBits + kMantissaBits);
  constexpr std::uint32_t kInfinityCode = ((1U << kExponentBits) - 1) << kMantissaBits;
  const std::uint32_t magnitude = code & (kSign - 1);
  const float scale = bits_as<float>(static_cast<std::uint32_t>(127 + 127 - kBias) << 23);
  auto bits = bits_as<std::uint32_t>(bits_as<float>(magnitude << (23 - kMantissaBits)) * scale);
  if (kInfinity && magnitude >= kInfinityCode) bits |= 0x7F800000U;
  if (!kInfinity && magnitude == kSign - 1) bits = 0x7FC00000U;
  return bits_as<float>(bits | ((code & kSign) != 0 ? 0x80000000U : 0U));
}

template <DType kDType>
struct SmallFloat;

template <>
struct SmallFloat<DType::float16> {
  using Stored = std::uint16_t;
  static constexpr std::uint32_t kLargestBits = 0x7C00, kQuietBit = 0x0200;

  static TRIBUTARY_DEVICE float widen(Stored code) {
#if defined(__CUDA_ARCH__)
    return __half2float(__ushort_as_half(code));
#else
    return decode_by_integers<5, 10, true>(code);
#endif
  }
  template <bool kSaturate>
  static TRIBUTARY_DEVICE Stored narrow(float value) {
#if defined(__CUDA_ARCH__)
    const Stored code = __half_as_ushort(__float2half_rn(value));
    return kSaturate && (code & 0x7FFF) == 0x7C00 ? static_cast<Stored>(code - 1) : code;
#else
    return static_cast<Stored>(encode_by_integers<5, 10, true, kSaturate>(value));
#endif
  }
};

template <>
struct SmallFloat<DType::bfloat16> {
  using Stored = std::uint16_t;
  static constexpr std::uint32_t kLargestBits = 0x7F80, kQuietBit = 0x0040;

  static TRIBUTARY_DEVICE float widen(Stored code) { return bits_as<float>(static_cast<std::uint32_t>(code) << 16); }
  template <bool kSaturate>
  static TRIBUTARY_DEVICE Stored narrow(float value) {
#if defined(__CUDA_ARCH__)
    const Stored code = __bfloat16_as_ushort(__float2bfloat16_rn(value));
#else
    const auto bits = bits_as<std::uint32_t>(value);
    const bool nan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
    const auto code = static_cast<Stored>((nan ? bits | 0x00400000U : bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
#endif
    return kSaturate && (code & 0x7FFF) == 0x7F80 ? static_cast<Stored>(code - 1) : code;
  }
};

// The float8 instructions exist from compute capability 8.9 on. They always saturate, so a comparison finds the values
// beyond the largest.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
#define TRIBUTARY_FLOAT8_INSTRUCTIONS 1
#else
#define TRIBUTARY_FLOAT8_INSTRUCTIONS 0
#endif

template <>
struct SmallFloat<DType::float8_e4m3> {
  using Stored = std::uint8_t;
  static constexpr std::uint32_t kLargestBits = 0x7E, kQuietBit = 0;

  static TRIBUTARY_DEVICE float widen(Stored code) {
#if TRIBUTARY_FLOAT8_INSTRUCTIONS
    return __half2float(__half(__nv_cvt_fp8_to_halfraw(code, __NV_E4M3)));
#else
    return decode_by_integers<4, 3, false>(code);
#endif
  }
  template <bool kSaturate>
  static TRIBUTARY_DEVICE Stored narrow(float value) {
#if TRIBUTARY_FLOAT8_INSTRUCTIONS
    const Stored code = __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3);
    return !kSaturate && fabsf(value) > 464.0F ? static_cast<Stored>(code | 0x7F) : code;
#else
    return static_cast<Stored>(encode_by_integers<4, 3, false, kSaturate>(value));
#endif
  }
};

template <>
struct SmallFloat<DType::float8_e5m2> {
  using Stored = std::uint8_t;
  static constexpr std::uint32_t kLargestBits = 0x7C, kQuietBit = 0x02;

  /// e5m2 is the upper byte of a float16.
  static TRIBUTARY_DEVICE float widen(Stored code) {
    return SmallFloat<DType::float16>::widen(static_cast<std::uint16_t>(code << 8));
  }
  template <bool kSaturate>
  static TRIBUTARY_DEVICE Stored narrow(float value) {
#if TRIBUTARY_FLOAT8_INSTRUCTIONS
    const Stored code = __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E5M2);
    return !kSaturate && fabsf(value) >= 61440.0F ? static_cast<Stored>((code & 0x80) | 0x7C) : code;
#else
    return static_cast<Stored>(encode_by_integers<5, 2, true, kSaturate>(value));
#endif
  }
};

}  // namespace tributary::kernels::cuda
