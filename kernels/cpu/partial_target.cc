// The kernels of partial_table.h for one target; compiled once per target, see target-inl.h.
#include "kernels/cpu/target-inl.h"
//
#include <algorithm>

#include "kernels/cpu/float_layout.h"
#include "kernels/cpu/partial_table.h"
#include "kernels/cpu/scalar_tables.h"

HWY_BEFORE_NAMESPACE();
namespace tributary::kernels::TRIBUTARY_TARGET {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// The vectors of one float type: Bits and Signed have its lanes, Wide has as many lanes of 64 bits.
template <class Float>
struct Lanes;
template <>
struct Lanes<float> {
  using Wide = hn::ScalableTag<std::int64_t>;
  using Signed = hn::Rebind<std::int32_t, Wide>;
  using Bits = hn::Rebind<std::uint32_t, Wide>;
  static HWY_INLINE hn::Vec<Wide> widened(hn::Vec<Signed> v) { return hn::PromoteTo(Wide(), v); }
};
template <>
struct Lanes<double> {
  using Wide = hn::ScalableTag<std::int64_t>;
  using Signed = Wide;
  using Bits = hn::RebindToUnsigned<Wide>;
  static HWY_INLINE hn::Vec<Wide> widened(hn::Vec<Signed> v) { return v; }
};

/// Calls the function with each group of `lanes` elements; the rest goes through a copy that is padded with zeros.
template <class Float, class Function>
HWY_INLINE void each_group(const Float* values, std::size_t count, std::size_t lanes, Function function) {
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) function(values + i, i);
  if (i == count) return;
  alignas(64) Float padded[HWY_MAX_BYTES / sizeof(Float)] = {};
  std::memcpy(padded, values + i, (count - i) * sizeof(Float));
  function(padded, i);
}

template <class Float>
Magnitudes magnitudes(const std::byte* values, std::size_t count) noexcept {
  using L = Layout<Float>;
  using Bits = L::Bits;
  using SignedBits = std::make_signed_t<Bits>;
  const hn::ScalableTag<Bits> bits_tag;
  const hn::RebindToSigned<decltype(bits_tag)> signed_tag;
  const hn::Repartition<std::uint8_t, decltype(bits_tag)> bytes_tag;
  constexpr auto kFinite = static_cast<SignedBits>((Bits{L::kField} << L::kFraction) - 1);
  const auto sign = hn::Set(bits_tag, Bits{1} << (sizeof(Bits) * 8 - 1)), one = hn::Set(bits_tag, Bits{1});
  // Subtract 1, so that a zero becomes the largest number and does not count. -0 is the least of all signed numbers.
  auto least = hn::Set(bits_tag, ~Bits{0});
  auto most = hn::Zero(signed_tag), lowest = hn::Zero(signed_tag);
  const auto look = [&](const std::uint8_t* at) HWY_ATTR {
    const auto bits = hn::BitCast(bits_tag, hn::LoadU(bytes_tag, at));
    const auto magnitude = hn::AndNot(sign, bits);
    least = hn::Min(least, hn::Sub(magnitude, one));
    most = hn::Max(most, hn::BitCast(signed_tag, magnitude));
    lowest = hn::Min(lowest, hn::BitCast(signed_tag, bits));
  };
  const auto* const from = reinterpret_cast<const std::uint8_t*>(values);
  const std::size_t all = count * sizeof(Float), step = hn::Lanes(bytes_tag);
  std::size_t i = 0;
  for (; i + step <= all; i += step) look(from + i);
  if (i < all) {
    alignas(64) std::uint8_t padded[HWY_MAX_BYTES] = {};
    std::memcpy(padded, from + i, all - i);
    look(padded);
  }
  const auto largest = hn::GetLane(hn::MaxOfLanes(signed_tag, most));
  if (largest > kFinite) {  // NaN or infinities do not count; hardly any block has them
    const PartialTable& plain = scalar::kPartialTable;
    return sizeof(Float) == sizeof(float) ? plain.magnitudes32(values, count) : plain.magnitudes64(values, count);
  }
  const bool minus_zero = hn::GetLane(hn::MinOfLanes(signed_tag, lowest)) == hwy::LimitsMin<SignedBits>();
  if (largest == 0) return {.marked = minus_zero};
  return {.least = std::uint64_t{hn::GetLane(hn::MinOfLanes(bits_tag, least))} + 1,
          .most = static_cast<std::uint64_t>(largest),
          .marked = minus_zero};
}

template <class Float>
void add(const Float* values, std::size_t count, const ToNumber& to, std::int64_t* sums) noexcept {
  using L = Layout<Float>;
  using V = Lanes<Float>;
  const typename V::Wide wide;
  const typename V::Signed lanes;
  const typename V::Bits bits_tag;
  using Lane = hn::TFromD<typename V::Signed>;
  const auto fraction = hn::Set(lanes, (Lane{1} << L::kFraction) - 1),
             leading = hn::Set(lanes, Lane{1} << L::kFraction);
  const auto no_field = hn::Zero(lanes), all_ones = hn::Set(lanes, Lane{L::kField});
  const auto base = hn::Set(lanes, static_cast<Lane>(to.base));
  const auto unused = hn::Set(bits_tag, static_cast<L::Bits>(to.unused));
  each_group(values, count, hn::Lanes(wide), [&](const Float* at, std::size_t i) HWY_ATTR {
    const auto bits = hn::LoadU(bits_tag, reinterpret_cast<const L::Bits*>(at));
    const auto field = hn::And(hn::BitCast(lanes, hn::ShiftRight<L::kFraction>(bits)), all_ones);
    const auto stored = hn::And(hn::BitCast(lanes, bits), fraction);
    const auto normal = hn::Or(stored, hn::IfThenElseZero(hn::Gt(field, no_field), leading));
    const auto finite = hn::IfThenElseZero(hn::Gt(all_ones, field), normal);
    const auto mantissa = hn::BitCast(lanes, hn::Shr(hn::BitCast(bits_tag, finite), unused));
    const auto places = hn::Sub(hn::Max(field, hn::Set(lanes, Lane{1})), base);
    // The shift of a number that is zero may be out of bounds.
    const auto shift = hn::IfThenElseZero(hn::Gt(mantissa, hn::Zero(lanes)), places);
    const hn::RebindToUnsigned<typename V::Wide> shifted;
    const auto magnitude =
        hn::BitCast(wide, hn::Shl(hn::BitCast(shifted, V::widened(mantissa)), hn::BitCast(shifted, V::widened(shift))));
    const auto sign = V::widened(hn::BroadcastSignBit(hn::BitCast(lanes, bits)));
    const auto number = hn::Sub(hn::Xor(magnitude, sign), sign);
    if (i + hn::Lanes(wide) <= count) {
      hn::StoreU(hn::Add(hn::LoadU(wide, sums + i), number), wide, sums + i);
      return;
    }
    alignas(HWY_MAX_BYTES) std::int64_t rest[HWY_MAX_BYTES / sizeof(std::int64_t)];
    hn::Store(number, wide, rest);
    for (std::size_t j = i; j < count; ++j) sums[j] += rest[j - i];
  });
}

void add_long(const double* values, std::size_t count, int base, std::int64_t* lower, std::int64_t* upper) noexcept {
  using L = Layout<double>;
  const hn::ScalableTag<std::int64_t> lanes;
  const hn::RebindToUnsigned<decltype(lanes)> bits_tag;
  const auto fraction = hn::Set(lanes, (std::int64_t{1} << L::kFraction) - 1),
             leading = hn::Set(lanes, std::int64_t{1} << L::kFraction);
  const auto zero = hn::Zero(lanes), all_ones = hn::Set(lanes, std::int64_t{L::kField});
  const auto least_field = hn::Set(lanes, std::int64_t{base});
  const auto lower_bits = hn::Set(lanes, std::int64_t{kLowerBits}), most_places = hn::Set(lanes, std::int64_t{63});
  const auto mask = hn::Set(lanes, (std::int64_t{1} << kLowerBits) - 1);
  each_group(values, count, hn::Lanes(lanes), [&](const double* at, std::size_t i) HWY_ATTR {
    const auto bits = hn::LoadU(bits_tag, reinterpret_cast<const std::uint64_t*>(at));
    const auto field = hn::And(hn::BitCast(lanes, hn::ShiftRight<L::kFraction>(bits)), all_ones);
    const auto stored = hn::And(hn::BitCast(lanes, bits), fraction);
    const auto normal = hn::Or(stored, hn::IfThenElseZero(hn::Gt(field, zero), leading));
    const auto finite = hn::IfThenElseZero(hn::Gt(all_ones, field), normal);
    const auto mantissa = hn::BitCast(bits_tag, finite);
    const auto shift = hn::Sub(hn::Max(field, hn::Set(lanes, std::int64_t{1})), least_field);
    // Each of these shifts lies between 0 and 63, also that of a number that is zero.
    const auto places = [&](hn::Vec<decltype(lanes)> wanted)
                            HWY_ATTR { return hn::BitCast(bits_tag, hn::Min(hn::Max(wanted, zero), most_places)); };
    const auto low = hn::And(hn::BitCast(lanes, hn::Shl(mantissa, places(shift))), mask);
    const auto high = hn::BitCast(
        lanes, hn::Shl(hn::Shr(mantissa, places(hn::Sub(lower_bits, shift))), places(hn::Sub(shift, lower_bits))));
    const auto sign = hn::BroadcastSignBit(hn::BitCast(lanes, bits));
    const auto signed_low = hn::Sub(hn::Xor(low, sign), sign), signed_high = hn::Sub(hn::Xor(high, sign), sign);
    if (i + hn::Lanes(lanes) <= count) {
      hn::StoreU(hn::Add(hn::LoadU(lanes, lower + i), signed_low), lanes, lower + i);
      hn::StoreU(hn::Add(hn::LoadU(lanes, upper + i), signed_high), lanes, upper + i);
      return;
    }
    constexpr std::size_t kLanesMax = HWY_MAX_BYTES / sizeof(std::int64_t);
    alignas(HWY_MAX_BYTES) std::int64_t rest_low[kLanesMax];
    alignas(HWY_MAX_BYTES) std::int64_t rest_high[kLanesMax];
    hn::Store(signed_low, lanes, rest_low);
    hn::Store(signed_high, lanes, rest_high);
    for (std::size_t j = i; j < count; ++j) lower[j] += rest_low[j - i];
    for (std::size_t j = i; j < count; ++j) upper[j] += rest_high[j - i];
  });
}

void scale(const std::int64_t* sums, std::size_t count, double factor, double* values) noexcept {
  const hn::ScalableTag<std::int64_t> tag;
  const hn::ScalableTag<double> doubles;
  const auto by = hn::Set(doubles, factor);
  each_group(sums, count, hn::Lanes(tag), [&](const std::int64_t* at, std::size_t i) HWY_ATTR {
    const auto scaled = hn::Mul(hn::ConvertTo(doubles, hn::LoadU(tag, at)), by);
    if (i + hn::Lanes(tag) <= count) return hn::StoreU(scaled, doubles, values + i);
    alignas(HWY_MAX_BYTES) double rest[HWY_MAX_BYTES / sizeof(double)];
    hn::Store(scaled, doubles, rest);
    std::memcpy(values + i, rest, (count - i) * sizeof(double));
  });
}

}  // namespace

extern const ShortSumTable kShortSumTable;          // short_sums_target.cc
extern const Float64SumKernels kFloat64SumKernels;  // float64_sums_target.cc
extern const PartialTable kPartialTable;

const PartialTable kPartialTable = {.magnitudes32 = magnitudes<float>,
                                    .magnitudes64 = magnitudes<double>,
                                    .add32 = add<float>,
                                    .add64 = add<double>,
                                    .add64_long = add_long,
                                    .scale = scale,
                                    .short_sums = &kShortSumTable,
                                    .float64_sums = &kFloat64SumKernels};

}  // namespace tributary::kernels::TRIBUTARY_TARGET
HWY_AFTER_NAMESPACE();
