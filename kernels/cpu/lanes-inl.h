// How elements get from memory into accumulator lanes and back. Included once per target, inside its namespace.
//
// Memory is addressed in bytes: contributions lie where the network put them, at any alignment. SVE vectors have no
// size known to the compiler, so they cannot be array elements or members: hence a, b, c and d by name here and in the
// files that build on this one.

template <class T>
using Tag = hn::ScalableTag<T>;
template <class T>
using Vec = hn::Vec<Tag<T>>;

HWY_INLINE std::size_t vector_bytes() {
  return hn::Lanes(Tag<std::uint8_t>());
}

template <class T>
HWY_INLINE Vec<T> load_vector(const std::uint8_t* from) {
  return hn::BitCast(Tag<T>(), hn::LoadU(Tag<std::uint8_t>(), from));
}

template <class T, bool kStream>
HWY_INLINE void store_vector(Vec<T> v, std::uint8_t* to) {
  const auto bytes = hn::BitCast(Tag<std::uint8_t>(), v);
  if constexpr (kStream) {
    hn::Stream(bytes, Tag<std::uint8_t>(), to);
  } else {
    hn::StoreU(bytes, Tag<std::uint8_t>(), to);
  }
}

template <class To, class V>
HWY_INLINE Vec<To> as(V v) {
  return hn::BitCast(Tag<To>(), v);
}

template <class T>
HWY_INLINE Vec<T> set(T value) {
  return hn::Set(Tag<T>(), value);
}

// ---- 16-bit lanes and the pair of 32-bit vectors they widen to, in the order that float16 is widened in.

HWY_INLINE Vec<std::uint16_t> join_even_odd(Vec<std::uint32_t> even, Vec<std::uint32_t> odd) {
  return as<std::uint16_t>(hn::Or(even, hn::ShiftLeft<16>(odd)));
}

/// The low 16 bits of each lane; the upper ones must be zero.
HWY_INLINE Vec<std::uint16_t> join_words(Vec<std::uint32_t> first, Vec<std::uint32_t> second) {
#if TRIBUTARY_F16 == TRIBUTARY_F16_HALVES
  const hn::Half<Tag<std::uint16_t>> half;
  return hn::Combine(Tag<std::uint16_t>(), hn::DemoteTo(half, as<std::int32_t>(second)),
                     hn::DemoteTo(half, as<std::int32_t>(first)));
#else
  return join_even_odd(first, second);
#endif
}

// ---- float16

/// Multiplying by 2^112 moves the exponent from float16's bias to float32's and normalises subnormals on the way.
HWY_INLINE Vec<float> float16_to_float32(Vec<std::uint32_t> half) {
  const auto magnitude = hn::ShiftLeft<13>(hn::And(half, set<std::uint32_t>(0x7FFF)));
  const auto scaled = hn::Mul(as<float>(magnitude), set<float>(0x1p112F));
  const auto special = hn::Gt(as<std::int32_t>(magnitude), set<std::int32_t>(0x0F7FFFFF));
  const auto exponent = hn::IfThenElseZero(special, set<std::int32_t>(0x7F800000));
  const auto sign = hn::ShiftLeft<16>(hn::And(half, set<std::uint32_t>(0x8000)));
  return as<float>(hn::Or(hn::Or(as<std::uint32_t>(scaled), as<std::uint32_t>(exponent)), sign));
}

HWY_INLINE void widen_float16(Vec<std::uint16_t> wire, Vec<float>& first, Vec<float>& second) {
#if TRIBUTARY_F16 == TRIBUTARY_F16_HALVES
  const hn::Half<Tag<std::uint16_t>> half;
  const hn::Half<Tag<hwy::float16_t>> half_floats;
  first = hn::PromoteTo(Tag<float>(), hn::BitCast(half_floats, hn::LowerHalf(half, wire)));
  second = hn::PromoteTo(Tag<float>(), hn::BitCast(half_floats, hn::UpperHalf(half, wire)));
#elif TRIBUTARY_F16 == TRIBUTARY_F16_EVEN_ODD
  const auto all = svptrue_b32();
  first = svcvt_f32_f16_x(all, svreinterpret_f16_u16(wire));
  second = svcvt_f32_f16_x(all, svreinterpret_f16_u32(svlsr_n_u32_x(all, svreinterpret_u32_u16(wire), 16)));
#else
  const auto pairs = as<std::uint32_t>(wire);
  first = float16_to_float32(hn::And(pairs, set<std::uint32_t>(0xFFFF)));
  second = float16_to_float32(hn::ShiftRight<16>(pairs));
#endif
}

// ---- Narrowing to a format of fewer bits, by integer arithmetic, to nearest even.

enum class Overflow : std::uint8_t { to_infinity, saturate };

/// The format's bits in the low end of each lane. kInfinity: the all-ones exponent means infinity and NaN; without it,
/// only the all-ones pattern is NaN, and a value beyond the largest becomes that NaN unless it saturates.
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
  // The float32 whose last place is worth the format's smallest subnormal: adding it rounds a small value to a multiple
  // of that.
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

template <Overflow kOverflow>
HWY_INLINE Vec<std::uint16_t> narrow_float16(Vec<float> first, Vec<float> second) {
  if constexpr (kOverflow == Overflow::saturate) {
    // The clamp keeps NaN, whose comparison is false; what is clamped can no longer round to infinity.
    const auto limit = set<float>(65504.0F);
    first = hn::IfThenElse(hn::Gt(hn::Abs(first), limit), hn::CopySign(limit, first), first);
    second = hn::IfThenElse(hn::Gt(hn::Abs(second), limit), hn::CopySign(limit, second), second);
  }
#if TRIBUTARY_F16 == TRIBUTARY_F16_HALVES
  const hn::Half<Tag<hwy::float16_t>> half;
  const auto words = hn::BitCast(hn::Half<Tag<std::uint16_t>>(), hn::DemoteTo(half, first));
  return hn::Combine(Tag<std::uint16_t>(), hn::BitCast(hn::Half<Tag<std::uint16_t>>(), hn::DemoteTo(half, second)),
                     words);
#elif TRIBUTARY_F16 == TRIBUTARY_F16_EVEN_ODD
  const auto all = svptrue_b32();
  const auto even = svreinterpret_u32_f16(svcvt_f16_f32_x(all, first));
  const auto odd = svreinterpret_u32_f16(svcvt_f16_f32_x(all, second));
  return join_even_odd(svand_n_u32_x(all, even, 0xFFFF), odd);
#else
  return join_words(encode_small<5, 10, true, Overflow::to_infinity>(first),
                    encode_small<5, 10, true, Overflow::to_infinity>(second));
#endif
}

// ---- bfloat16: the upper half of a float32, so that even and odd lanes cost one operation each.

/// The even elements of a vector of 16-bit ones, each in the upper half of its 32-bit lane, over zeros.
HWY_INLINE Vec<std::uint32_t> even_to_upper_half(Vec<std::uint16_t> wire) {
#if HWY_ARCH_X86
  // A byte shuffle rather than a shift: on Zen 4 shifts share their pipes with float additions, which are what a sum is bound by. With a shift, 64
  // bytes cost three cycles, with the shuffle two.
  alignas(16) static constexpr std::uint8_t kSource[16] = {0x80, 0x80, 0, 1, 0x80, 0x80, 4, 5, 0x80, 0x80, 8, 9, 0x80, 0x80, 12, 13};
  const Tag<std::uint8_t> bytes;
  return as<std::uint32_t>(hn::TableLookupBytesOr0(as<std::uint8_t>(wire), hn::LoadDup128(bytes, kSource)));
#else
  return hn::ShiftLeft<16>(as<std::uint32_t>(wire));
#endif
}

HWY_INLINE void widen_bfloat16(Vec<std::uint16_t> wire, Vec<float>& even, Vec<float>& odd) {
  even = as<float>(even_to_upper_half(wire));
  odd = as<float>(hn::And(as<std::uint32_t>(wire), set<std::uint32_t>(0xFFFF0000U)));
}

/// The rounded value in the upper half of each lane; what is below it is left over. A NaN is only made quiet: rounding its payload could carry.
/// (Not by Ne(value, value): in Highway 1.0.3 that is an ordered comparison on AVX2 and AVX-512, false for NaN.)
template <Overflow kOverflow>
HWY_INLINE Vec<std::uint32_t> round_to_bfloat16(Vec<float> value) {
  using U = std::uint32_t;
  const auto bits = as<U>(value);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), set<U>(1));
  auto rounded = hn::Add(hn::Add(bits, set<U>(0x7FFF)), odd);
  if constexpr (kOverflow == Overflow::saturate) {
    const auto magnitude = as<std::int32_t>(hn::And(rounded, set<U>(0x7FFFFFFF)));
    const auto largest = hn::Or(hn::And(bits, set<U>(0x80000000U)), set<U>(0x7F7F0000));
    const auto beyond = hn::Gt(magnitude, set<std::int32_t>(0x7F7FFFFF));
    rounded = as<U>(hn::IfThenElse(beyond, as<std::int32_t>(largest), as<std::int32_t>(rounded)));
  }
  const auto quiet = as<float>(hn::Or(bits, set<U>(0x00400000)));
  return as<U>(hn::IfThenElse(hn::IsNaN(value), quiet, as<float>(rounded)));
}

template <Overflow kOverflow>
HWY_INLINE Vec<std::uint16_t> narrow_bfloat16_by_integers(Vec<float> even, Vec<float> odd) {
  const auto low = hn::ShiftRight<16>(round_to_bfloat16<kOverflow>(even));
  const auto high = hn::And(round_to_bfloat16<kOverflow>(odd), set<std::uint32_t>(0xFFFF0000U));
  return as<std::uint16_t>(hn::Or(low, high));
}

#if TRIBUTARY_BF16_INSTRUCTIONS
/// VCVTNE2PS2BF16 rounds as we do but for subnormal values, which it takes for zero whatever the control register says. Results that
/// are zero are looked at again, and subnormals left to the integers: the bits must not depend on the target.
template <Overflow kOverflow>
HWY_INLINE Vec<std::uint16_t> narrow_bfloat16(Vec<float> even, Vec<float> odd) {
  if constexpr (kOverflow == Overflow::saturate) return narrow_bfloat16_by_integers<kOverflow>(even, odd);
  constexpr int kSubnormal = 0x20;
  const auto evens_then_odds = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(odd.raw, even.raw));
  if (HWY_UNLIKELY(_mm512_testn_epi16_mask(evens_then_odds, _mm512_set1_epi16(0x7FFF)) != 0)) {
    const unsigned subnormal = _mm512_fpclass_ps_mask(even.raw, kSubnormal) | unsigned{_mm512_fpclass_ps_mask(odd.raw, kSubnormal)};
    if (subnormal != 0) return narrow_bfloat16_by_integers<kOverflow>(even, odd);
  }
  alignas(64) static constexpr std::uint16_t kInterleaved[32] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                                                 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  return Vec<std::uint16_t>{_mm512_permutexvar_epi16(_mm512_load_si512(kInterleaved), evens_then_odds)};
}
#else
template <Overflow kOverflow>
HWY_INLINE Vec<std::uint16_t> narrow_bfloat16(Vec<float> even, Vec<float> odd) {
  return narrow_bfloat16_by_integers<kOverflow>(even, odd);
}
#endif

// ---- float8, by way of float16: both formats are float16 with fewer bits, in the upper byte of a 16-bit lane.

/// float8 e5m2 is the upper byte of a float16.
struct E5M2 {
  static constexpr int kExponentBits = 5;
  static constexpr int kMantissaBits = 2;
  static constexpr bool kInfinity = true;
  static HWY_INLINE void widen(Vec<std::uint16_t> upper_byte, Vec<float>& first, Vec<float>& second) {
    widen_float16(upper_byte, first, second);
  }
};

/// e4m3 shifted down by one bit has the layout of a float16 that is 2^-8 of the value (the biases are 7 and 15),
/// subnormals included. Its NaN, the all-ones pattern, is made a float16 NaN.
struct E4M3 {
  static constexpr int kExponentBits = 4;
  static constexpr int kMantissaBits = 3;
  static constexpr bool kInfinity = false;
  static HWY_INLINE void widen(Vec<std::uint16_t> upper_byte, Vec<float>& first, Vec<float>& second) {
    using U = std::uint16_t;
    const auto shifted = as<U>(hn::ShiftRight<1>(as<std::int16_t>(upper_byte)));  // the sign bit twice
    const auto nan = hn::VecFromMask(Tag<U>(), hn::Eq(hn::And(upper_byte, set<U>(0x7F00)), set<U>(0x7F00)));
    const auto half = hn::Or(hn::And(shifted, set<U>(0xBF80)), hn::And(nan, set<U>(0x7E00)));
    widen_float16(half, first, second);
    first = hn::Mul(first, set<float>(256.0F));
    second = hn::Mul(second, set<float>(256.0F));
  }
};

template <class Format>
HWY_INLINE void widen_float8(Vec<std::uint8_t> wire, Vec<float>& a, Vec<float>& b, Vec<float>& c, Vec<float>& d) {
  const auto pairs = as<std::uint16_t>(wire);
  Format::widen(hn::ShiftLeft<8>(pairs), a, b);
  Format::widen(hn::And(pairs, set<std::uint16_t>(0xFF00)), c, d);
}

template <class Format, Overflow kOverflow>
HWY_INLINE Vec<std::uint16_t> encode_words(Vec<float> first, Vec<float> second) {
  return join_words(encode_small<Format::kExponentBits, Format::kMantissaBits, Format::kInfinity, kOverflow>(first),
                    encode_small<Format::kExponentBits, Format::kMantissaBits, Format::kInfinity, kOverflow>(second));
}

template <class Format, Overflow kOverflow>
HWY_INLINE Vec<std::uint8_t> narrow_float8(Vec<float> a, Vec<float> b, Vec<float> c, Vec<float> d) {
  return as<std::uint8_t>(hn::Or(encode_words<Format, kOverflow>(a, b), hn::ShiftLeft<8>(encode_words<Format, kOverflow>(c, d))));
}
