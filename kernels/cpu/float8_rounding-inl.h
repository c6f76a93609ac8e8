// float32 to float8 on AVX-512: 64 elements in 40 operations. Included once per target, after float8-inl.h's formats.
//
// An addition rounds a float32 to m bits of mantissa: the added number is 2^(23-m) times the value's own power of two,
// so the last bit of the sum has the value of the format's last bit. For values below the format's normal numbers the
// code takes the power of the smallest normal number, and the same addition rounds to subnormals. The bits of the sum
// are an exponent, zeros and, in the lowest places, the rounded mantissa with its leading one. Mantissa plus exponent
// << m is the format's code plus a constant; one multiply-and-add of 16-bit halves computes it.

/// Returns the bound to which magnitudes are cut before rounding: the bound rounds to the code for all larger values.
template <class Format, Overflow kOverflow>
HWY_INLINE __m512 float8_bound() {
  if constexpr (Format::kInfinity)
    return _mm512_set1_ps(kOverflow == Overflow::saturate ? 57344.0F : 65536.0F);  // the code of infinity
  return _mm512_set1_ps(kOverflow == Overflow::saturate ? 448.0F : 480.0F);        // the code of NaN
}

template <class Format>
struct Float8Layout {
  static constexpr int kMantissaBits = Format::kMantissaBits;
  static constexpr int kExponentMin =
      127 + 2 - (1 << (Format::kExponentBits - 1));  // in float32's form, of the format's smallest normal
  static constexpr int kAdded = 23 - kMantissaBits;
  // In a 16-bit lane the exponent stands at bit 7, as in the upper half of a float32, and the code ends there.
  static constexpr int kBelow = 7 - kMantissaBits;
  static constexpr short kOffset = static_cast<short>((kExponentMin + kAdded) << 7);
};

/// Returns the code in every 32-bit lane, shifted up by kBelow and with kOffset added, without the sign. Takes no NaN.
template <class Format>
HWY_INLINE __m512i float8_code(__m512 value, __m512 bound) {
  using Layout = Float8Layout<Format>;
  constexpr int kLesserMagnitudeWithoutSign = 0xA;
  const __m512 magnitude = _mm512_range_ps(value, bound, kLesserMagnitudeWithoutSign);
  const __m512 power = _mm512_max_ps(_mm512_and_ps(magnitude, _mm512_castsi512_ps(_mm512_set1_epi32(0x7F800000))),
                                     _mm512_castsi512_ps(_mm512_set1_epi32(Layout::kExponentMin << 23)));
  // This is an addition: a fused multiply-and-add costs the same for normal values, but a hundred times as much for a
  // subnormal value.
  const __m512 larger =
      _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(power), _mm512_set1_epi32(Layout::kAdded << 23)));
  const __m512i rounded = _mm512_castps_si512(_mm512_add_ps(magnitude, larger));
  return _mm512_madd_epi16(rounded, _mm512_set1_epi32(1 << 16 | 1 << Layout::kBelow));
}

template <class Format>
HWY_INLINE __m512i float8_words(__m512 first, __m512 second, __m512 bound) {
  using Layout = Float8Layout<Format>;
  const __m512i both = _mm512_packs_epi32(float8_code<Format>(first, bound), float8_code<Format>(second, bound));
  return _mm512_srli_epi16(_mm512_sub_epi16(both, _mm512_set1_epi16(Layout::kOffset)), Layout::kBelow);
}

/// Returns bytes with the signs of the elements: packing with signed saturation keeps signs. The other bits have no
/// meaning.
HWY_INLINE __m512i signs_as_bytes(__m512 a, __m512 b, __m512 c, __m512 d) {
  return _mm512_packs_epi16(_mm512_packs_epi32(_mm512_castps_si512(a), _mm512_castps_si512(b)),
                            _mm512_packs_epi32(_mm512_castps_si512(c), _mm512_castps_si512(d)));
}

/// Packing works in lanes of 128 bits, each with four bytes of a, b, c and d. This function puts the bytes into the
/// order of memory, or into the order of widen_float8: a and c in the even and odd bytes of the lower half, b and d in
/// the even and odd bytes of the upper half.
template <Order kOrder>
HWY_INLINE __m512i packed_in_order(__m512i packed) {
  if constexpr (kOrder == Order::sequential) {
    return _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), packed);
  } else {
    const __m512i interleaved = _mm512_shuffle_epi8(
        packed, _mm512_broadcast_i32x4(_mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15)));
    return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), interleaved);
  }
}

HWY_INLINE bool any_nan(__m512 a, __m512 b, __m512 c, __m512 d) {
  return _kortestz_mask16_u8(_mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q), _mm512_cmp_ps_mask(c, d, _CMP_UNORD_Q)) == 0;
}

template <class Format, Overflow kOverflow, Order kOrder>
HWY_INLINE __m512i round_to_float8(__m512 a, __m512 b, __m512 c, __m512 d) {
  const __m512 bound = float8_bound<Format, kOverflow>();
  const __m512i codes = _mm512_packus_epi16(float8_words<Format>(a, b, bound), float8_words<Format>(c, d, bound));
  constexpr int kFirstOrSecondAndThird = 0xF8;
  return packed_in_order<kOrder>(_mm512_ternarylogic_epi32(
      codes, signs_as_bytes(a, b, c, d), _mm512_set1_epi8(static_cast<char>(0x80)), kFirstOrSecondAndThird));
}
