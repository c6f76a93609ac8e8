// int8 with one scale per block. Included once per target.

/// At most 16 lanes, so that a block of 32 elements is a whole number of vectors on any target.
using BlockFloats = hn::CappedTag<float, 16>;
using BlockIntegers = hn::Rebind<std::int32_t, BlockFloats>;
using BlockBytes = hn::Rebind<std::int8_t, BlockFloats>;

inline constexpr float kSteps = 127.0F;
inline constexpr float kScaleMin = 0x1p-126F;
inline constexpr std::int32_t kInfinityBits = 0x7F800000;

HWY_INLINE std::int32_t largest_magnitude_bits(const float* in, std::size_t count) {
  const BlockIntegers integers;
  const auto magnitudes = [&](std::size_t i) HWY_ATTR {
    return hn::And(hn::BitCast(integers, hn::LoadU(BlockFloats(), in + i)), hn::Set(integers, 0x7FFFFFFF));
  };
  // A block has an even number of vectors.
  auto largest = hn::Zero(integers);
  auto of_odd = hn::Zero(integers);
  const std::size_t step = hn::Lanes(integers);
  for (std::size_t i = 0; i < count; i += 2 * step) {
    largest = hn::Max(largest, magnitudes(i));
    of_odd = hn::Max(of_odd, magnitudes(i + step));
  }
  return hn::GetLane(hn::MaxOfLanes(integers, hn::Max(largest, of_odd)));
}

HWY_INLINE void count_block(const float* in, std::size_t count, ConvertCounters& counters) {
  const BlockIntegers integers;
  const auto infinity = hn::Set(integers, kInfinityBits);
  for (std::size_t i = 0; i < count; i += hn::Lanes(integers)) {
    const auto magnitude =
        hn::And(hn::BitCast(integers, hn::LoadU(BlockFloats(), in + i)), hn::Set(integers, 0x7FFFFFFF));
    counters.nans += hn::CountTrue(integers, hn::Gt(magnitude, infinity));
    counters.overflows += hn::CountTrue(integers, hn::Eq(magnitude, infinity));
  }
}

/// Writes `in` times `reciprocal`, rounded to the nearest whole numbers; each product is below 127.5.
template <bool kStream>
HWY_INLINE void to_steps(const float* in, float reciprocal, std::int8_t* out, std::size_t count) {
  std::size_t i = 0;
#if HWY_TARGET == HWY_AVX3
  // Packs four vectors at a time: narrowing them one by one would take twice as many shuffles.
  const __m512 factor = _mm512_set1_ps(reciprocal);
  for (; count - i >= 64; i += 64) {
    const auto steps = [from = in + i, factor](std::size_t offset) HWY_ATTR {
      return _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(from + offset), factor));
    };
    const __m512i packed = packed_in_order<Order::sequential>(
        _mm512_packs_epi16(_mm512_packs_epi32(steps(0), steps(16)), _mm512_packs_epi32(steps(32), steps(48))));
    store_vector<std::uint8_t, kStream>(Vec<std::uint8_t>{packed}, reinterpret_cast<std::uint8_t*>(out + i));
  }
#endif
  const auto factors = hn::Set(BlockFloats(), reciprocal);
  for (; i < count; i += hn::Lanes(BlockFloats())) {
    const auto steps = hn::NearestInt(hn::Mul(hn::LoadU(BlockFloats(), in + i), factors));
    hn::StoreU(hn::DemoteTo(BlockBytes(), steps), BlockBytes(), out + i);
  }
}

/// Quantizes one block, of a multiple of 32 elements. Returns its scale.
template <bool kStream>
HWY_INLINE float quantize_block(const float* in, std::int8_t* out, std::size_t count, ConvertCounters* counters) {
  const std::int32_t largest_bits = largest_magnitude_bits(in, count);
  if (HWY_UNLIKELY(largest_bits >= kInfinityBits)) {
    if (counters != nullptr) count_block(in, count, *counters);
    std::memset(out, 0, count);
    return __builtin_nanf("");
  }
  float largest;
  std::memcpy(&largest, &largest_bits, sizeof(largest));
  const float scale = largest / kSteps > kScaleMin ? largest / kSteps : kScaleMin;
  to_steps<kStream>(in, 1.0F / scale, out, count);
  return scale;
}

template <bool kStream>
HWY_INLINE void quantize_all(const QuantizeArgs& args) {
  const auto* const in = static_cast<const float*>(args.in);
  auto* const out = static_cast<std::int8_t*>(args.out);
  float* scale = args.scales;
  std::size_t i = 0;
  for (; args.count - i >= args.block; i += args.block) {
    if (args.ahead) prefetch_ahead(reinterpret_cast<const std::uint8_t*>(in + i), args.block * sizeof(float));
    *scale++ = quantize_block<kStream>(in + i, out + i, args.block, args.counters);
  }
  if (i == args.count) return;
  alignas(64) float rest[kScaleBlockMax] = {};
  alignas(64) std::int8_t rest_out[kScaleBlockMax];
  std::memcpy(rest, in + i, (args.count - i) * sizeof(float));
  *scale = quantize_block<false>(rest, rest_out, args.block, args.counters);
  std::memcpy(out + i, rest_out, args.count - i);
}

void quantize(const QuantizeArgs& args) noexcept {
#if HWY_TARGET == HWY_AVX3
  // A block of a multiple of 64 elements consists of whole vectors of bytes: if the first vector is aligned, all are
  // aligned.
  if (args.stream && args.block % 64 == 0 && reinterpret_cast<std::uintptr_t>(args.out) % 64 == 0) {
    quantize_all<true>(args);
    return hwy::FlushStream();
  }
#endif
  quantize_all<false>(args);
}

template <bool kAccumulate, bool kStream>
HWY_INLINE void dequantize_block(const std::int8_t* in, float scale, float* out, std::size_t count) {
  const BlockFloats floats;
  const auto scales = hn::Set(floats, scale);
  for (std::size_t i = 0; i < count; i += hn::Lanes(floats)) {
    const auto steps = hn::PromoteTo(BlockIntegers(), hn::LoadU(BlockBytes(), in + i));
    auto value = hn::Mul(hn::ConvertTo(floats, steps), scales);
    if constexpr (kAccumulate) value = hn::Add(hn::LoadU(floats, out + i), value);
    if constexpr (kStream) {
      hn::Stream(value, floats, out + i);
    } else {
      hn::StoreU(value, floats, out + i);
    }
  }
}

template <bool kAccumulate, bool kStream>
HWY_INLINE void dequantize_all(const QuantizeArgs& args) {
  const auto* const in = static_cast<const std::int8_t*>(args.in);
  auto* const out = static_cast<float*>(args.out);
  const float* scale = args.scales;
  std::size_t i = 0;
  for (; args.count - i >= args.block; i += args.block) {
    if (args.ahead) {
      prefetch_ahead(reinterpret_cast<const std::uint8_t*>(in + i), args.block);
      if constexpr (kAccumulate)
        prefetch_ahead(reinterpret_cast<const std::uint8_t*>(out + i), args.block * sizeof(float));
    }
    dequantize_block<kAccumulate, kStream>(in + i, *scale++, out + i, args.block);
  }
  if (i == args.count) return;
  alignas(64) std::int8_t rest[kScaleBlockMax] = {};
  alignas(64) float rest_out[kScaleBlockMax] = {};
  std::memcpy(rest, in + i, args.count - i);
  if constexpr (kAccumulate) std::memcpy(rest_out, out + i, (args.count - i) * sizeof(float));
  dequantize_block<kAccumulate, false>(rest, *scale, rest_out, args.block);
  std::memcpy(out + i, rest_out, (args.count - i) * sizeof(float));
}

void dequantize(const QuantizeArgs& args) noexcept {
  // A block consists of whole vectors: if the first vector is aligned, all are aligned.
  const bool aligned = reinterpret_cast<std::uintptr_t>(args.out) % (hn::Lanes(BlockFloats()) * sizeof(float)) == 0;
  if (!args.stream || !aligned) return dequantize_all<false, false>(args);
  dequantize_all<false, true>(args);
  hwy::FlushStream();
}

void dequantize_accumulate(const QuantizeArgs& args) noexcept {
  dequantize_all<true, false>(args);
}
