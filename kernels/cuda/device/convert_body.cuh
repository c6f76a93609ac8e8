#pragma once
// Conversions as one thread of a grid runs them: four elements at a time, 16 bytes of float32 and 8 or 4 of the other
// format, so that both sides are read and written in whole lines by neighbouring lanes.
#include "cuda/arguments.h"
#include "cuda/device/small_float.cuh"

namespace tributary::kernels::cuda {

inline constexpr std::uint32_t kConvertedAtOnce = 4;

struct alignas(16) FourFloats {
  float elements[kConvertedAtOnce];
};

template <class Small>
struct Four {
  typename Small::Stored elements[kConvertedAtOnce];
};

template <DType kDType, bool kSaturate>
struct NarrowBody {
  using Small = SmallFloat<kDType>;
  using Stored = typename Small::Stored;
  static constexpr std::size_t kFourBytes = sizeof(Four<Small>);

  static TRIBUTARY_DEVICE void one(const ConvertArguments& arguments, std::uint64_t i) {
    store_element<Stored>(arguments.out, i, Small::template narrow<kSaturate>(load_element<float>(arguments.in, i)));
  }
  static TRIBUTARY_DEVICE void four(const ConvertArguments& arguments, std::uint64_t i) {
    const auto in = bits_as<FourFloats>(load_chunk<16>(static_cast<const float*>(arguments.in) + i));
    Four<Small> out;
    TRIBUTARY_UNROLL
    for (std::uint32_t e = 0; e < kConvertedAtOnce; ++e)
      out.elements[e] = Small::template narrow<kSaturate>(in.elements[e]);
    store_chunk(static_cast<Stored*>(arguments.out) + i, bits_as<Chunk<kFourBytes>>(out));
  }
};

template <DType kDType, bool kAccumulate>
struct WidenBody {
  using Small = SmallFloat<kDType>;
  using Stored = typename Small::Stored;
  static constexpr std::size_t kFourBytes = sizeof(Four<Small>);

  static TRIBUTARY_DEVICE float value(float before, Stored code) {
    return kAccumulate ? before + Small::widen(code) : Small::widen(code);
  }
  static TRIBUTARY_DEVICE void one(const ConvertArguments& arguments, std::uint64_t i) {
    const float before = kAccumulate ? load_element<float>(arguments.out, i) : 0.0F;
    store_element<float>(arguments.out, i, value(before, load_element<Stored>(arguments.in, i)));
  }
  static TRIBUTARY_DEVICE void four(const ConvertArguments& arguments, std::uint64_t i) {
    const auto in = bits_as<Four<Small>>(load_chunk<kFourBytes>(static_cast<const Stored*>(arguments.in) + i));
    float* const to = static_cast<float*>(arguments.out) + i;
    FourFloats out = {};
    if constexpr (kAccumulate) out = bits_as<FourFloats>(load_chunk<16>(to));
    TRIBUTARY_UNROLL
    for (std::uint32_t e = 0; e < kConvertedAtOnce; ++e) out.elements[e] = value(out.elements[e], in.elements[e]);
    store_chunk(to, bits_as<Chunk<16>>(out));
  }
};

template <class Body>
TRIBUTARY_DEVICE void convert_body(const ConvertArguments& arguments, Lane lane) {
  constexpr std::uint32_t kUnrolled = 4;
  const std::uint64_t head = arguments.split.head;
  const std::uint64_t fours = arguments.split.vectors;
  std::uint64_t four = lane.index;
  for (; four + (kUnrolled - 1) * lane.count < fours; four += kUnrolled * lane.count) {
    TRIBUTARY_UNROLL
    for (std::uint32_t u = 0; u < kUnrolled; ++u)
      Body::four(arguments, head + kConvertedAtOnce * (four + u * lane.count));
  }
  for (; four < fours; four += lane.count) Body::four(arguments, head + kConvertedAtOnce * four);

  for (std::uint64_t i = lane.index; i < head; i += lane.count) Body::one(arguments, i);
  for (std::uint64_t i = head + kConvertedAtOnce * fours + lane.index; i < arguments.count; i += lane.count)
    Body::one(arguments, i);
}

}  // namespace tributary::kernels::cuda
