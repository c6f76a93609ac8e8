// The two float8 formats of OCP, converted through float16: both are a float16 with fewer bits, in the upper byte of a
// 16-bit lane. Included once per target.

/// e5m2 is the upper byte of a float16.
struct E5M2 {
  static constexpr int kExponentBits = 5;
  static constexpr int kMantissaBits = 2;
  static constexpr bool kInfinity = true;

  template <Order kOrder>
  static HWY_INLINE void widen(Vec<std::uint16_t> upper_byte, Vec<float>& first, Vec<float>& second) {
    widen_float16<kOrder>(upper_byte, first, second);
  }
};

/// An e4m3 shifted down by one bit is a float16 with 2^-8 of its value (the biases are 7 and 15), subnormals included.
/// The code turns its NaN, the all-ones pattern, into a float16 NaN.
struct E4M3 {
  static constexpr int kExponentBits = 4;
  static constexpr int kMantissaBits = 3;
  static constexpr bool kInfinity = false;

  template <Order kOrder>
  static HWY_INLINE void widen(Vec<std::uint16_t> upper_byte, Vec<float>& first, Vec<float>& second) {
    using U = std::uint16_t;
    const auto shifted = as<U>(hn::ShiftRight<1>(as<std::int16_t>(upper_byte)));  // the sign bit twice
    const auto nan = hn::VecFromMask(Tag<U>(), hn::Eq(hn::And(upper_byte, set<U>(0x7F00)), set<U>(0x7F00)));
    const auto half = hn::Or(hn::And(shifted, set<U>(0xBF80)), hn::And(nan, set<U>(0x7E00)));
    widen_float16<kOrder>(half, first, second);
    first = hn::Mul(first, set<float>(256.0F));
    second = hn::Mul(second, set<float>(256.0F));
  }
};

template <class Format, Order kOrder>
HWY_INLINE void widen_float8(Vec<std::uint8_t> wire, Vec<float>& a, Vec<float>& b, Vec<float>& c, Vec<float>& d) {
  Vec<std::uint16_t> first, second;
  split_bytes_to_upper<kOrder>(wire, first, second);
  Format::template widen<kOrder>(first, a, b);
  Format::template widen<kOrder>(second, c, d);
}

template <class Format, Overflow kOverflow, Order kOrder>
HWY_INLINE Vec<std::uint16_t> encode_words(Vec<float> first, Vec<float> second) {
  return join_words<kOrder>(
      encode_small<Format::kExponentBits, Format::kMantissaBits, Format::kInfinity, kOverflow>(first),
      encode_small<Format::kExponentBits, Format::kMantissaBits, Format::kInfinity, kOverflow>(second));
}

#if HWY_TARGET == HWY_AVX3
#include "kernels/cpu/float8_rounding-inl.h"
#endif

template <class Format, Overflow kOverflow, Order kOrder>
HWY_INLINE Vec<std::uint8_t> narrow_float8(Vec<float> a, Vec<float> b, Vec<float> c, Vec<float> d) {
#if HWY_TARGET == HWY_AVX3
  if (HWY_LIKELY(!any_nan(a.raw, b.raw, c.raw, d.raw)))
    return Vec<std::uint8_t>{round_to_float8<Format, kOverflow, kOrder>(a.raw, b.raw, c.raw, d.raw)};
#endif
  return join_bytes<kOrder>(encode_words<Format, kOverflow, kOrder>(a, b),
                            encode_words<Format, kOverflow, kOrder>(c, d));
}
