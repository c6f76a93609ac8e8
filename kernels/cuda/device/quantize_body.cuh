#pragma once
// int8 with one scale per block, as one warp runs a block. See tributary/kernels/convert.h for the contract.
#include "cuda/arguments.h"
#include "cuda/device/portable.cuh"

namespace tributary::kernels::cuda {

inline constexpr std::uint32_t kWarpLanes = 32;

/// What a lane knows of its block before the lanes compare: the largest magnitude, as bits, which order as the floats
/// do; NaN is above infinity.
TRIBUTARY_DEVICE std::uint32_t largest_of_lane(const QuantizeArguments& arguments, std::uint64_t begin,
                                               std::uint64_t end, std::uint32_t lane) {
  std::uint32_t largest = 0;
  for (std::uint64_t i = begin + lane; i < end; i += kWarpLanes) {
    const std::uint32_t magnitude = bits_as<std::uint32_t>(load_element<float>(arguments.in, i)) & 0x7FFFFFFFU;
    largest = magnitude > largest ? magnitude : largest;
  }
  return largest;
}

TRIBUTARY_DEVICE std::int8_t nearest_step(float value) {
#if defined(__CUDA_ARCH__)
  return static_cast<std::int8_t>(__float2int_rn(value));
#else
  return static_cast<std::int8_t>(__builtin_nearbyintf(value));
#endif
}

TRIBUTARY_DEVICE void quantize_by_lane(const QuantizeArguments& arguments, std::uint64_t begin, std::uint64_t end,
                                       std::uint32_t lane, std::uint32_t largest_bits) {
  const bool finite = largest_bits < 0x7F800000U;
  const float steps_apart = bits_as<float>(largest_bits) / 127.0F;
  const float smallest = 0x1p-126F;
  const float scale = steps_apart > smallest ? steps_apart : smallest;
  const float reciprocal = 1.0F / scale;
  for (std::uint64_t i = begin + lane; i < end; i += kWarpLanes) {
    store_element<std::int8_t>(
        arguments.out, i, finite ? nearest_step(load_element<float>(arguments.in, i) * reciprocal) : std::int8_t{0});
  }
  if (lane == 0) arguments.scales[begin / arguments.block] = finite ? scale : bits_as<float>(0x7FC00000U);
}

template <bool kAccumulate>
TRIBUTARY_DEVICE void dequantize_element(const QuantizeArguments& arguments, std::uint64_t i) {
  const float value =
      static_cast<float>(load_element<std::int8_t>(arguments.in, i)) * arguments.scales[i / arguments.block];
  store_element<float>(arguments.out, i, kAccumulate ? load_element<float>(arguments.out, i) + value : value);
}

}  // namespace tributary::kernels::cuda
