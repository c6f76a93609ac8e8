// bfloat16: the upper half of a float32. Included once per target.

/// Returns the even 16-bit elements, each in the upper half of its 32-bit lane, over zeros.
HWY_INLINE Vec<std::uint32_t> even_to_upper_half(Vec<std::uint16_t> wire) {
#if HWY_ARCH_X86
  // This is a byte shuffle instead of a shift: on Zen 4 shifts share their pipes with float additions, which limit the
  // speed of a sum. 64 bytes cost three cycles with a shift, and two with the shuffle.
  alignas(16) static constexpr std::uint8_t kSource[16] = {0x80, 0x80, 0, 1, 0x80, 0x80, 4,  5,
                                                           0x80, 0x80, 8, 9, 0x80, 0x80, 12, 13};
  const Tag<std::uint8_t> bytes;
  return as<std::uint32_t>(hn::TableLookupBytesOr0(as<std::uint8_t>(wire), hn::LoadDup128(bytes, kSource)));
#else
  return hn::ShiftLeft<16>(as<std::uint32_t>(wire));
#endif
}

template <Order kOrder>
HWY_INLINE void widen_bfloat16(Vec<std::uint16_t> wire, Vec<float>& first, Vec<float>& second) {
  if constexpr (kOrder == Order::native) {
    first = as<float>(even_to_upper_half(wire));
    second = as<float>(hn::And(as<std::uint32_t>(wire), set<std::uint32_t>(0xFFFF0000U)));
  } else {
    Vec<std::uint32_t> first_words, second_words;
    split_words<kOrder>(wire, first_words, second_words);
    first = as<float>(hn::ShiftLeft<16>(first_words));
    second = as<float>(hn::ShiftLeft<16>(second_words));
  }
}

/// Loads two vectors of bfloat16 and widens them to four of float32.
template <Order kOrder>
HWY_INLINE void load_bfloat16(const std::uint8_t* from, Vec<float>& a, Vec<float>& b, Vec<float>& c, Vec<float>& d) {
#if HWY_ARCH_X86
  if constexpr (kOrder == Order::sequential) {  // loads of half vectors save a shuffle
    const std::size_t step = vector_bytes() / 2;
    const auto widened = [from](std::size_t offset) HWY_ATTR {
      const hn::Half<Tag<std::uint8_t>> bytes;
      const hn::Half<Tag<std::uint16_t>> words;
      return as<float>(
          hn::ShiftLeft<16>(hn::PromoteTo(Tag<std::uint32_t>(), hn::BitCast(words, hn::LoadU(bytes, from + offset)))));
    };
    a = widened(0);
    b = widened(step);
    c = widened(2 * step);
    d = widened(3 * step);
    return;
  }
#endif
  widen_bfloat16<kOrder>(load_vector<std::uint16_t>(from), a, b);
  widen_bfloat16<kOrder>(load_vector<std::uint16_t>(from + vector_bytes()), c, d);
}

/// Returns the rounded value in the upper half of each lane; the lower half is undefined. A NaN is made quiet, but not
/// rounded, because rounding could carry out of its payload. (The code uses IsNaN, not Ne(value, value): in Highway
/// 1.0.3 Ne is an ordered comparison on AVX2 and AVX-512, which is false for NaN.)
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

template <Overflow kOverflow, Order kOrder>
HWY_INLINE Vec<std::uint16_t> narrow_bfloat16_by_integers(Vec<float> first, Vec<float> second) {
  const auto first_words = hn::ShiftRight<16>(round_to_bfloat16<kOverflow>(first));
  const auto second_rounded = round_to_bfloat16<kOverflow>(second);
  if constexpr (kOrder == Order::native) {
    return as<std::uint16_t>(hn::Or(first_words, hn::And(second_rounded, set<std::uint32_t>(0xFFFF0000U))));
  } else {
    return join_words<kOrder>(first_words, hn::ShiftRight<16>(second_rounded));
  }
}

template <Overflow kOverflow, Order kOrder>
HWY_INLINE void narrow_bfloat16_by_integers(Vec<float> a, Vec<float> b, Vec<float> c, Vec<float> d,
                                            Vec<std::uint16_t>& first, Vec<std::uint16_t>& second) {
  first = narrow_bfloat16_by_integers<kOverflow, kOrder>(a, b);
  second = narrow_bfloat16_by_integers<kOverflow, kOrder>(c, d);
}

#if TRIBUTARY_BF16_INSTRUCTIONS
HWY_INLINE __m512i round_pair_to_bfloat16(Vec<float> first, Vec<float> second) {
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second.raw, first.raw));
}

HWY_INLINE unsigned subnormals(Vec<float> a, Vec<float> b, Vec<float> c, Vec<float> d) {
  constexpr int kSubnormal = 0x20;
  return unsigned{_mm512_fpclass_ps_mask(a.raw, kSubnormal)} | _mm512_fpclass_ps_mask(b.raw, kSubnormal) |
         _mm512_fpclass_ps_mask(c.raw, kSubnormal) | _mm512_fpclass_ps_mask(d.raw, kSubnormal);
}

template <Order kOrder>
HWY_INLINE Vec<std::uint16_t> in_order(__m512i rounded) {
  if constexpr (kOrder == Order::sequential) return Vec<std::uint16_t>{rounded};
  alignas(64) static constexpr std::uint16_t kInterleaved[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                                 21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                                 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  return Vec<std::uint16_t>{_mm512_permutexvar_epi16(_mm512_load_si512(kInterleaved), rounded)};
}

/// VCVTNE2PS2BF16 rounds as the other targets do, but always takes subnormal values for zero, whatever the control
/// register holds. The bits must not depend on the target. So where a result is zero and an input was subnormal,
/// integers do the rounding. One test serves both vectors: with two tests a sum of eight inputs is slower by a
/// twentieth.
template <Overflow kOverflow, Order kOrder>
HWY_INLINE void narrow_bfloat16(Vec<float> a, Vec<float> b, Vec<float> c, Vec<float> d, Vec<std::uint16_t>& first,
                                Vec<std::uint16_t>& second) {
  if constexpr (kOverflow == Overflow::saturate)
    return narrow_bfloat16_by_integers<kOverflow, kOrder>(a, b, c, d, first, second);
  const __m512i one = round_pair_to_bfloat16(a, b);
  const __m512i other = round_pair_to_bfloat16(c, d);
  const __m512i magnitude = _mm512_set1_epi16(0x7FFF);
  const __mmask32 zeros = _mm512_testn_epi16_mask(one, magnitude);
  const __mmask32 other_zeros = _mm512_testn_epi16_mask(other, magnitude);
  if (HWY_UNLIKELY(_kortestz_mask32_u8(zeros, other_zeros) == 0) && subnormals(a, b, c, d) != 0)
    return narrow_bfloat16_by_integers<kOverflow, kOrder>(a, b, c, d, first, second);
  first = in_order<kOrder>(one);
  second = in_order<kOrder>(other);
}
#else
template <Overflow kOverflow, Order kOrder>
HWY_INLINE void narrow_bfloat16(Vec<float> a, Vec<float> b, Vec<float> c, Vec<float> d, Vec<std::uint16_t>& first,
                                Vec<std::uint16_t>& second) {
  narrow_bfloat16_by_integers<kOverflow, kOrder>(a, b, c, d, first, second);
}
#endif
