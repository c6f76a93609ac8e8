// The dtypes for reduce(): for each a wire form, an accumulator lane, and a load and a store between them.
// Included once per target.
//
// Elements move in groups of four accumulator vectors. These come from four wire vectors if an element is as wide as
// its accumulator, from two for a 16-bit float, and from one for an 8-bit float. Within a group, each target may use
// its cheapest order, because store() undoes the order of load().

/// An element whose accumulator has the same type. kVectors: 4, or 2 where smaller groups are faster.
template <class T, int kVectors>
struct Plain {
  using Lane = T;
  static constexpr std::size_t kElementBytes = sizeof(T);
  static constexpr std::size_t kGroupVectors = kVectors;

  static HWY_INLINE void load(const std::uint8_t* from, Vec<T>& a, Vec<T>& b, Vec<T>& c, Vec<T>& d) {
    const std::size_t step = vector_bytes();
    a = load_vector<T>(from);
    b = load_vector<T>(from + step);
    if constexpr (kVectors == 4) {
      c = load_vector<T>(from + 2 * step);
      d = load_vector<T>(from + 3 * step);
    } else {
      c = d = b;  // these values are not used: no code stores them
    }
  }

  template <bool kStream>
  static HWY_INLINE void store(Vec<T> a, Vec<T> b, Vec<T> c, Vec<T> d, std::uint8_t* to) {
    const std::size_t step = vector_bytes();
    store_vector<T, kStream>(a, to);
    store_vector<T, kStream>(b, to + step);
    if constexpr (kVectors == 4) {
      store_vector<T, kStream>(c, to + 2 * step);
      store_vector<T, kStream>(d, to + 3 * step);
    }
  }
};

/// A float as a signed integer in the order that min (or max) needs: T has the float's width, kLargest is the bit
/// pattern of +infinity, or of the largest value if the format has no infinity.
///
/// Flipping the magnitude of negative numbers gives integers in the order -NaN, -inf, ..., -0, +0, ..., +inf, +NaN.
/// Because the integers wrap, both kinds of NaN are neighbours. For min, an offset puts the wrap before +NaN, so that
/// every NaN is below every number; for max, it puts the wrap after -NaN. One integer minimum then gives the whole IEEE
/// 754-2019 minimum, with the same bits on every target.
template <class T, T kLargest, T kQuiet, bool kMin, int kVectors>
struct Ordered {
  using Lane = T;
  using Bits = Plain<T, kVectors>;
  using U = std::make_unsigned_t<T>;
  static constexpr std::size_t kElementBytes = sizeof(T);
  static constexpr std::size_t kGroupVectors = kVectors;
  static constexpr T kMagnitude = hwy::LimitsMax<T>();
  static constexpr U kCut = static_cast<U>(kMagnitude) + 1;  // the smallest T
  static constexpr T kOffset = static_cast<T>(kMin ? static_cast<U>(kCut - static_cast<U>(kLargest) - 1)
                                                   : static_cast<U>(kCut + static_cast<U>(kLargest) + 1));

  /// Returns v ^ (v's sign in every bit & kMagnitude).
  static HWY_INLINE Vec<T> flip(Vec<T> v) {
#if HWY_TARGET == HWY_AVX3
    constexpr int kFirstXorSecondAndThird = 0x78;
    return Vec<T>{
        _mm512_ternarylogic_epi64(v.raw, hn::BroadcastSignBit(v).raw, set<T>(kMagnitude).raw, kFirstXorSecondAndThird)};
#else
    return hn::Xor(v, hn::And(hn::BroadcastSignBit(v), set<T>(kMagnitude)));
#endif
  }
  // Unsigned additions and subtractions: on NEON a signed addition is an operation of the compiler, which may assume
  // that it never overflows, and may then compare without the offset.
  static HWY_INLINE Vec<T> key(Vec<T> bits) { return as<T>(hn::Add(as<U>(flip(bits)), as<U>(set<T>(kOffset)))); }
  static HWY_INLINE Vec<T> unkey(Vec<T> v) {
    const auto bits = flip(as<T>(hn::Sub(as<U>(v), as<U>(set<T>(kOffset)))));
    const auto nan = hn::Gt(hn::And(bits, set<T>(kMagnitude)), set<T>(kLargest));
    return hn::Or(bits, hn::IfThenElseZero(nan, set<T>(kQuiet)));
  }

  static HWY_INLINE void load(const std::uint8_t* from, Vec<T>& a, Vec<T>& b, Vec<T>& c, Vec<T>& d) {
    Bits::load(from, a, b, c, d);
    a = key(a);
    b = key(b);
    c = key(c);
    d = key(d);
  }

  template <bool kStream>
  static HWY_INLINE void store(Vec<T> a, Vec<T> b, Vec<T> c, Vec<T> d, std::uint8_t* to) {
    Bits::template store<kStream>(unkey(a), unkey(b), unkey(c), unkey(d), to);
  }
};

/// An element of float32 or float64 for min and max by float instructions (see Least and Greatest). MINPS may return a
/// signalling NaN; the store makes it quiet. T is the signed integer of F's width; kInfinity and kQuiet are bit
/// patterns of F.
template <class F, class T, T kInfinity, T kQuiet, int kVectors>
struct Quieted : Plain<F, kVectors> {
  static HWY_INLINE Vec<F> quieted(Vec<F> v) {
    const auto nan = hn::Gt(hn::And(as<T>(v), set<T>(hwy::LimitsMax<T>())), set<T>(kInfinity));
    return as<F>(hn::Or(as<T>(v), hn::IfThenElseZero(nan, set<T>(kQuiet))));
  }
  template <bool kStream>
  static HWY_INLINE void store(Vec<F> a, Vec<F> b, Vec<F> c, Vec<F> d, std::uint8_t* to) {
    Plain<F, kVectors>::template store<kStream>(quieted(a), quieted(b), quieted(c), quieted(d), to);
  }
};

/// The small floats: a group of four float32 vectors comes from two wire vectors of 16-bit elements, or from one vector
/// of bytes. kOrder: see lanes-inl.h.
template <Order kOrder>
struct Float16 {
  using Lane = float;
  static constexpr std::size_t kElementBytes = 2;
  static constexpr std::size_t kGroupVectors = 2;

  static HWY_INLINE void load(const std::uint8_t* from, Vec<float>& a, Vec<float>& b, Vec<float>& c, Vec<float>& d) {
    load_float16<kOrder>(from, a, b, c, d);
  }

  template <bool kStream, Overflow kOverflow = Overflow::to_infinity>
  static HWY_INLINE void store(Vec<float> a, Vec<float> b, Vec<float> c, Vec<float> d, std::uint8_t* to) {
    store_float16<kOverflow, kOrder, kStream>(a, b, c, d, to);
  }
};

template <Order kOrder>
struct BFloat16 {
  using Lane = float;
  static constexpr std::size_t kElementBytes = 2;
  static constexpr std::size_t kGroupVectors = 2;

  static HWY_INLINE void load(const std::uint8_t* from, Vec<float>& a, Vec<float>& b, Vec<float>& c, Vec<float>& d) {
    load_bfloat16<kOrder>(from, a, b, c, d);
  }

  template <bool kStream, Overflow kOverflow = Overflow::to_infinity>
  static HWY_INLINE void store(Vec<float> a, Vec<float> b, Vec<float> c, Vec<float> d, std::uint8_t* to) {
    Vec<std::uint16_t> first, second;
    narrow_bfloat16<kOverflow, kOrder>(a, b, c, d, first, second);
    store_vector<std::uint16_t, kStream>(first, to);
    store_vector<std::uint16_t, kStream>(second, to + vector_bytes());
  }
};

template <class Format, Order kOrder>
struct Float8 {
  using Lane = float;
  static constexpr std::size_t kElementBytes = 1;
  static constexpr std::size_t kGroupVectors = 1;

  static HWY_INLINE void load(const std::uint8_t* from, Vec<float>& a, Vec<float>& b, Vec<float>& c, Vec<float>& d) {
    widen_float8<Format, kOrder>(load_vector<std::uint8_t>(from), a, b, c, d);
  }

  template <bool kStream, Overflow kOverflow = Overflow::to_infinity>
  static HWY_INLINE void store(Vec<float> a, Vec<float> b, Vec<float> c, Vec<float> d, std::uint8_t* to) {
    store_vector<std::uint8_t, kStream>(narrow_float8<Format, kOverflow, kOrder>(a, b, c, d), to);
  }
};
