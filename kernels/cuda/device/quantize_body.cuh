#pragma once
// int8 with one scale per block of 32 to 256 elements. See tributary/kernels/convert.h for the contract.
//
// A quarter of a warp, a half or a whole warp takes a block (QuantizeArguments::lanes), and each lane takes up to two
// groups of four elements. The elements stay in the lane's registers while the lanes find the largest magnitude, so all
// data are read once.
#include "kernels/cuda/arguments.h"
#include "kernels/cuda/device/convert_body.cuh"
#include "kernels/cuda/device/portable.cuh"

namespace tributary::kernels::cuda {

inline constexpr std::uint32_t kWarpLanes = 32;
inline constexpr std::uint32_t kFoursOfLane = 2;

/// Returns the index of the block of element i. It divides the index of the element's unit, which fits 32 bits: the
/// host checks it.
TRIBUTARY_DEVICE std::uint32_t block_of(const QuantizeArguments& arguments, std::uint64_t i) {
  const Reciprocal& by = arguments.by_units;
  const auto unit = static_cast<std::uint32_t>(i / kScaleUnit);
  const std::uint32_t product = multiply_high(unit, static_cast<std::uint32_t>(by.multiplier));
  return (product + ((unit - product) >> by.shift_first)) >> by.shift_second;
}

/// Returns the number of blocks of an array that has elements.
TRIBUTARY_DEVICE std::uint64_t blocks_of(const QuantizeArguments& arguments) {
  return std::uint64_t{block_of(arguments, arguments.count - 1)} + 1;
}

/// One block of elements with one scale.
struct ScaledBlock {
  std::uint64_t index;
  std::uint64_t begin;   // its first element
  std::uint32_t length;  // number of elements; 0 beyond the last block
};

TRIBUTARY_DEVICE ScaledBlock block_at(const QuantizeArguments& arguments, std::uint64_t index) {
  const std::uint64_t begin = index * arguments.block;
  const std::uint64_t rest = begin < arguments.count ? arguments.count - begin : 0;
  return {index, begin, rest < arguments.block ? static_cast<std::uint32_t>(rest) : arguments.block};
}

/// A lane's part of a block: group u of `lane` starts at element 4 (lane + u * kLanes) of the block. Elements beyond
/// the end are zero.
struct LanePart {
  FourFloats fours[kFoursOfLane];
};

/// True for a whole group of four elements at addresses where 16 and 4 bytes can move at once.
TRIBUTARY_DEVICE bool moves_as_one(const QuantizeArguments& arguments, std::uint32_t first, const ScaledBlock& block) {
  return arguments.aligned != 0 && first + kConvertedAtOnce <= block.length;
}

template <std::uint32_t kLanes>
TRIBUTARY_DEVICE LanePart load_part(const QuantizeArguments& arguments, const ScaledBlock& block, std::uint32_t lane) {
  const float* const in = static_cast<const float*>(arguments.in) + block.begin;
  LanePart part = {};
  TRIBUTARY_UNROLL
  for (std::uint32_t u = 0; u < kFoursOfLane; ++u) {
    const std::uint32_t first = kConvertedAtOnce * (lane + u * kLanes);
    if (first >= block.length) continue;
    if (moves_as_one(arguments, first, block)) {
      part.fours[u] = bits_as<FourFloats>(load_chunk<16>(in + first));
      continue;
    }
    TRIBUTARY_UNROLL
    for (std::uint32_t e = 0; e < kConvertedAtOnce; ++e) {
      if (first + e < block.length) part.fours[u].elements[e] = load_element<float>(in, first + e);
    }
  }
  return part;
}

/// Returns the bits of the largest magnitude. The bits have the same order as the floats, and NaN is above infinity.
TRIBUTARY_DEVICE std::uint32_t largest_of(const LanePart& part) {
  std::uint32_t largest = 0;
  TRIBUTARY_UNROLL
  for (std::uint32_t u = 0; u < kFoursOfLane; ++u) {
    TRIBUTARY_UNROLL
    for (std::uint32_t e = 0; e < kConvertedAtOnce; ++e) {
      const std::uint32_t magnitude = bits_as<std::uint32_t>(part.fours[u].elements[e]) & 0x7FFFFFFFU;
      largest = magnitude > largest ? magnitude : largest;
    }
  }
  return largest;
}

/// Returns a word whose lowest byte is the integer nearest to a value of at most 127: the last bit of the large float32
/// has the value 1, so the addition rounds.
TRIBUTARY_DEVICE std::uint32_t nearest_step(float value) {
  const float large = 0x1.8p23F;
  return bits_as<std::uint32_t>(value + large);
}

/// `largest_bits`: the bits of the whole block's largest magnitude, the same in every lane.
template <std::uint32_t kLanes>
TRIBUTARY_DEVICE void quantize_part(const QuantizeArguments& arguments, const ScaledBlock& block, std::uint32_t lane,
                                    const LanePart& part, std::uint32_t largest_bits) {
  const bool finite = largest_bits < 0x7F800000U;
  const float steps_apart = bits_as<float>(largest_bits) / 127.0F;
  const float smallest = 0x1p-126F;
  const float scale = steps_apart > smallest ? steps_apart : smallest;
  const float reciprocal = 1.0F / scale;
  auto* const out = static_cast<std::int8_t*>(arguments.out) + block.begin;
  TRIBUTARY_UNROLL
  for (std::uint32_t u = 0; u < kFoursOfLane; ++u) {
    const std::uint32_t first = kConvertedAtOnce * (lane + u * kLanes);
    if (first >= block.length) continue;
    std::uint32_t steps[kConvertedAtOnce];
    TRIBUTARY_UNROLL
    for (std::uint32_t e = 0; e < kConvertedAtOnce; ++e)
      steps[e] = nearest_step(part.fours[u].elements[e] * reciprocal);
    const std::uint32_t four = finite ? bytes_of_words<0>(steps[0], steps[1], steps[2], steps[3]) : 0;
    if (moves_as_one(arguments, first, block)) {
      store_chunk(out + first, bits_as<Chunk<sizeof(four)>>(four));
      continue;
    }
    TRIBUTARY_UNROLL
    for (std::uint32_t e = 0; e < kConvertedAtOnce; ++e) {
      if (first + e < block.length) out[first + e] = static_cast<std::int8_t>(four >> (8 * e));
    }
  }
  if (lane == 0 && block.length > 0) arguments.scales[block.index] = finite ? scale : bits_as<float>(0x7FC00000U);
}

// ---- Dequantizing: each element alone; its block gives only the scale.

struct FourSteps {
  std::int8_t elements[kConvertedAtOnce];
};

TRIBUTARY_DEVICE float scale_of(const QuantizeArguments& arguments, std::uint64_t i) {
  return arguments.scales[block_of(arguments, i)];
}

template <bool kAccumulate>
struct DequantizeBody {
  struct Loaded {
    FourSteps in;
    FourFloats before;  // the accumulator before the sum
    float scale;        // the same for all four elements: blocks are multiples of 32
  };

  static TRIBUTARY_DEVICE float value(float before, std::int8_t steps, float scale) {
    const float product = static_cast<float>(steps) * scale;
    return kAccumulate ? before + product : product;
  }
  static TRIBUTARY_DEVICE void one(const QuantizeArguments& arguments, std::uint64_t i) {
    const float before = kAccumulate ? load_element<float>(arguments.out, i) : 0.0F;
    store_element<float>(arguments.out, i,
                         value(before, load_element<std::int8_t>(arguments.in, i), scale_of(arguments, i)));
  }
  static TRIBUTARY_DEVICE Loaded load(const QuantizeArguments& arguments, std::uint64_t i) {
    Loaded loaded = {};
    loaded.in = bits_as<FourSteps>(load_chunk<sizeof(FourSteps)>(static_cast<const std::int8_t*>(arguments.in) + i));
    if constexpr (kAccumulate)
      loaded.before = bits_as<FourFloats>(load_chunk<16>(static_cast<const float*>(arguments.out) + i));
    loaded.scale = scale_of(arguments, i);
    return loaded;
  }
  static TRIBUTARY_DEVICE void store(const QuantizeArguments& arguments, std::uint64_t i, const Loaded& loaded) {
    FourFloats out;
    TRIBUTARY_UNROLL
    for (std::uint32_t e = 0; e < kConvertedAtOnce; ++e)
      out.elements[e] = value(loaded.before.elements[e], loaded.in.elements[e], loaded.scale);
    store_chunk(static_cast<float*>(arguments.out) + i, bits_as<Chunk<16>>(out));
  }
};

template <bool kAccumulate>
TRIBUTARY_DEVICE void dequantize_body(const QuantizeArguments& arguments, Lane lane) {
  const Split split{0, arguments.aligned != 0 ? arguments.count / kConvertedAtOnce : 0};
  convert_in_fours<DequantizeBody<kAccumulate>>(arguments, split, lane);
}

}  // namespace tributary::kernels::cuda
