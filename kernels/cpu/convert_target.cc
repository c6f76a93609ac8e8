// convert, convert_accumulate and the counts of values for one target; compiled once per target, see
// target-inl.h.
#include "kernels/cpu/target-inl.h"
//
#include "kernels/cpu/kernel_table.h"
#include "tributary/kernels/convert.h"

HWY_BEFORE_NAMESPACE();
namespace tributary::kernels::TRIBUTARY_TARGET {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

#include "kernels/cpu/formats-inl.h"
//
#include "kernels/cpu/quantize-inl.h"

using Floats = Plain<float, 4>;

// ---- Counting. The counters are scalars, because an SVE vector cannot be a member. CountNothing compiles to no code.

struct CountNothing {
  explicit HWY_INLINE CountNothing(ConvertCounters*) {}
  HWY_INLINE void nans(Vec<float>) {}
  template <class Limit>
  HWY_INLINE void overflows_beyond(Vec<float>) {}
  HWY_INLINE void overflows_of_sum(Vec<float>, Vec<float>) {}
};

class Count {
 public:
  explicit HWY_INLINE Count(ConvertCounters* counters) : counters_(counters) {}

  HWY_INLINE void nans(Vec<float> value) { counters_->nans += hn::CountTrue(Tag<float>(), hn::IsNaN(value)); }

  /// Counts finite values whose magnitude is Limit::kFirstBeyond (the bits of a float32) or more.
  template <class Limit>
  HWY_INLINE void overflows_beyond(Vec<float> value) {
    const auto bits = magnitude(value);
    const auto beyond = hn::And(hn::Gt(bits, set<std::int32_t>(Limit::kFirstBeyond - 1)), hn::Lt(bits, set(kInfinity)));
    counters_->overflows += hn::CountTrue(Tag<std::int32_t>(), beyond);
  }

  /// Counts the sums that are infinite although the accumulator was finite.
  HWY_INLINE void overflows_of_sum(Vec<float> before, Vec<float> after) {
    const auto now = hn::And(hn::Lt(magnitude(before), set(kInfinity)), hn::Eq(magnitude(after), set(kInfinity)));
    counters_->overflows += hn::CountTrue(Tag<std::int32_t>(), now);
  }

 private:
  static constexpr std::int32_t kInfinity = 0x7F800000;
  static HWY_INLINE Vec<std::int32_t> magnitude(Vec<float> value) {
    return hn::And(as<std::int32_t>(value), set<std::int32_t>(0x7FFFFFFF));
  }
  ConvertCounters* counters_;
};

/// The smallest float32 that rounds beyond the largest finite value of a format: it lies half a step above that value,
/// or just above this half where a tie rounds down.
struct Float16Limit {
  static constexpr std::int32_t kFirstBeyond = 0x477FF000;  // 65520
};
struct BFloat16Limit {
  static constexpr std::int32_t kFirstBeyond = 0x7F7F8000;
};
struct E4M3Limit {
  static constexpr std::int32_t kFirstBeyond = 0x43E80001;  // the next float32 after 464, which rounds to 448
};
struct E5M2Limit {
  static constexpr std::int32_t kFirstBeyond = 0x47700000;  // 61440
};

// ---- One group of four float32 vectors, in the order of memory.

template <class Element, class Limit, Overflow kOverflow, class Counting>
struct Narrow {
  static constexpr std::size_t kInBytes = sizeof(float);
  static constexpr std::size_t kOutBytes = Element::kElementBytes;
  static constexpr bool kReadsOut = false;

  template <bool kStream>
  static HWY_INLINE void group(const std::uint8_t* in, std::uint8_t* out, Counting& counting) {
    Vec<float> a, b, c, d;
    Floats::load(in, a, b, c, d);
    see(a, counting);
    see(b, counting);
    see(c, counting);
    see(d, counting);
    Element::template store<kStream, kOverflow>(a, b, c, d, out);
  }

  static HWY_INLINE void see(Vec<float> value, Counting& counting) {
    counting.nans(value);
    counting.template overflows_beyond<Limit>(value);
  }
};

template <class Element, class Counting>
struct Widen {
  static constexpr std::size_t kInBytes = Element::kElementBytes;
  static constexpr std::size_t kOutBytes = sizeof(float);
  static constexpr bool kReadsOut = false;

  template <bool kStream>
  static HWY_INLINE void group(const std::uint8_t* in, std::uint8_t* out, Counting& counting) {
    Vec<float> a, b, c, d;
    Element::load(in, a, b, c, d);
    counting.nans(a);
    counting.nans(b);
    counting.nans(c);
    counting.nans(d);
    Floats::store<kStream>(a, b, c, d, out);
  }
};

template <class Element, class Counting>
struct Accumulate {
  static constexpr std::size_t kInBytes = Element::kElementBytes;
  static constexpr std::size_t kOutBytes = sizeof(float);
  static constexpr bool kReadsOut = true;

  template <bool kStream>
  static HWY_INLINE void group(const std::uint8_t* in, std::uint8_t* out, Counting& counting) {
    Vec<float> a, b, c, d, w, x, y, z;
    Element::load(in, a, b, c, d);
    Floats::load(out, w, x, y, z);
    Floats::store<kStream>(add(w, a, counting), add(x, b, counting), add(y, c, counting), add(z, d, counting), out);
  }

  static HWY_INLINE Vec<float> add(Vec<float> accumulator, Vec<float> value, Counting& counting) {
    counting.nans(value);
    const auto sum = hn::Add(accumulator, value);
    counting.overflows_of_sum(accumulator, sum);
    return sum;
  }
};

// ---- A whole call.

inline constexpr std::size_t kGroupBytesMax = 4 * HWY_MAX_BYTES;

/// Converts the elements [first, first + elements), fewer than a group, in scratch memory. The padding is zero, and
/// zeros are never counted.
template <class Kernel, class Counting>
HWY_NOINLINE void convert_partial(const ConvertArgs& args, std::size_t first, std::size_t elements,
                                  Counting& counting) {
  alignas(64) std::uint8_t in[kGroupBytesMax] = {};
  alignas(64) std::uint8_t out[kGroupBytesMax] = {};
  std::uint8_t* const to = static_cast<std::uint8_t*>(args.out) + first * Kernel::kOutBytes;
  std::memcpy(in, static_cast<const std::uint8_t*>(args.in) + first * Kernel::kInBytes, elements * Kernel::kInBytes);
  if constexpr (Kernel::kReadsOut) std::memcpy(out, to, elements * Kernel::kOutBytes);
  Kernel::template group<false>(in, out, counting);
  std::memcpy(to, out, elements * Kernel::kOutBytes);
}

template <class Kernel, bool kStream, bool kAhead, class Counting>
HWY_INLINE void convert_from(const ConvertArgs& args, std::size_t first, Counting& counting) {
  const auto* const in = static_cast<const std::uint8_t*>(args.in);
  auto* const out = static_cast<std::uint8_t*>(args.out);
  const std::size_t step = 4 * hn::Lanes(Tag<float>());
  std::size_t i = first;
  for (; args.count - i >= step; i += step) {
    if constexpr (kAhead) {
      if constexpr (Kernel::kOutBytes == 1) {
        prefetch_far_ahead(in + i * Kernel::kInBytes, step * Kernel::kInBytes);
      } else {
        prefetch_ahead(in + i * Kernel::kInBytes, step * Kernel::kInBytes);
      }
      if constexpr (Kernel::kReadsOut) prefetch_ahead(out + i * Kernel::kOutBytes, step * Kernel::kOutBytes);
    }
    Kernel::template group<kStream>(in + i * Kernel::kInBytes, out + i * Kernel::kOutBytes, counting);
  }
  if (i < args.count) convert_partial<Kernel>(args, i, args.count - i, counting);
}

template <class Kernel, class Counting>
void run(const ConvertArgs& args) noexcept {
  Counting counting(args.counters);
  const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(args.out) % vector_bytes();
  const std::size_t head_bytes = misaligned == 0 ? 0 : vector_bytes() - misaligned;
  const std::size_t head = head_bytes / Kernel::kOutBytes;
  if (!args.stream || Kernel::kReadsOut || head_bytes % Kernel::kOutBytes != 0 || head > args.count) {
    if (args.ahead) return convert_from<Kernel, false, true>(args, 0, counting);
    return convert_from<Kernel, false, false>(args, 0, counting);
  }
  if (head > 0) convert_partial<Kernel>(args, 0, head, counting);
  convert_from<Kernel, true, true>(args, head, counting);
  hwy::FlushStream();  // so that other cores may read the result
}

template <class Element, class Limit, Overflow kOverflow, class Counting>
inline constexpr ConvertFunction narrow = run<Narrow<Element, Limit, kOverflow, Counting>, Counting>;

template <class Element, class Limit>
inline constexpr SmallFormatKernels small_format = {
    .narrow = {{narrow<Element, Limit, Overflow::to_infinity, CountNothing>,
                narrow<Element, Limit, Overflow::to_infinity, Count>},
               {narrow<Element, Limit, Overflow::saturate, CountNothing>,
                narrow<Element, Limit, Overflow::saturate, Count>}},
    .widen = {run<Widen<Element, CountNothing>, CountNothing>, run<Widen<Element, Count>, Count>},
    .accumulate = {run<Accumulate<Element, CountNothing>, CountNothing>, run<Accumulate<Element, Count>, Count>},
};

// ---- Counting NaN, infinities and subnormal numbers, by their bits: T is the signed integer of the float's width,
// kLargest has the bits of +infinity, or of the largest value if the format has no infinity; kNormal those of the
// smallest normal number.

template <class T>
HWY_INLINE std::uint64_t sum_of_lanes(Vec<T> counts) {
  alignas(64) T lanes[HWY_MAX_BYTES / sizeof(T)];
  hn::StoreU(counts, Tag<T>(), lanes);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < hn::Lanes(Tag<T>()); ++i) sum += static_cast<std::uint64_t>(lanes[i]);
  return sum;
}

template <class T, T kLargest, T kNormal, bool kInfinity>
void count_values(const void* data, std::size_t count, ValueCounts& found) noexcept {
  const Tag<T> lanes;
  const std::size_t step = hn::Lanes(lanes);
  constexpr std::size_t kVectorsMax = std::min<std::uint64_t>(hwy::LimitsMax<T>(), 1024);
  const auto* from = static_cast<const std::uint8_t*>(data);
  const auto count_vectors = [&](const std::uint8_t* at, std::size_t vectors) HWY_ATTR {
    // Counts of each lane: a comparison that holds is -1. A lane of bytes counts to 127.
    auto nans = set<T>(0), infinities = nans, small = nans, zeros = nans;
    for (; vectors > 0; --vectors, at += step * sizeof(T)) {
      const auto magnitude = hn::And(load_vector<T>(at), set<T>(hwy::LimitsMax<T>()));
      nans = hn::Sub(nans, hn::VecFromMask(lanes, hn::Gt(magnitude, set<T>(kLargest))));
      if constexpr (kInfinity)
        infinities = hn::Sub(infinities, hn::VecFromMask(lanes, hn::Eq(magnitude, set<T>(kLargest))));
      small = hn::Sub(small, hn::VecFromMask(lanes, hn::Lt(magnitude, set<T>(kNormal))));
      zeros = hn::Sub(zeros, hn::VecFromMask(lanes, hn::Eq(magnitude, set<T>(0))));
    }
    found.nans += sum_of_lanes<T>(nans);
    found.infinities += sum_of_lanes<T>(infinities);
    found.subnormals += sum_of_lanes<T>(small) - sum_of_lanes<T>(zeros);
  };
  for (std::size_t vectors = count / step; vectors > 0;) {
    const std::size_t now = std::min(vectors, kVectorsMax);
    count_vectors(from, now);
    from += now * step * sizeof(T);
    vectors -= now;
  }
  const std::size_t left = count % step;
  if (left == 0) return;
  alignas(64) std::uint8_t rest[HWY_MAX_BYTES] = {};  // zeros do not count
  std::memcpy(rest, from, left * sizeof(T));
  count_vectors(rest, 1);
}

}  // namespace

extern const ConvertTable kConvertTable;

const ConvertTable kConvertTable = {
    .small = {small_format<Float16<Order::sequential>, Float16Limit>,
              small_format<BFloat16<Order::sequential>, BFloat16Limit>,
              small_format<Float8<E4M3, Order::sequential>, E4M3Limit>,
              small_format<Float8<E5M2, Order::sequential>, E5M2Limit>},
    .quantize = quantize,
    .dequantize = dequantize,
    .dequantize_accumulate = dequantize_accumulate,
    // The table's entries are in the order of DType.
    .count_values = {nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                     count_values<std::int16_t, 0x7C00, 0x0400, true>, count_values<std::int16_t, 0x7F80, 0x0080, true>,
                     count_values<std::int32_t, 0x7F800000, 0x00800000, true>,
                     count_values<std::int64_t, 0x7FF0000000000000, 0x0010000000000000, true>,
                     count_values<std::int8_t, 0x7E, 0x08, false>, count_values<std::int8_t, 0x7C, 0x04, true>},
};

}  // namespace tributary::kernels::TRIBUTARY_TARGET
HWY_AFTER_NAMESPACE();
