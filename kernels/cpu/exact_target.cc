// exact_sum() for one target; compiled once per target, see target-inl.h.
//
// Elements go in groups of four vectors. A group is summed in one of three ways, each of which proves that its result
// is the exact sum, rounded once, or else leaves the group to the next way:
//
//   narrow  float32 and smaller: in float64. The exponents of the group's inputs show that no addition rounds: with n
//           inputs, all are multiples of 2^e and below 2^(e + 53) / n.
//   wide    two float64, the sum and the sum of its rounding errors (T. Ogita, S. M. Rump, S. Oishi, Accurate sum and
//           dot product, SIAM J. Sci. Comput. 26 (2005), 1955-1988). The sum of errors must not round.
//   redo    the reference's long fixed-point numbers.
//
// Only the last step rounds. A quotient whose remainder is known is rounded to odd, or compared with the bounds of its
// error.
#include "kernels/cpu/target-inl.h"
//
#include "kernels/cpu/exact_table.h"
#include "tributary/kernels/convert.h"
#include "tributary/kernels/exact.h"

HWY_BEFORE_NAMESPACE();
namespace tributary::kernels::TRIBUTARY_TARGET {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

#include "kernels/cpu/formats-inl.h"

using Double = Vec<double>;
using DoubleTag = Tag<double>;

/// The last step: nothing, a product with a power of two, which is exact, or a division.
enum class Finish { sum, scale, divide };

// ---- Float64 arithmetic with known errors.

HWY_INLINE Vec<std::int64_t> bits_of(Double v) {
  return as<std::int64_t>(v);
}

/// Returns a + b; `error` is what the rounding lost.
HWY_INLINE Double two_sum(Double a, Double b, Double& error) {
  const auto sum = hn::Add(a, b);
  const auto b_part = hn::Sub(sum, a);
  error = hn::Add(hn::Sub(a, hn::Sub(sum, b_part)), hn::Sub(b, b_part));
  return sum;
}

/// Returns value - quotient * divisor without error, where quotient is value / divisor, rounded; divisor has at most 26
/// bits. It needs no fused instruction: both parts of the quotient have few enough bits.
HWY_INLINE Double remainder(Double value, Double quotient, Double divisor) {
  const auto upper = as<double>(hn::And(bits_of(quotient), set<std::int64_t>(~std::int64_t{0x7FFFFFF})));
  const auto lower = hn::Sub(quotient, upper);
  return hn::Sub(hn::Sub(value, hn::Mul(upper, divisor)), hn::Mul(lower, divisor));
}

/// Returns value + error, rounded to odd; the value is the float64 nearest to it.
HWY_INLINE Double rounded_to_odd(Double value, Double error) {
  const auto inexact = hn::Gt(hn::Abs(error), hn::Zero(DoubleTag()));
  const auto one_less = hn::BroadcastSignBit(hn::Xor(bits_of(value), bits_of(error)));  // -1 if the signs differ
  const auto odd = hn::Or(hn::Add(bits_of(value), one_less), set<std::int64_t>(1));
  return hn::IfThenElse(inexact, as<double>(odd), value);
}

// ---- The element types: how a float64 that is exact, or rounded to odd, becomes an element.

/// Rounding to float32, by the conversion.
struct Float32 : Plain<float, 4> {
  static constexpr int kDigits = 24;
  static HWY_INLINE Double rounded(Double v) { return v; }
};

/// Rounding to a type with kMantissa bits, whose smallest normal value is 2^kLeast: an addition of a large number
/// rounds to its last bit, and the subtraction takes the number away again. The conversions that follow are exact, or
/// overflow.
template <class Element, int kMantissa, int kLeast, bool kInfinity = true>
struct Small : Element {
  static constexpr int kDigits = kMantissa;
  static HWY_INLINE Double rounded(Double v) {
    constexpr std::int64_t kLeastBits = static_cast<std::int64_t>(kLeast + 1023) << 52;
    constexpr std::int64_t kRaise = static_cast<std::int64_t>(53 - kMantissa) << 52;
    const auto exponent = hn::And(bits_of(v), set<std::int64_t>(0x7FF0000000000000));
    const auto most =
        as<double>(hn::Add(bits_of(hn::Max(as<double>(exponent), as<double>(set(kLeastBits)))), set(kRaise)));
    const auto large = hn::CopySign(most, v);
    const auto result = hn::CopySign(hn::Sub(hn::Add(v, large), large), v);
    if constexpr (kInfinity) return result;
    // The only format without infinity is float8 e4m3: what overflows becomes the positive NaN.
    return hn::IfThenElse(hn::Gt(hn::Abs(result), set<double>(448)), hn::Abs(result), result);
  }
};

using ExactFloat16 = Small<Float16<Order::native>, 11, -14>;
using ExactBFloat16 = Small<BFloat16<Order::native>, 8, -126>;
using ExactE4M3 = Small<Float8<E4M3, Order::native>, 4, -6, false>;
using ExactE5M2 = Small<Float8<E5M2, Order::native>, 3, -14>;

HWY_INLINE Double lower_half(Vec<float> v) {
  const hn::Half<Tag<float>> half;
  return hn::PromoteTo(DoubleTag(), hn::LowerHalf(half, v));
}
HWY_INLINE Double upper_half(Vec<float> v) {
  const hn::Half<Tag<float>> half;
  return hn::PromoteTo(DoubleTag(), hn::UpperHalf(half, v));
}
template <class Element>
HWY_INLINE Vec<float> joined(Double lower, Double upper) {
  const hn::Half<Tag<float>> half;
  return hn::Combine(Tag<float>(), hn::DemoteTo(half, Element::rounded(upper)),
                     hn::DemoteTo(half, Element::rounded(lower)));
}

// ---- Reading a group. The rest of an array is read through a small copy that is padded with zeros.

template <bool kRest>
class Groups {
 public:
  explicit HWY_INLINE Groups(const ExactArgs& args) : args_(args) {}
  HWY_INLINE const std::uint8_t* at(std::size_t input, std::size_t offset, std::size_t bytes) {
    const auto* const from = static_cast<const std::uint8_t*>(args_.inputs[input]) + offset;
    if constexpr (!kRest) {
      if (args_.ahead) prefetch_ahead(from, bytes);
      return from;
    } else {
      std::memcpy(padded_, from, bytes);
      return padded_;
    }
  }

 private:
  const ExactArgs& args_;
  alignas(64) std::uint8_t padded_[kRest ? 4 * HWY_MAX_BYTES : 1] = {};
};

// ---- The narrow way.

/// The exponents of the inputs: the greatest magnitude, and the least magnitude above zero, less one.
struct Range {
  static HWY_INLINE Vec<std::int32_t> magnitude(Vec<float> v) {
    return hn::And(as<std::int32_t>(v), set<std::int32_t>(0x7FFFFFFF));
  }
  static HWY_INLINE void see(Vec<float> v, Vec<std::int32_t>& most, Vec<std::uint32_t>& least) {
    const auto bits = magnitude(v);
    most = hn::Max(most, bits);
    least = hn::Min(least, hn::Sub(as<std::uint32_t>(bits), set<std::uint32_t>(1)));
  }
  /// True if float64 holds all sums of values of this range. `digits`: the bits of a value.
  static HWY_INLINE bool fits(Vec<std::int32_t> most, Vec<std::uint32_t> least, int digits, int inputs_log2) {
    const auto distance = hn::Sub(hn::ShiftRight<23>(most), as<std::int32_t>(hn::ShiftRight<23>(least)));
    const auto beyond = hn::Or(hn::Gt(distance, set<std::int32_t>(53 - digits - inputs_log2)),
                               hn::Gt(most, set<std::int32_t>(0x7F7FFFFF)));
    return hn::AllFalse(Tag<std::int32_t>(), beyond);
  }
};

template <Finish kFinish>
HWY_INLINE Double finished_exactly(Double sum, const ExactArgs& args) {
  if constexpr (kFinish == Finish::sum) return sum;
  if constexpr (kFinish == Finish::scale) return hn::Mul(sum, set<double>(args.reciprocal));
  if constexpr (kFinish == Finish::divide) {
    const auto divisor = set<double>(static_cast<double>(args.divisor));
    const auto quotient = hn::Div(sum, divisor);
    return rounded_to_odd(quotient, remainder(sum, quotient, divisor));
  }
}

template <class Element, Finish kFinish, bool kRest>
HWY_INLINE bool sum_narrow(const ExactArgs& args, std::size_t offset, std::size_t bytes, std::uint8_t* out) {
  Groups<kRest> groups(args);
  Vec<float> a, b, c, d;
  Element::load(groups.at(0, offset, bytes), a, b, c, d);
  auto most = set<std::int32_t>(0);
  auto least = set<std::uint32_t>(0xFFFFFFFF);
  const auto see_all = [&]() HWY_ATTR {
    Range::see(a, most, least);
    Range::see(b, most, least);
    Range::see(c, most, least);
    Range::see(d, most, least);
  };
  see_all();
  Double s0 = lower_half(a), s1 = upper_half(a), s2 = lower_half(b), s3 = upper_half(b);
  Double s4 = lower_half(c), s5 = upper_half(c), s6 = lower_half(d), s7 = upper_half(d);
  for (std::size_t k = 1; k < args.inputs_count; ++k) {
    Element::load(groups.at(k, offset, bytes), a, b, c, d);
    see_all();
    s0 = hn::Add(s0, lower_half(a));
    s1 = hn::Add(s1, upper_half(a));
    s2 = hn::Add(s2, lower_half(b));
    s3 = hn::Add(s3, upper_half(b));
    s4 = hn::Add(s4, lower_half(c));
    s5 = hn::Add(s5, upper_half(c));
    s6 = hn::Add(s6, lower_half(d));
    s7 = hn::Add(s7, upper_half(d));
  }
  if (!Range::fits(most, least, Element::kDigits, args.inputs_log2)) return false;
  const auto end = [&](Double lower, Double upper) HWY_ATTR {
    return joined<Element>(finished_exactly<kFinish>(lower, args), finished_exactly<kFinish>(upper, args));
  };
  Element::template store<false>(end(s0, s1), end(s2, s3), end(s4, s5), end(s6, s7), out);
  return true;
}

// ---- The wide way. `wrong` gets a bit wherever a step was not exact.

HWY_INLINE void add_wide(Double value, Double& sum, Double& errors, Vec<std::int64_t>& wrong) {
  Double error, lost;
  sum = two_sum(sum, value, error);
  errors = two_sum(errors, error, lost);
  wrong = hn::Or(wrong, hn::Add(bits_of(lost), bits_of(lost)));  // -0 is no error
}

template <class M>
HWY_INLINE void mark(M mask, Vec<std::int64_t>& wrong) {
  wrong = hn::Or(wrong, hn::IfThenElseZero(hn::RebindMask(Tag<std::int64_t>(), mask), set<std::int64_t>(1)));
}

/// Scales and divides only numbers far from both ends of float64's range, where all steps are exact.
HWY_INLINE void mark_extremes(Double v, Vec<std::int64_t>& wrong) {
  const auto magnitude = hn::Abs(v);
  const auto zero = hn::Eq(magnitude, hn::Zero(DoubleTag()));
  mark(hn::AndNot(zero, hn::Lt(magnitude, set<double>(0x1p-900))), wrong);
  mark(hn::Gt(magnitude, set<double>(0x1p+900)), wrong);
}

/// Returns sum + errors, divided and rounded: to odd for the smaller types, to nearest for float64.
template <Finish kFinish, bool kOdd>
HWY_INLINE Double finished_wide(Double sum, Double errors, const ExactArgs& args, Vec<std::int64_t>& wrong) {
  Double rest;
  const auto nothing = hn::Zero(DoubleTag());
  auto total = two_sum(sum, errors, rest);
  total = hn::IfThenElse(hn::Eq(errors, nothing), sum, total);  // keeps -0
  if constexpr (kFinish != Finish::sum) mark_extremes(total, wrong);
  if constexpr (kFinish != Finish::divide) {
    if constexpr (kOdd) total = rounded_to_odd(total, rest);
    return kFinish == Finish::scale ? hn::Mul(total, set<double>(args.reciprocal)) : total;
  } else {
    const auto divisor = set<double>(static_cast<double>(args.divisor));
    const auto first = hn::Div(total, divisor);
    Double lost;
    const auto left = two_sum(remainder(total, first, divisor), rest, lost);
    const auto more = hn::Div(left, divisor);
    // True where the two parts of the quotient are the whole quotient. This includes all ties, because their second
    // part is a power of two.
    const auto whole = hn::And(hn::Eq(remainder(left, more, divisor), nothing), hn::Eq(lost, nothing));
    const auto quotient = hn::Add(first, more);
    const auto bound = hn::Mul(hn::Abs(more), set<double>(0x1p-48));
    if constexpr (kOdd) {
      const auto error = hn::Sub(more, hn::Sub(quotient, first));
      mark(hn::AndNot(whole, hn::Le(hn::Abs(error), bound)), wrong);  // the sign of the error must be certain
      return hn::IfThenElse(hn::Eq(total, nothing), total, rounded_to_odd(quotient, error));
    } else {
      const auto same = hn::Eq(hn::Add(first, hn::Sub(more, bound)), hn::Add(first, hn::Add(more, bound)));
      mark(hn::Not(hn::Or(whole, same)), wrong);
      return hn::IfThenElse(hn::Eq(total, nothing), total, quotient);
    }
  }
}

/// Sums one of the four vectors of a group.
template <class Element, Finish kFinish, bool kRest, int kVector>
HWY_INLINE Vec<float> sum_wide_vector(const ExactArgs& args, std::size_t offset, std::size_t bytes,
                                      Vec<std::int64_t>& wrong) {
  Groups<kRest> groups(args);
  const auto load = [&](std::size_t input) HWY_ATTR {
    Vec<float> a, b, c, d;
    Element::load(groups.at(input, offset, bytes), a, b, c, d);
    return kVector == 0 ? a : kVector == 1 ? b : kVector == 2 ? c : d;
  };
  const auto first = load(0);
  Double s0 = lower_half(first), s1 = upper_half(first);
  Double e0 = hn::Zero(DoubleTag()), e1 = e0;
  for (std::size_t k = 1; k < args.inputs_count; ++k) {
    const auto next = load(k);
    add_wide(lower_half(next), s0, e0, wrong);
    add_wide(upper_half(next), s1, e1, wrong);
  }
  // The sum of one input may be infinite or NaN without an addition that shows it.
  mark(hn::Not(hn::IsFinite(hn::Add(s0, s1))), wrong);
  return joined<Element>(finished_wide<kFinish, true>(s0, e0, args, wrong),
                         finished_wide<kFinish, true>(s1, e1, args, wrong));
}

template <class Element, Finish kFinish, bool kRest>
HWY_INLINE bool sum_wide(const ExactArgs& args, std::size_t offset, std::size_t bytes, std::uint8_t* out) {
  auto wrong = hn::Zero(Tag<std::int64_t>());
  const auto a = sum_wide_vector<Element, kFinish, kRest, 0>(args, offset, bytes, wrong);
  const auto b = sum_wide_vector<Element, kFinish, kRest, 1>(args, offset, bytes, wrong);
  const auto c = sum_wide_vector<Element, kFinish, kRest, 2>(args, offset, bytes, wrong);
  const auto d = sum_wide_vector<Element, kFinish, kRest, 3>(args, offset, bytes, wrong);
  if (!hn::AllTrue(Tag<std::int64_t>(), hn::Eq(wrong, hn::Zero(Tag<std::int64_t>())))) return false;
  Element::template store<false>(a, b, c, d, out);
  return true;
}

// ---- Float64 has only the wide way.

using Float64 = Plain<double, 4>;

template <Finish kFinish, bool kRest>
HWY_INLINE bool sum_float64(const ExactArgs& args, std::size_t offset, std::size_t bytes, std::uint8_t* out) {
  Groups<kRest> groups(args);
  Double s0, s1, s2, s3, a, b, c, d;
  Float64::load(groups.at(0, offset, bytes), s0, s1, s2, s3);
  Double e0 = hn::Zero(DoubleTag()), e1 = e0, e2 = e0, e3 = e0;
  auto wrong = hn::Zero(Tag<std::int64_t>());
  for (std::size_t k = 1; k < args.inputs_count; ++k) {
    Float64::load(groups.at(k, offset, bytes), a, b, c, d);
    add_wide(a, s0, e0, wrong);
    add_wide(b, s1, e1, wrong);
    add_wide(c, s2, e2, wrong);
    add_wide(d, s3, e3, wrong);
  }
  const auto finite = [](Double v) HWY_ATTR { return hn::Sub(v, v); };  // 0, or NaN for values that are not finite
  const auto all = hn::Add(hn::Add(finite(s0), finite(s1)), hn::Add(finite(s2), finite(s3)));
  mark(hn::Not(hn::Eq(all, hn::Zero(DoubleTag()))), wrong);  // true for NaN; Ne() is not, on some targets
  a = finished_wide<kFinish, false>(s0, e0, args, wrong);
  b = finished_wide<kFinish, false>(s1, e1, args, wrong);
  c = finished_wide<kFinish, false>(s2, e2, args, wrong);
  d = finished_wide<kFinish, false>(s3, e3, args, wrong);
  if (!hn::AllTrue(Tag<std::int64_t>(), hn::Eq(wrong, hn::Zero(Tag<std::int64_t>())))) return false;
  Float64::store<false>(a, b, c, d, out);
  return true;
}

// ---- All groups of a call.

/// Sums the group at `offset`. The result may lie in an input's place, so it is written after all inputs were read.
template <class Element, Finish kFinish, bool kRest>
HWY_INLINE void sum_group(const ExactArgs& args, std::size_t offset, std::size_t bytes) {
  alignas(64) std::uint8_t padded[kRest ? 4 * HWY_MAX_BYTES : 1];
  auto* const there = static_cast<std::uint8_t*>(args.out) + offset;
  std::uint8_t* const out = kRest ? padded : there;
  bool done;
  if constexpr (std::is_same_v<Element, Float64>) {
    done = sum_float64<kFinish, kRest>(args, offset, bytes, out);
  } else {
    done = sum_narrow<Element, kFinish, kRest>(args, offset, bytes, out) ||
           sum_wide<Element, kFinish, kRest>(args, offset, bytes, out);
  }
  if (!done) return args.redo(args, offset / Element::kElementBytes, (offset + bytes) / Element::kElementBytes);
  if constexpr (kRest) std::memcpy(there, padded, bytes);
}

template <class Element, Finish kFinish>
void run_finish(const ExactArgs& args) noexcept {
  const std::size_t bytes = args.count * Element::kElementBytes;
  const std::size_t group = Element::kGroupVectors * vector_bytes();
  std::size_t offset = 0;
  for (; bytes - offset >= group; offset += group) sum_group<Element, kFinish, false>(args, offset, group);
  if (offset < bytes) sum_group<Element, kFinish, true>(args, offset, bytes - offset);
}

template <class Element>
void run(const ExactArgs& args) noexcept {
  if (args.divisor == 1) return run_finish<Element, Finish::sum>(args);
  if ((args.divisor & (args.divisor - 1)) == 0) return run_finish<Element, Finish::scale>(args);
  run_finish<Element, Finish::divide>(args);
}

}  // namespace

extern const ExactTable kExactTable;

// The table's entries are in the order of DType.
const ExactTable kExactTable = {.functions = {nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, run<ExactFloat16>,
                                              run<ExactBFloat16>, run<Float32>, run<Float64>, run<ExactE4M3>,
                                              run<ExactE5M2>}};

}  // namespace tributary::kernels::TRIBUTARY_TARGET
HWY_AFTER_NAMESPACE();
