// float16, and the general way to narrow a float32 to a format of fewer bits. Included once per target.

/// Rounds to nearest even by integer arithmetic; returns the format's bits in the low end of each lane. With kInfinity,
/// the all-ones exponent means infinity and NaN. Without it, only the all-ones pattern is NaN, and a value beyond the
/// largest becomes NaN unless it saturates.
template <int kExponentBits, int kMantissaBits, bool kInfinity, Overflow kOverflow>
HWY_INLINE Vec<std::uint32_t> encode_small(Vec<float> value) {
  using U = std::uint32_t;
  using I = std::int32_t;
  constexpr int kShift = 23 - kMantissaBits;
  constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  constexpr U kSign = 1U << (kExponentBits + kMantissaBits);
  constexpr U kExponentMask = ((1U << kExponentBits) - 1) << kMantissaBits;
  constexpr U kLargest = kInfinity ? kExponentMask - 1 : kSign - 2;
  constexpr U kNaN = kInfinity ? kExponentMask | (1U << (kMantissaBits - 1)) : kSign - 1;
  constexpr U kBeyond = kOverflow == Overflow::saturate ? kLargest : kInfinity ? kExponentMask : kNaN;
  constexpr U kSmallestNormal = static_cast<U>(127 + 1 - kBias) << 23;
  constexpr U kRebias = static_cast<U>(127 - kBias) << kMantissaBits;
  // The last bit of this float32 has the value of the format's smallest subnormal, so an addition of it rounds a small
  // value to a multiple of that subnormal.
  constexpr U kMagic = static_cast<U>(127 + 1 - kBias + kShift) << 23;

  const auto bits = as<U>(value);
  const auto magnitude = hn::And(bits, set<U>(0x7FFFFFFF));
  const auto odd = hn::And(hn::ShiftRight<kShift>(magnitude), set<U>(1));
  const auto rounded = hn::Add(hn::Add(magnitude, set<U>((1U << (kShift - 1)) - 1)), odd);
  const auto normal = as<I>(hn::Sub(hn::ShiftRight<kShift>(rounded), set<U>(kRebias)));
  const auto subnormal =
      as<I>(hn::Sub(as<U>(hn::Add(as<float>(magnitude), as<float>(set<U>(kMagic)))), set<U>(kMagic)));

  const auto signed_magnitude = as<I>(magnitude);
  auto code = hn::IfThenElse(hn::Lt(signed_magnitude, set<I>(static_cast<I>(kSmallestNormal))), subnormal, normal);
  code = hn::IfThenElse(hn::Gt(code, set<I>(static_cast<I>(kLargest))), set<I>(static_cast<I>(kBeyond)), code);
  code = hn::IfThenElse(hn::Gt(signed_magnitude, set<I>(0x7F800000)), set<I>(static_cast<I>(kNaN)), code);
  const auto sign = hn::And(hn::ShiftRight<31 - kExponentBits - kMantissaBits>(bits), set<U>(kSign));
  return hn::Or(as<U>(code), sign);
}

/// Multiplying by 2^112 moves the exponent from float16's bias to float32's and normalises subnormals on the way.
HWY_INLINE Vec<float> float16_to_float32(Vec<std::uint32_t> half) {
  const auto magnitude = hn::ShiftLeft<13>(hn::And(half, set<std::uint32_t>(0x7FFF)));
  const auto scaled = hn::Mul(as<float>(magnitude), set<float>(0x1p112F));
  const auto special = hn::Gt(as<std::int32_t>(magnitude), set<std::int32_t>(0x0F7FFFFF));
  const auto exponent = hn::IfThenElseZero(special, set<std::int32_t>(0x7F800000));
  const auto sign = hn::ShiftLeft<16>(hn::And(half, set<std::uint32_t>(0x8000)));
  return as<float>(hn::Or(hn::Or(as<std::uint32_t>(scaled), as<std::uint32_t>(exponent)), sign));
}

template <Order kOrder>
HWY_INLINE void widen_float16(Vec<std::uint16_t> wire, Vec<float>& first, Vec<float>& second) {
#if TRIBUTARY_F16 == TRIBUTARY_F16_HALVES
  const hn::Half<Tag<std::uint16_t>> half;
  const hn::Half<Tag<hwy::float16_t>> half_floats;
  first = hn::PromoteTo(Tag<float>(), hn::BitCast(half_floats, hn::LowerHalf(half, wire)));
  second = hn::PromoteTo(Tag<float>(), hn::BitCast(half_floats, hn::UpperHalf(half, wire)));
#else
  Vec<std::uint32_t> first_words, second_words;
  split_words<kOrder>(wire, first_words, second_words);
#if TRIBUTARY_F16 == TRIBUTARY_F16_EVEN_ODD
  const auto all = svptrue_b32();  // the conversion reads the lower half of each 32-bit lane
  first = svcvt_f32_f16_x(all, svreinterpret_f16_u32(first_words));
  second = svcvt_f32_f16_x(all, svreinterpret_f16_u32(second_words));
#else
  first = float16_to_float32(first_words);
  second = float16_to_float32(second_words);
#endif
#endif
}

/// Loads two vectors of float16 and widens them to four of float32, in the order that narrow_float16 undoes.
template <Order kOrder>
HWY_INLINE void load_float16(const std::uint8_t* from, Vec<float>& a, Vec<float>& b, Vec<float>& c, Vec<float>& d) {
#if TRIBUTARY_F16 == TRIBUTARY_F16_HALVES && HWY_ARCH_X86
  // A conversion from memory is one arithmetic operation. A conversion from a register also needs a shuffle across the
  // vector, and for the upper half a third operation.
  const std::size_t step = vector_bytes() / 2;
  const auto widened = [from](std::size_t offset) HWY_ATTR {
    const hn::Half<Tag<std::uint8_t>> bytes;
    const hn::Half<Tag<hwy::float16_t>> halves;
    return hn::PromoteTo(Tag<float>(), hn::BitCast(halves, hn::LoadU(bytes, from + offset)));
  };
  a = widened(0);
  b = widened(step);
  c = widened(2 * step);
  d = widened(3 * step);
#else
  widen_float16<kOrder>(load_vector<std::uint16_t>(from), a, b);
  widen_float16<kOrder>(load_vector<std::uint16_t>(from + vector_bytes()), c, d);
#endif
}

/// Replaces larger values by the largest float16. A NaN stays, because its comparison is false.
HWY_INLINE Vec<float> clamp_to_float16(Vec<float> value) {
  const auto largest = set<float>(65504.0F);
  return hn::IfThenElse(hn::Gt(hn::Abs(value), largest), hn::CopySign(largest, value), value);
}

template <Overflow kOverflow, Order kOrder>
HWY_INLINE Vec<std::uint16_t> narrow_float16(Vec<float> first, Vec<float> second) {
  if constexpr (kOverflow == Overflow::saturate) {
    first = clamp_to_float16(first);
    second = clamp_to_float16(second);
  }
#if TRIBUTARY_F16 == TRIBUTARY_F16_HALVES
  const hn::Half<Tag<hwy::float16_t>> half;
  const hn::Half<Tag<std::uint16_t>> half_words;
  return hn::Combine(Tag<std::uint16_t>(), hn::BitCast(half_words, hn::DemoteTo(half, second)),
                     hn::BitCast(half_words, hn::DemoteTo(half, first)));
#elif TRIBUTARY_F16 == TRIBUTARY_F16_EVEN_ODD
  const auto all = svptrue_b32();
  const auto low_half = set<std::uint32_t>(0xFFFF);
  return join_words<kOrder>(hn::And(svreinterpret_u32_f16(svcvt_f16_f32_x(all, first)), low_half),
                            hn::And(svreinterpret_u32_f16(svcvt_f16_f32_x(all, second)), low_half));
#else
  return join_words<kOrder>(encode_small<5, 10, true, Overflow::to_infinity>(first),
                            encode_small<5, 10, true, Overflow::to_infinity>(second));
#endif
}

template <Overflow kOverflow, Order kOrder, bool kStream>
HWY_INLINE void store_float16(Vec<float> a, Vec<float> b, Vec<float> c, Vec<float> d, std::uint8_t* to) {
#if TRIBUTARY_F16 == TRIBUTARY_F16_HALVES && HWY_ARCH_X86
  if constexpr (!kStream) {  // stores each half alone, because joining them needs a shuffle
    const std::size_t step = vector_bytes() / 2;
    const auto store = [to](Vec<float> value, std::size_t offset) HWY_ATTR {
      const hn::Half<Tag<std::uint8_t>> bytes;
      const hn::Half<Tag<hwy::float16_t>> halves;
      if constexpr (kOverflow == Overflow::saturate) value = clamp_to_float16(value);
      hn::StoreU(hn::BitCast(bytes, hn::DemoteTo(halves, value)), bytes, to + offset);
    };
    store(a, 0);
    store(b, step);
    store(c, 2 * step);
    store(d, 3 * step);
    return;
  }
#endif
  store_vector<std::uint16_t, kStream>(narrow_float16<kOverflow, kOrder>(a, b), to);
  store_vector<std::uint16_t, kStream>(narrow_float16<kOverflow, kOrder>(c, d), to + vector_bytes());
}
