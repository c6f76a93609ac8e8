// Moves elements from memory into accumulator lanes and back. Included once per target, inside its namespace.
//
// Memory is addressed in bytes: contributions lie where the network put them, at any alignment. The compiler does not
// know the size of an SVE vector, so such vectors cannot be array elements or members. So this file, and the files that
// use it, call them a, b, c and d.

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

inline constexpr std::size_t kLineBytes = 64;
// The distance of the prefetch in bytes. It is large enough that memory answers in time, and small enough that the data
// are in the same page and stay in the first-level cache. 512 to 4096 bytes were measured. Without prefetch a core
// waits for memory and converts by turns: on an Emerald Rapids, bfloat16 from 64 MiB inputs reaches 0.8 of the rate of
// reading and writing; with prefetch it reaches 0.93 to 1.0.
inline constexpr std::size_t kPrefetchBytes = 2048;

/// Prefetches the bytes that a later group of `bytes` bytes reads from the same array.
HWY_INLINE void prefetch_ahead(const std::uint8_t* from, std::size_t bytes) {
  for (std::size_t line = 0; line < bytes; line += kLineBytes) hwy::Prefetch(from + kPrefetchBytes + line);
}

/// The distance in bytes for kernels that compute long on each cache line, and so have few loads under way at a time.
/// It is larger, and the data go into the second cache, where more requests may wait. On an Emerald Rapids, float32
/// from memory to float8 runs at 14.5 GB/s with prefetch_ahead() and at 17.0 GB/s with this distance; reading and
/// writing alone reach 18.3 GB/s.
inline constexpr std::size_t kPrefetchFarBytes = 16384;
HWY_INLINE void prefetch_far_ahead(const std::uint8_t* from, std::size_t bytes) {
  constexpr int kToSecondCache = 2;
  for (std::size_t line = 0; line < bytes; line += kLineBytes)
    __builtin_prefetch(from + kPrefetchFarBytes + line, 0, kToSecondCache);
}

template <class To, class V>
HWY_INLINE Vec<To> as(V v) {
  return hn::BitCast(Tag<To>(), v);
}

template <class T>
HWY_INLINE Vec<T> set(T value) {
  return hn::Set(Tag<T>(), value);
}

// ---- Splitting lanes into wider ones, and back.

/// The order of the elements in the two vectors into which one vector is widened.
enum class Order {
  native,      // the cheapest order; it can be used where a later step undoes it
  sequential,  // the order in memory
};

/// Extends words by zeros. The native order is the order in which float16 is widened: halves, or even lanes and odd
/// lanes (see target-inl.h).
template <Order kOrder>
HWY_INLINE void split_words(Vec<std::uint16_t> words, Vec<std::uint32_t>& first, Vec<std::uint32_t>& second) {
  if constexpr (kOrder == Order::native && TRIBUTARY_F16 != TRIBUTARY_F16_HALVES) {
    first = hn::And(as<std::uint32_t>(words), set<std::uint32_t>(0xFFFF));
    second = hn::ShiftRight<16>(as<std::uint32_t>(words));
    return;
  }
#if HWY_HAVE_SCALABLE
  first = svunpklo_u32(words);
  second = svunpkhi_u32(words);
#else
  const hn::Half<Tag<std::uint16_t>> half;
  first = hn::PromoteTo(Tag<std::uint32_t>(), hn::LowerHalf(half, words));
  second = hn::PromoteTo(Tag<std::uint32_t>(), hn::UpperHalf(half, words));
#endif
}

/// Undoes split_words(). The upper 16 bits of every lane must be zero.
template <Order kOrder>
HWY_INLINE Vec<std::uint16_t> join_words(Vec<std::uint32_t> first, Vec<std::uint32_t> second) {
  if constexpr (kOrder == Order::native && TRIBUTARY_F16 != TRIBUTARY_F16_HALVES) {
    return as<std::uint16_t>(hn::Or(first, hn::ShiftLeft<16>(second)));
  } else {
#if HWY_HAVE_SCALABLE
    return svuzp1_u16(svreinterpret_u16_u32(first), svreinterpret_u16_u32(second));
#else
    const hn::Half<Tag<std::uint16_t>> half;
    return hn::Combine(Tag<std::uint16_t>(), hn::DemoteTo(half, as<std::int32_t>(second)),
                       hn::DemoteTo(half, as<std::int32_t>(first)));
#endif
  }
}

/// Puts every byte into the upper half of a 16-bit lane, over zeros. The native order is the even bytes, then the odd
/// bytes.
template <Order kOrder>
HWY_INLINE void split_bytes_to_upper(Vec<std::uint8_t> bytes, Vec<std::uint16_t>& first, Vec<std::uint16_t>& second) {
  if constexpr (kOrder == Order::native) {
    first = hn::ShiftLeft<8>(as<std::uint16_t>(bytes));
    second = hn::And(as<std::uint16_t>(bytes), set<std::uint16_t>(0xFF00));
    return;
  }
#if HWY_HAVE_SCALABLE
  first = hn::ShiftLeft<8>(svunpklo_u16(bytes));
  second = hn::ShiftLeft<8>(svunpkhi_u16(bytes));
#else
  const hn::Half<Tag<std::uint8_t>> half;
  first = hn::ShiftLeft<8>(hn::PromoteTo(Tag<std::uint16_t>(), hn::LowerHalf(half, bytes)));
  second = hn::ShiftLeft<8>(hn::PromoteTo(Tag<std::uint16_t>(), hn::UpperHalf(half, bytes)));
#endif
}

/// Joins the lower bytes of 16-bit lanes; their upper bytes must be zero.
template <Order kOrder>
HWY_INLINE Vec<std::uint8_t> join_bytes(Vec<std::uint16_t> first, Vec<std::uint16_t> second) {
  if constexpr (kOrder == Order::native) {
    return as<std::uint8_t>(hn::Or(first, hn::ShiftLeft<8>(second)));
  } else {
#if HWY_HAVE_SCALABLE
    return svuzp1_u8(svreinterpret_u8_u16(first), svreinterpret_u8_u16(second));
#else
    const hn::Half<Tag<std::uint8_t>> half;
    return hn::Combine(Tag<std::uint8_t>(), hn::DemoteTo(half, as<std::int16_t>(second)),
                       hn::DemoteTo(half, as<std::int16_t>(first)));
#endif
  }
}
