#pragma once
// The work of one thread of a grid in conversions: four elements at a time, 16 bytes of float32 and 8 or 4 bytes of the
// other format, so that neighbouring lanes read and write whole lines on both sides.
#include "kernels/cuda/arguments.h"
#include "kernels/cuda/device/small_float.cuh"

namespace tributary::kernels::cuda {

inline constexpr std::uint32_t kConvertedAtOnce = 4;

struct alignas(16) FourFloats {
  float elements[kConvertedAtOnce];
};

template <class Small>
struct Four {
  typename Small::Stored elements[kConvertedAtOnce];
};

// A body reads four elements and writes four in separate steps: the compiler must not move a load before a store that
// could overlap it, so several loads are under way at once only if all of them come before the stores.

template <DType kDType, bool kSaturate>
struct NarrowBody {
  using Small = SmallFloat<kDType>;
  using Stored = typename Small::Stored;
  using Loaded = FourFloats;

  static TRIBUTARY_DEVICE void one(const ConvertArguments& arguments, std::uint64_t i) {
    store_element<Stored>(arguments.out, i, Small::template narrow<kSaturate>(load_element<float>(arguments.in, i)));
  }
  static TRIBUTARY_DEVICE Loaded load(const ConvertArguments& arguments, std::uint64_t i) {
    return bits_as<FourFloats>(load_chunk<16>(static_cast<const float*>(arguments.in) + i));
  }
  static TRIBUTARY_DEVICE void store(const ConvertArguments& arguments, std::uint64_t i, const Loaded& loaded) {
    Four<Small> out;
    TRIBUTARY_UNROLL
    for (std::uint32_t e = 0; e < kConvertedAtOnce; ++e)
      out.elements[e] = Small::template narrow<kSaturate>(loaded.elements[e]);
    store_chunk(static_cast<Stored*>(arguments.out) + i, bits_as<Chunk<sizeof(out)>>(out));
  }
};

template <DType kDType, bool kAccumulate>
struct WidenBody {
  using Small = SmallFloat<kDType>;
  using Stored = typename Small::Stored;
  struct Loaded {
    Four<Small> in;
    FourFloats before;  // the accumulator before the sum
  };

  static TRIBUTARY_DEVICE float value(float before, Stored code) {
    return kAccumulate ? before + Small::widen(code) : Small::widen(code);
  }
  static TRIBUTARY_DEVICE void one(const ConvertArguments& arguments, std::uint64_t i) {
    const float before = kAccumulate ? load_element<float>(arguments.out, i) : 0.0F;
    store_element<float>(arguments.out, i, value(before, load_element<Stored>(arguments.in, i)));
  }
  static TRIBUTARY_DEVICE Loaded load(const ConvertArguments& arguments, std::uint64_t i) {
    Loaded loaded = {};
    loaded.in = bits_as<Four<Small>>(load_chunk<sizeof(Four<Small>)>(static_cast<const Stored*>(arguments.in) + i));
    if constexpr (kAccumulate)
      loaded.before = bits_as<FourFloats>(load_chunk<16>(static_cast<const float*>(arguments.out) + i));
    return loaded;
  }
  static TRIBUTARY_DEVICE void store(const ConvertArguments& arguments, std::uint64_t i, const Loaded& loaded) {
    FourFloats out;
    TRIBUTARY_UNROLL
    for (std::uint32_t e = 0; e < kConvertedAtOnce; ++e)
      out.elements[e] = value(loaded.before.elements[e], loaded.in.elements[e]);
    store_chunk(static_cast<float*>(arguments.out) + i, bits_as<Chunk<16>>(out));
  }
};

template <class Body, class Arguments>
TRIBUTARY_DEVICE void convert_in_fours(const Arguments& arguments, Split split, Lane lane) {
  constexpr std::uint32_t kUnrolled = 4;
  const std::uint64_t head = split.head;
  const std::uint64_t fours = split.vectors;
  const auto first_of = [&](std::uint64_t four) { return head + kConvertedAtOnce * four; };
  std::uint64_t four = lane.index;
  for (; four + (kUnrolled - 1) * lane.count < fours; four += kUnrolled * lane.count) {
    typename Body::Loaded in_flight[kUnrolled];
    TRIBUTARY_UNROLL
    for (std::uint32_t u = 0; u < kUnrolled; ++u) in_flight[u] = Body::load(arguments, first_of(four + u * lane.count));
    TRIBUTARY_UNROLL
    for (std::uint32_t u = 0; u < kUnrolled; ++u) Body::store(arguments, first_of(four + u * lane.count), in_flight[u]);
  }
  for (; four < fours; four += lane.count)
    Body::store(arguments, first_of(four), Body::load(arguments, first_of(four)));

  for (std::uint64_t i = lane.index; i < head; i += lane.count) Body::one(arguments, i);
  for (std::uint64_t i = first_of(fours) + lane.index; i < arguments.count; i += lane.count) Body::one(arguments, i);
}

template <class Body>
TRIBUTARY_DEVICE void convert_body(const ConvertArguments& arguments, Lane lane) {
  convert_in_fours<Body>(arguments, arguments.split, lane);
}

}  // namespace tributary::kernels::cuda
