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

inline constexpr std::size_t kLineBytes = 64;
// Far enough that memory has answered, near enough that a page and the first-level cache still hold it: 512 to 4096
// bytes were measured. Without it a core waits for memory and converts in turn: on an Emerald Rapids, bfloat16 from 64
// MiB inputs runs at 0.8 of the rate of reading and writing, with it at 0.93 to 1.0.
inline constexpr std::size_t kPrefetchBytes = 2048;

/// Asks for what a later group of `bytes` reads of the same array.
HWY_INLINE void prefetch_ahead(const std::uint8_t* from, std::size_t bytes) {
  for (std::size_t line = 0; line < bytes; line += kLineBytes) hwy::Prefetch(from + kPrefetchBytes + line);
}

/// The same for what computes long on each line, so that few of its loads are under way at a time: farther on, and into
/// the second cache, where more requests may wait. On an Emerald Rapids, float32 from memory to float8: 14.5 GB/s by
/// the other, 17.0 by this; reading and writing as much takes 18.3.
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

/// The order of elements across the two vectors that one is widened to.
enum class Order {
  native,      // what is cheapest: enough where the way back undoes it
  sequential,  // as in memory
};

/// Zero-extends. The native order is that in which float16 is widened: halves, or even lanes and odd lanes (see
/// target-inl.h).
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

/// The way back. The upper 16 bits of every lane must be zero.
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

/// Every byte in the upper half of a 16-bit lane, over zeros. The native order is the even bytes and the odd ones.
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

/// The lower bytes of 16-bit lanes, whose upper ones must be zero.
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
