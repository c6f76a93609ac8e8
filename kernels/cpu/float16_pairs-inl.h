// Sums and products of two float16 arrays in float16 itself, by AVX512-FP16: one operation in place of two conversions,
// a float32 operation and a conversion back. The bits are the same. Included once per target that has the instructions.
//
// reduce() rounds the float32 result to float16. A product of two float16 has 22 bits, so float32 holds it exactly (its
// magnitude is between 2^-48 and 2^32), and both ways round once. A sum is rounded twice, to 24 bits and then to 11
// bits. This equals one rounding to 11 bits, because 24 >= 2 * 11 + 2; below float16's normal range every sum is exact.
// Source: S. A. Figueroa, "When is Double Rounding Innocuous?", ACM SIGNUM Newsletter 30 (1995), 21-26. For three
// inputs this does not hold: the sum of the first two would be rounded before the third is added.
//
// These instructions never take subnormals for zero.

struct Float16PairSum {
  explicit HWY_INLINE Float16PairSum(std::uint32_t) {}
  static HWY_INLINE Vec<std::uint16_t> combine(Vec<std::uint16_t> a, Vec<std::uint16_t> b) {
    return {_mm512_castph_si512(_mm512_add_ph(_mm512_castsi512_ph(a.raw), _mm512_castsi512_ph(b.raw)))};
  }
  static HWY_INLINE Vec<std::uint16_t> finish(Vec<std::uint16_t> v) { return v; }
};

struct Float16PairProduct {
  explicit HWY_INLINE Float16PairProduct(std::uint32_t) {}
  static HWY_INLINE Vec<std::uint16_t> combine(Vec<std::uint16_t> a, Vec<std::uint16_t> b) {
    return {_mm512_castph_si512(_mm512_mul_ph(_mm512_castsi512_ph(a.raw), _mm512_castsi512_ph(b.raw)))};
  }
  static HWY_INLINE Vec<std::uint16_t> finish(Vec<std::uint16_t> v) { return v; }
};
