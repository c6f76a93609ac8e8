// reduce() for one target; compiled once per target, see target-inl.h.
#include <limits>
#include <type_traits>

#include "kernels/cpu/target-inl.h"
//
#include "kernels/cpu/kernel_table.h"
#include "tributary/kernels/convert.h"
#include "tributary/kernels/reduce.h"

HWY_BEFORE_NAMESPACE();
namespace tributary::kernels::TRIBUTARY_TARGET {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

#include "kernels/cpu/formats-inl.h"
//
#include "kernels/cpu/arithmetic-inl.h"
#if TRIBUTARY_FP16_INSTRUCTIONS
#include "kernels/cpu/float16_pairs-inl.h"
#endif

// ---- Operations on accumulator lanes: combine() joins two values; finish() changes the last value before it is
// rounded.

template <class T>
struct Sum {
  explicit HWY_INLINE Sum(std::uint32_t) {}
  static HWY_INLINE Vec<T> combine(Vec<T> a, Vec<T> b) { return hn::Add(a, b); }
  static HWY_INLINE Vec<T> finish(Vec<T> v) { return v; }
};

template <class T>
struct Average {
  explicit HWY_INLINE Average(std::uint32_t divisor) : divide(divisor) {}
  static HWY_INLINE Vec<T> combine(Vec<T> a, Vec<T> b) { return hn::Add(a, b); }
  HWY_INLINE Vec<T> finish(Vec<T> v) const { return divide(v); }
  Divider<T> divide;
};

/// A weighted sum, for a step of an average. Every target rounds each product before the addition.
template <class T>
struct Weighted {
  static constexpr bool kWeighs = true;
  explicit HWY_INLINE Weighted(const ReduceArgs& args)
      : quotient(static_cast<T>(args.quotient)), largest(static_cast<T>(args.largest)) {
    for (std::size_t i = 0; i < args.inputs_count; ++i) weights[i] = static_cast<T>(args.weights[i]);
  }
  static HWY_INLINE Vec<T> combine(Vec<T> a, Vec<T> b) { return hn::Add(a, b); }
  HWY_INLINE Vec<T> weigh(Vec<T> v, std::size_t input) const { return hn::Mul(v, set<T>(weights[input])); }
  HWY_INLINE Vec<T> finish(Vec<T> v) const {
    const auto divided = hn::Div(v, set<T>(quotient));
    const auto bounded = hn::Min(hn::Max(divided, set<T>(-largest)), set<T>(largest));
    return hn::IfThenElse(hn::IsFinite(v), bounded, divided);
  }
  T weights[kReduceInputsMax];
  T quotient;
  T largest;
};
template <class Op>
concept Weighs = Op::kWeighs;

template <class T>
struct Product {
  // A vector product of integers takes ten to fifteen cycles; the order of the products does not change its bits.
  static constexpr bool kInPairs = std::is_integral_v<T> && sizeof(T) >= 4;
  explicit HWY_INLINE Product(std::uint32_t) {}
  static HWY_INLINE Vec<T> combine(Vec<T> a, Vec<T> b) { return multiply<T>(a, b); }
  static HWY_INLINE Vec<T> finish(Vec<T> v) { return v; }
};

template <class T>
struct Minimum {
  explicit HWY_INLINE Minimum(std::uint32_t) {}
  static HWY_INLINE Vec<T> combine(Vec<T> a, Vec<T> b) { return hn::Min(a, b); }
  static HWY_INLINE Vec<T> finish(Vec<T> v) { return v; }
};

template <class T>
struct Maximum {
  explicit HWY_INLINE Maximum(std::uint32_t) {}
  static HWY_INLINE Vec<T> combine(Vec<T> a, Vec<T> b) { return hn::Max(a, b); }
  static HWY_INLINE Vec<T> finish(Vec<T> v) { return v; }
};

template <class T>
struct BitwiseAnd {
  explicit HWY_INLINE BitwiseAnd(std::uint32_t) {}
  static HWY_INLINE Vec<T> combine(Vec<T> a, Vec<T> b) { return hn::And(a, b); }
  static HWY_INLINE Vec<T> finish(Vec<T> v) { return v; }
};

template <class T>
struct BitwiseOr {
  explicit HWY_INLINE BitwiseOr(std::uint32_t) {}
  static HWY_INLINE Vec<T> combine(Vec<T> a, Vec<T> b) { return hn::Or(a, b); }
  static HWY_INLINE Vec<T> finish(Vec<T> v) { return v; }
};

template <class T>
struct BitwiseXor {
  explicit HWY_INLINE BitwiseXor(std::uint32_t) {}
  static HWY_INLINE Vec<T> combine(Vec<T> a, Vec<T> b) { return hn::Xor(a, b); }
  static HWY_INLINE Vec<T> finish(Vec<T> v) { return v; }
};

/// The operators on truth values; the last step makes 1 of every value other than 0.
template <class T>
struct Logical {
  static constexpr bool kLogical = true;
  static HWY_INLINE Vec<T> finish(Vec<T> v) { return hn::IfThenZeroElse(hn::Eq(v, hn::Zero(Tag<T>())), set<T>(1)); }
};
template <class Op>
concept IsLogical = Op::kLogical;

template <class T>
struct LogicalAnd : Logical<T> {
  explicit HWY_INLINE LogicalAnd(std::uint32_t) {}
  static HWY_INLINE Vec<T> combine(Vec<T> a, Vec<T> b) { return hn::IfThenZeroElse(hn::Eq(a, hn::Zero(Tag<T>())), b); }
};

template <class T>
struct LogicalOr : Logical<T> {
  explicit HWY_INLINE LogicalOr(std::uint32_t) {}
  static HWY_INLINE Vec<T> combine(Vec<T> a, Vec<T> b) { return hn::Or(a, b); }
};

template <class T>
struct LogicalXor : Logical<T> {
  explicit HWY_INLINE LogicalXor(std::uint32_t) {}
  static HWY_INLINE Vec<T> combine(Vec<T> a, Vec<T> b) { return hn::Xor(Logical<T>::finish(a), Logical<T>::finish(b)); }
};

#if HWY_TARGET == HWY_AVX3
// VRANGEPS orders the zeros, but from a number and a NaN it returns the number. So a separate comparison finds the NaNs
// of two inputs at once, and they are put in at the end. If every step put NaNs in, it would wait for two instructions
// instead of one.
template <class T>
using NanLanes = std::conditional_t<sizeof(T) == 4, __mmask16, __mmask8>;
HWY_INLINE __mmask16 nan_in_either(Vec<float> a, Vec<float> b) {
  return _mm512_cmp_ps_mask(a.raw, b.raw, _CMP_UNORD_Q);
}
HWY_INLINE __mmask8 nan_in_either(Vec<double> a, Vec<double> b) {
  return _mm512_cmp_pd_mask(a.raw, b.raw, _CMP_UNORD_Q);
}
HWY_INLINE Vec<float> with_nans(Vec<float> v, __mmask16 lanes) {
  return {_mm512_mask_mov_ps(v.raw, lanes, _mm512_set1_ps(std::numeric_limits<float>::quiet_NaN()))};
}
HWY_INLINE Vec<double> with_nans(Vec<double> v, __mmask8 lanes) {
  return {_mm512_mask_mov_pd(v.raw, lanes, _mm512_set1_pd(std::numeric_limits<double>::quiet_NaN()))};
}
inline constexpr int kSmaller = 0x4;
inline constexpr int kLarger = 0x5;

template <class T, int kWhich>
struct RangeOp {
  static constexpr bool kNansApart = true;
  explicit HWY_INLINE RangeOp(std::uint32_t) {}
  static HWY_INLINE Vec<T> combine(Vec<T> a, Vec<T> b) {
    if constexpr (sizeof(T) == 4) {
      return {_mm512_range_ps(a.raw, b.raw, kWhich)};
    } else {
      return {_mm512_range_pd(a.raw, b.raw, kWhich)};
    }
  }
};
template <class T>
struct Least : RangeOp<T, kSmaller> {
  explicit HWY_INLINE Least(std::uint32_t divisor) : RangeOp<T, kSmaller>(divisor) {}
};
template <class T>
struct Greatest : RangeOp<T, kLarger> {
  explicit HWY_INLINE Greatest(std::uint32_t divisor) : RangeOp<T, kLarger>(divisor) {}
};
#elif HWY_ARCH_X86
// Before AVX-512 x86 has no minimum that propagates NaN and orders the zeros: MINPS returns its second operand where
// either is NaN or both are zero. Only in these cases do swapped operands change the result, and there the bitwise or
// of the two results is right: it is -0 if either operand is -0, and a NaN if either is NaN, because a NaN's exponent
// is all ones and a bit of its fraction stays.
template <class T>
struct Least : Minimum<T> {
  explicit HWY_INLINE Least(std::uint32_t divisor) : Minimum<T>(divisor) {}
  static HWY_INLINE Vec<T> combine(Vec<T> a, Vec<T> b) { return hn::Or(hn::Min(a, b), hn::Min(b, a)); }
};

// The greater of two zeros is +0. So the sign is the bitwise and of the two results' signs, and the other bits are the
// bitwise or.
template <class T>
struct Greatest : Maximum<T> {
  explicit HWY_INLINE Greatest(std::uint32_t divisor) : Maximum<T>(divisor) {}
  static HWY_INLINE Vec<T> combine(Vec<T> a, Vec<T> b) {
    const auto one = hn::Max(a, b);
    const auto other = hn::Max(b, a);
    const auto sign = hn::SignBit(Tag<T>());
    return hn::Or(hn::And(one, other), hn::AndNot(sign, hn::Or(one, other)));
  }
};
#endif

// ---- One group.

template <class Element>
HWY_INLINE std::size_t group_bytes() {
  return Element::kGroupVectors * vector_bytes();
}
inline constexpr std::size_t kGroupBytesMax = 4 * HWY_MAX_BYTES;

template <class Op>
concept NansApart = Op::kNansApart;

/// Combines the groups to which locate(0) to locate(inputs_count - 1) point, in this order, and stores the result.
/// `out` may be one of them: the function reads all groups before it stores.
template <class Element, bool kStream, class Op, class Locate>
HWY_INLINE void reduce_group(std::size_t inputs_count, const Op& op, Locate locate, std::uint8_t* out) {
  using V = Vec<typename Element::Lane>;
  const auto weigh = [&](std::size_t input, V& p, V& q, V& r, V& s) HWY_ATTR {
    if constexpr (Weighs<Op>) {
      p = op.weigh(p, input);
      q = op.weigh(q, input);
      r = op.weigh(r, input);
      s = op.weigh(s, input);
    }
  };
  V a, b, c, d;
  Element::load(locate(0), a, b, c, d);
  weigh(0, a, b, c, d);
  for (std::size_t input = 1; input < inputs_count; ++input) {
    V x, y, z, w;
    Element::load(locate(input), x, y, z, w);
    weigh(input, x, y, z, w);
    a = Op::combine(a, x);
    b = Op::combine(b, y);
    c = Op::combine(c, z);
    d = Op::combine(d, w);
  }
  Element::template store<kStream>(op.finish(a), op.finish(b), op.finish(c), op.finish(d), out);
}

template <class Op>
concept InPairs = Op::kInPairs;

/// Combines the inputs kFirst to kFirst + kCount - 1 in pairs, and the pairs in pairs again; kCount is a power of two.
/// In a chain of seven products the waits would be longer than the core can look ahead. (The build tells the compiler
/// to keep this order.)
template <class Element, class Op, std::size_t kFirst, std::size_t kCount, class Locate, class V>
HWY_INLINE void combine_in_pairs(Locate locate, V& a, V& b, V& c, V& d) {
  if constexpr (kCount == 1) {
    Element::load(locate(kFirst), a, b, c, d);
  } else {
    V x, y, z, w;
    combine_in_pairs<Element, Op, kFirst, kCount / 2>(locate, a, b, c, d);
    combine_in_pairs<Element, Op, kFirst + kCount / 2, kCount / 2>(locate, x, y, z, w);
    a = Op::combine(a, x);
    b = Op::combine(b, y);
    c = Op::combine(c, z);
    d = Op::combine(d, w);
  }
}

#if HWY_TARGET == HWY_AVX3
template <class Element, bool kStream, NansApart Op, class Locate>
HWY_INLINE void reduce_group(std::size_t inputs_count, const Op&, Locate locate, std::uint8_t* out) {
  using T = typename Element::Lane;
  Vec<T> a, b, c, d, x, y, z, w;
  Element::load(locate(0), a, b, c, d);
  // Inputs are compared in pairs; if their number is odd, the first input is compared with itself.
  const bool odd = inputs_count % 2 != 0;
  NanLanes<T> in_a = 0, in_b = 0, in_c = 0, in_d = 0;
  const auto mark = [&](Vec<T> p, Vec<T> q, Vec<T> r, Vec<T> s) HWY_ATTR {
    in_a |= nan_in_either(p, x);
    in_b |= nan_in_either(q, y);
    in_c |= nan_in_either(r, z);
    in_d |= nan_in_either(s, w);
  };
  const auto combine = [&]() HWY_ATTR {
    a = Op::combine(a, x);
    b = Op::combine(b, y);
    c = Op::combine(c, z);
    d = Op::combine(d, w);
  };
  std::size_t input = 1;
  if (odd) {
    x = a, y = b, z = c, w = d;
  } else {
    Element::load(locate(input++), x, y, z, w);
  }
  mark(a, b, c, d);
  combine();
  while (input < inputs_count) {
    Element::load(locate(input++), x, y, z, w);
    combine();
    const Vec<T> p = x, q = y, r = z, s = w;
    Element::load(locate(input++), x, y, z, w);
    mark(p, q, r, s);
    combine();
  }
  Element::template store<kStream>(with_nans(a, in_a), with_nans(b, in_b), with_nans(c, in_c), with_nans(d, in_d), out);
}
#endif

// ---- A whole call.

struct Range {
  std::size_t begin;  // offset in bytes in every array
  std::size_t end;
};

/// Reduces a part of a group in scratch memory, with the arithmetic of a whole group, so that it gives the same bits.
template <class Element, class Op>
HWY_NOINLINE void reduce_partial(const ReduceArgs& args, const Op& op, Range range) {
  alignas(64) std::uint8_t scratch[kGroupBytesMax] = {};
  alignas(64) std::uint8_t result[kGroupBytesMax];
  const std::size_t bytes = range.end - range.begin;
  const auto copied = [&](std::size_t input) HWY_ATTR -> const std::uint8_t* {
    std::memcpy(scratch, static_cast<const std::uint8_t*>(args.inputs[input]) + range.begin, bytes);
    return scratch;
  };
  reduce_group<Element, false>(args.inputs_count, op, copied, result);
  std::memcpy(static_cast<std::uint8_t*>(args.out) + range.begin, result, bytes);
}

/// The way of a call through its arrays.
enum class Walk {
  cached,    // the arrays are in the first two caches
  ahead,     // the arrays are beyond these caches: each group prefetches for a later group
  streamed,  // like `ahead`, and the result goes past the caches
};

/// Reduces whole groups, then a partial one. kInputs: the number of inputs, so that the compiler keeps their addresses
/// in registers; 0: any number.
template <class Element, Walk kWalk, std::size_t kInputs, class Op>
HWY_INLINE void reduce_range(const ReduceArgs& args, const Op& op, Range range) {
  const std::size_t inputs_count = kInputs != 0 ? kInputs : args.inputs_count;
  const std::uint8_t* fixed[kInputs != 0 ? kInputs : 1];
  if constexpr (kInputs != 0)
    std::memcpy(static_cast<void*>(fixed), static_cast<const void*>(args.inputs), sizeof(fixed));
  const void* const* const inputs = args.inputs;
  std::uint8_t* const out = static_cast<std::uint8_t*>(args.out);
  const std::size_t step = group_bytes<Element>();

  std::size_t offset = range.begin;
  for (; range.end - offset >= step; offset += step) {
    const auto in_place = [&](std::size_t input) HWY_ATTR {
      if constexpr (kInputs != 0) {
        return fixed[input] + offset;
      } else {
        const std::uint8_t* from = static_cast<const std::uint8_t*>(inputs[input]) + offset;
        if constexpr (kWalk != Walk::cached) prefetch_ahead(from, step);
        return from;
      }
    };
    if constexpr (InPairs<Op> && kInputs * sizeof(typename Element::Lane) >= 32) {
      Vec<typename Element::Lane> a, b, c, d;
      combine_in_pairs<Element, Op, 0, kInputs>(in_place, a, b, c, d);
      Element::template store<false>(a, b, c, d, out + offset);
    } else {
      reduce_group<Element, kWalk == Walk::streamed>(inputs_count, op, in_place, out + offset);
    }
  }
  if (offset < range.end) reduce_partial<Element>(args, op, {offset, range.end});
}

/// Streaming stores go past the caches in whole aligned vectors; ordinary stores write the bytes before the first such
/// vector.
template <class Element, class Op>
HWY_INLINE void reduce_streamed(const ReduceArgs& args, const Op& op, std::size_t bytes) {
  const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(args.out) % vector_bytes();
  const std::size_t head = misaligned == 0 ? 0 : vector_bytes() - misaligned;
  if (head > bytes || head % Element::kElementBytes != 0)
    return reduce_range<Element, Walk::ahead, 0>(args, op, {0, bytes});
  if (head > 0) reduce_partial<Element>(args, op, {0, head});
  reduce_range<Element, Walk::streamed, 0>(args, op, {head, bytes});
  hwy::FlushStream();  // so that other cores may read the result
}

template <class Op>
HWY_INLINE Op operation_of(const ReduceArgs& args) {
  if constexpr (Weighs<Op>) {
    return Op(args);
  } else {
    return Op(args.divisor);
  }
}

template <class Element, class Streamed, template <class> class Op>
void run(const ReduceArgs& args) noexcept {
  const auto op = operation_of<Op<typename Element::Lane>>(args);
  const std::size_t bytes = args.count * Element::kElementBytes;
  if (args.stream) return reduce_streamed<Streamed>(args, op, bytes);
  if (args.ahead) return reduce_range<Element, Walk::ahead, 0>(args, op, {0, bytes});
  // True for operations that get code for fixed numbers of inputs: sums, which are nearly all calls, and operations
  // with little work for each element. Other operations would not become faster.
  constexpr bool kWidens = sizeof(typename Element::Lane) != Element::kElementBytes;
  constexpr bool kSums = std::is_same_v<Op<float>, Sum<float>>;
  constexpr bool kDivides = std::is_same_v<Op<float>, Average<float>> || Weighs<Op<float>>;
  if constexpr (kSums || (!kWidens && !kDivides && !IsLogical<Op<float>>)) {
    switch (args.inputs_count) {
      case 2:
        return reduce_range<Element, Walk::cached, 2>(args, op, {0, bytes});
      case 3:
        return reduce_range<Element, Walk::cached, 3>(args, op, {0, bytes});
      case 4:
        return reduce_range<Element, Walk::cached, 4>(args, op, {0, bytes});
      case 8:
        return reduce_range<Element, Walk::cached, 8>(args, op, {0, bytes});
      default:
        break;
    }
  }
  reduce_range<Element, Walk::cached, 0>(args, op, {0, bytes});
}

// ---- The table.

// Beyond the caches smaller groups are faster: on a Zen 4, a sum of two float32 inputs reads 31 GB/s with 128 bytes of
// each input at a time, and 27 GB/s with 256 bytes.
inline constexpr int kStreamVectors = HWY_MAX_BYTES == 64 ? 2 : 4;

template <class T, template <class> class Op>
inline constexpr ReduceFunction plain = run<Plain<T, 4>, Plain<T, kStreamVectors>, Op>;

template <class T, T kLargest, T kQuiet>
inline constexpr ReduceFunction least =
    run<Ordered<T, kLargest, kQuiet, true, 4>, Ordered<T, kLargest, kQuiet, true, kStreamVectors>, Minimum>;

template <class T, T kLargest, T kQuiet>
inline constexpr ReduceFunction greatest =
    run<Ordered<T, kLargest, kQuiet, false, 4>, Ordered<T, kLargest, kQuiet, false, kStreamVectors>, Maximum>;

/// min and max of float32 and float64: on x86 by float instructions, which take three operations instead of four for
/// integers.
#if HWY_TARGET == HWY_AVX3
template <class F, class T, T kInfinity, T kQuiet>
inline constexpr ReduceFunction least_float = plain<F, Least>;
template <class F, class T, T kInfinity, T kQuiet>
inline constexpr ReduceFunction greatest_float = plain<F, Greatest>;
#elif HWY_ARCH_X86
template <class F, class T, T kInfinity, T kQuiet>
inline constexpr ReduceFunction least_float =
    run<Quieted<F, T, kInfinity, kQuiet, 4>, Quieted<F, T, kInfinity, kQuiet, kStreamVectors>, Least>;
template <class F, class T, T kInfinity, T kQuiet>
inline constexpr ReduceFunction greatest_float =
    run<Quieted<F, T, kInfinity, kQuiet, 4>, Quieted<F, T, kInfinity, kQuiet, kStreamVectors>, Greatest>;
#else
template <class F, class T, T kInfinity, T kQuiet>
inline constexpr ReduceFunction least_float = least<T, kInfinity, kQuiet>;
template <class F, class T, T kInfinity, T kQuiet>
inline constexpr ReduceFunction greatest_float = greatest<T, kInfinity, kQuiet>;
#endif

template <class Element, template <class> class Op>
inline constexpr ReduceFunction widened = run<Element, Element, Op>;

#if TRIBUTARY_FP16_INSTRUCTIONS
/// Combines two inputs by float16_pairs-inl.h, and other numbers of inputs in float32.
template <class Pair, template <class> class Op>
void run_float16(const ReduceArgs& args) noexcept {
  if (args.inputs_count != 2) return run<Float16<Order::native>, Float16<Order::native>, Op>(args);
  const Pair op(args.divisor);
  const std::size_t bytes = args.count * sizeof(std::uint16_t);
  if (args.stream) return reduce_streamed<Plain<std::uint16_t, kStreamVectors>>(args, op, bytes);
  if (args.ahead) return reduce_range<Plain<std::uint16_t, 4>, Walk::ahead, 0>(args, op, {0, bytes});
  reduce_range<Plain<std::uint16_t, 4>, Walk::cached, 2>(args, op, {0, bytes});
}
inline constexpr ReduceFunction float16_sum = run_float16<Float16PairSum, Sum>;
inline constexpr ReduceFunction float16_product = run_float16<Float16PairProduct, Product>;
#else
inline constexpr ReduceFunction float16_sum = widened<Float16<Order::native>, Sum>;
inline constexpr ReduceFunction float16_product = widened<Float16<Order::native>, Product>;
#endif

/// An operator on bits does not see where an element ends, so one function by bytes serves all integers.
template <std::size_t kElementBytes, template <class> class Op>
void run_bitwise(const ReduceArgs& args) noexcept {
  ReduceArgs bytes = args;
  bytes.count = args.count * kElementBytes;
  plain<std::uint8_t, Op>(bytes);
}
/// An operator on truth values does not see a sign.
template <class T, template <class> class Op>
inline constexpr ReduceFunction logical = plain<std::make_unsigned_t<T>, Op>;

using E4M3Native = Float8<E4M3, Order::native>;
using E5M2Native = Float8<E5M2, Order::native>;

#define TRIBUTARY_INTEGER(T)           \
  {plain<T, Sum>,                      \
   plain<T, Product>,                  \
   plain<T, Minimum>,                  \
   plain<T, Maximum>,                  \
   plain<T, Average>,                  \
   run_bitwise<sizeof(T), BitwiseAnd>, \
   run_bitwise<sizeof(T), BitwiseOr>,  \
   run_bitwise<sizeof(T), BitwiseXor>, \
   logical<T, LogicalAnd>,             \
   logical<T, LogicalOr>,              \
   logical<T, LogicalXor>}
#define TRIBUTARY_FLOAT(F, T, infinity, quiet)                                                                  \
  {plain<F, Sum>, plain<F, Product>, least_float<F, T, infinity, quiet>, greatest_float<F, T, infinity, quiet>, \
   plain<F, Average>}
#define TRIBUTARY_SMALL(E, T, largest, quiet) \
  {widened<E, Sum>, widened<E, Product>, least<T, largest, quiet>, greatest<T, largest, quiet>, widened<E, Average>}
#define TRIBUTARY_FLOAT16(T, largest, quiet)                                            \
  {float16_sum, float16_product, least<T, largest, quiet>, greatest<T, largest, quiet>, \
   widened<Float16<Order::native>, Average>}

}  // namespace

extern const ReduceTable kReduceTable;

// The table's entries are in the order of DType and ReduceOp.
const ReduceTable kReduceTable = {
    .functions =
        {
            TRIBUTARY_INTEGER(std::int8_t),
            TRIBUTARY_INTEGER(std::uint8_t),
            TRIBUTARY_INTEGER(std::int32_t),
            TRIBUTARY_INTEGER(std::uint32_t),
            TRIBUTARY_INTEGER(std::int64_t),
            TRIBUTARY_INTEGER(std::uint64_t),
            TRIBUTARY_FLOAT16(std::int16_t, 0x7C00, 0x0200),
            TRIBUTARY_SMALL(BFloat16<Order::native>, std::int16_t, 0x7F80, 0x0040),
            TRIBUTARY_FLOAT(float, std::int32_t, 0x7F800000, 0x00400000),
            TRIBUTARY_FLOAT(double, std::int64_t, 0x7FF0000000000000, 0x0008000000000000),
            TRIBUTARY_SMALL(E4M3Native, std::int8_t, 0x7E, 0),
            TRIBUTARY_SMALL(E5M2Native, std::int8_t, 0x7C, 0x02),
            TRIBUTARY_INTEGER(std::int16_t),
            TRIBUTARY_INTEGER(std::uint16_t),
        },
    .weighted = {nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, widened<Float16<Order::native>, Weighted>,
                 widened<BFloat16<Order::native>, Weighted>, plain<float, Weighted>, plain<double, Weighted>,
                 widened<E4M3Native, Weighted>, widened<E5M2Native, Weighted>, nullptr, nullptr},
};

}  // namespace tributary::kernels::TRIBUTARY_TARGET
HWY_AFTER_NAMESPACE();
