// The kernels of ShortSumTable (partial_table.h) for one target; compiled once per target, see target-inl.h.
#include "kernels/cpu/target-inl.h"
//
#include <algorithm>

#include "kernels/cpu/partial_table.h"
#include "kernels/cpu/scalar_tables.h"
#include "kernels/cpu/whole_numbers.h"
#include "tributary/kernels/convert.h"

HWY_BEFORE_NAMESPACE();
namespace tributary::kernels::TRIBUTARY_TARGET {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

#include "kernels/cpu/formats-inl.h"

const std::uint8_t* bytes_at(const std::byte* at) noexcept {
  return reinterpret_cast<const std::uint8_t*>(at);
}

// ---- The two types.

/// The bits of a format without its sign: kFinite are those of the largest finite value.
struct FormatOfFloat16 {
  using Element = Float16<Order::sequential>;
  static constexpr auto kKernels = &ShortSumTable::float16;
  static constexpr std::uint16_t kFinite = 0x7BFF;
  /// Returns the bits of the float32 of the same value.
  static std::uint32_t as_float32(std::uint32_t magnitude) noexcept {
    const auto scaled = static_cast<float>(magnitude) * 0x1p-24F;  // a subnormal value; it is a normal float32
    std::uint32_t bits = 0;
    std::memcpy(&bits, &scaled, sizeof(bits));
    return magnitude < 0x400 ? bits : (magnitude << 13U) + (112U << 23U);
  }
};
struct FormatOfBFloat16 {
  using Element = BFloat16<Order::sequential>;
  static constexpr auto kKernels = &ShortSumTable::bfloat16;
  static constexpr std::uint16_t kFinite = 0x7F7F;
  static std::uint32_t as_float32(std::uint32_t magnitude) noexcept { return magnitude << 16U; }
};

/// Calls the function with each group of `step` elements, and with the number of its elements; the rest goes through a
/// copy that is padded with zeros.
template <class Function>
HWY_INLINE void each_group(const std::byte* values, std::size_t count, std::size_t step, Function function) {
  std::size_t i = 0;
  for (; i + step <= count; i += step) function(bytes_at(values) + 2 * i, i);
  if (i == count) return;
  alignas(64) std::uint8_t padded[2 * HWY_MAX_BYTES] = {};
  std::memcpy(padded, values + 2 * i, 2 * (count - i));
  function(padded, i);
}

template <class Format>
Magnitudes magnitudes(const std::byte* values, std::size_t count) noexcept {
  const Tag<std::int16_t> lanes;
  // Subtract 1, so that a zero becomes the largest number and does not count. -0 is the least of all signed numbers.
  auto least = set<std::uint16_t>(0xFFFF);
  auto most = set<std::int16_t>(0), lowest = most;
  each_group(values, count, hn::Lanes(lanes), [&](const std::uint8_t* at, std::size_t) HWY_ATTR {
    const auto bits = load_vector<std::int16_t>(at);
    const auto magnitude = hn::And(bits, set<std::int16_t>(0x7FFF));
    least = hn::Min(least, hn::Sub(as<std::uint16_t>(magnitude), set<std::uint16_t>(1)));
    most = hn::Max(most, magnitude);
    lowest = hn::Min(lowest, bits);
  });
  // A vector of 32-bit lanes has a minimum; each of its lanes holds two of the numbers.
  const Tag<std::uint32_t> pairs;
  const auto first = [](Vec<std::uint32_t> v) HWY_ATTR { return hn::And(v, set<std::uint32_t>(0xFFFF)); };
  const auto second = [](Vec<std::uint32_t> v) HWY_ATTR { return hn::ShiftRight<16>(v); };
  const auto mosts = as<std::uint32_t>(most), leasts = as<std::uint32_t>(least);
  const std::uint32_t highest = hn::GetLane(hn::MaxOfLanes(pairs, hn::Max(first(mosts), second(mosts))));
  if (highest > Format::kFinite) {  // NaN or infinities do not count; hardly any block has them
    return (scalar::kPartialTable.short_sums->*Format::kKernels).magnitudes(values, count);
  }
  const bool minus_zero = !hn::AllFalse(lanes, hn::Eq(lowest, set<std::int16_t>(hwy::LimitsMin<std::int16_t>())));
  if (highest == 0) return {.marked = minus_zero};
  const std::uint32_t below_least = hn::GetLane(hn::MinOfLanes(pairs, hn::Min(first(leasts), second(leasts))));
  return {.least = Format::as_float32(below_least + 1), .most = Format::as_float32(highest), .marked = minus_zero};
}

/// Returns the whole number of each value, which is one and is less than 2^31, so that no check for larger ones is
/// needed.
HWY_INLINE Vec<std::int32_t> whole_number(Vec<float> value) {
#if HWY_TARGET == HWY_AVX3
  return Vec<std::int32_t>{_mm512_cvttps_epi32(value.raw)};
#else
  return hn::ConvertTo(Tag<std::int32_t>(), value);
#endif
}

template <class Format>
void add(const std::byte* values, std::size_t count, float factor, std::int32_t* sums) noexcept {
  const Tag<std::int32_t> lanes;
  const std::size_t quarter = hn::Lanes(lanes);
  const auto by = set<float>(factor);
  each_group(values, count, 4 * quarter, [&](const std::uint8_t* at, std::size_t i) HWY_ATTR {
    Vec<float> a, b, c, d;
    Format::Element::load(at, a, b, c, d);
    const auto number = [&](Vec<float> value) HWY_ATTR { return whole_number(hn::Mul(value, by)); };
    alignas(64) std::int32_t rest[HWY_MAX_BYTES];
    const bool whole = i + 4 * quarter <= count;
    if (!whole) {
      std::memset(rest, 0, sizeof(rest));
      std::memcpy(rest, sums + i, (count - i) * sizeof(rest[0]));
    }
    std::int32_t* const to = whole ? sums + i : rest;
    hn::StoreU(hn::Add(hn::LoadU(lanes, to), number(a)), lanes, to);
    hn::StoreU(hn::Add(hn::LoadU(lanes, to + quarter), number(b)), lanes, to + quarter);
    hn::StoreU(hn::Add(hn::LoadU(lanes, to + 2 * quarter), number(c)), lanes, to + 2 * quarter);
    hn::StoreU(hn::Add(hn::LoadU(lanes, to + 3 * quarter), number(d)), lanes, to + 3 * quarter);
    if (!whole) std::memcpy(sums + i, rest, (count - i) * sizeof(rest[0]));
  });
}

/// Returns the float32 of a number of up to 31 bits, rounded to odd: its last rounding, to 16 bits, is then the only one
/// (Boldo and Melquiond, IEEE Transactions on Computers 57 (2008), 462-471).
HWY_INLINE Vec<float> odd_float(Vec<std::int32_t> number) {
  constexpr std::int32_t kBelow = 0x7F;  // a number of 31 bits has 24 bits above these
  const auto below = hn::And(number, set(kBelow));
  const auto sticky = hn::IfThenElseZero(hn::Gt(below, set<std::int32_t>(0)), set(kBelow + 1));
  const auto odd = hn::Or(hn::And(number, set(~kBelow)), sticky);
  const auto exact = hn::Gt(set<std::int32_t>(1 << 24), hn::Abs(number));
  return hn::ConvertTo(Tag<float>(), hn::IfThenElse(exact, number, odd));
}

template <class Format>
void round(const std::int32_t* sums, std::size_t count, float factor, std::byte* values) noexcept {
  const Tag<std::int32_t> lanes;
  const std::size_t quarter = hn::Lanes(lanes);
  const auto by = set<float>(factor);
  const auto group = [&](const std::int32_t* from, std::uint8_t* to) HWY_ATTR {
    const auto value = [&](std::size_t at) HWY_ATTR { return hn::Mul(odd_float(hn::LoadU(lanes, from + at)), by); };
    Format::Element::template store<false>(value(0), value(quarter), value(2 * quarter), value(3 * quarter), to);
  };
  auto* const out = reinterpret_cast<std::uint8_t*>(values);
  std::size_t i = 0;
  for (; i + 4 * quarter <= count; i += 4 * quarter) group(sums + i, out + 2 * i);
  if (i == count) return;
  alignas(64) std::int32_t from[HWY_MAX_BYTES] = {};
  alignas(64) std::uint8_t to[2 * HWY_MAX_BYTES];
  std::memcpy(from, sums + i, (count - i) * sizeof(from[0]));
  group(from, to);
  std::memcpy(out + 2 * i, to, 2 * (count - i));
}

// ---- Numbers of three bytes. Four of them are in a block of 16 bytes, which ends with bytes of their neighbours.

using Block = hn::Full128<std::uint8_t>;
using BlockNumbers = hn::Full128<std::int32_t>;
constexpr std::size_t kAtOnce = 4, kWidth = 3;

/// Returns how many numbers, a multiple of kAtOnce, can be read or written in whole blocks.
constexpr std::size_t in_blocks(std::size_t count) noexcept {
  return followed(count / kAtOnce, kAtOnce * kWidth, sizeof(std::int32_t) * kAtOnce) * kAtOnce;
}

void add_bytes3(const std::byte* numbers, std::size_t count, int shift, std::int32_t* sums) noexcept {
  const Block bytes;
  const BlockNumbers lanes;
  // The lowest byte of each lane only makes room: the shift drops it and repeats the number's sign.
  alignas(16) static constexpr std::uint8_t kSource[16] = {0, 0, 1, 2, 3, 3, 4, 5, 6, 6, 7, 8, 9, 9, 10, 11};
  const auto source = hn::Load(bytes, kSource);
  const auto places = hn::Set(lanes, shift);
  const std::size_t whole = in_blocks(count);
  for (std::size_t i = 0; i < whole; i += kAtOnce) {
    const auto raised = hn::TableLookupBytes(hn::LoadU(bytes, bytes_at(numbers) + i * kWidth), source);
    const auto number = hn::Shl(hn::ShiftRight<8>(hn::BitCast(lanes, raised)), places);
    hn::StoreU(hn::Add(hn::LoadU(lanes, sums + i), number), lanes, sums + i);
  }
  add_numbers<std::int32_t, kWidth>(numbers + whole * kWidth, count - whole, shift, sums + whole);
}

void put_bytes3(const std::int32_t* sums, std::size_t count, unsigned zeros, std::byte* numbers) noexcept {
  const Block bytes;
  const BlockNumbers lanes;
  alignas(16) static constexpr std::uint8_t kSource[16] = {0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 15, 15, 15, 15};
  const auto source = hn::Load(bytes, kSource);
  const auto places = hn::Set(lanes, static_cast<std::int32_t>(zeros));
  auto* const out = reinterpret_cast<std::uint8_t*>(numbers);
  const std::size_t whole = in_blocks(count);
  for (std::size_t i = 0; i < whole; i += kAtOnce) {
    const auto number = hn::Shr(hn::LoadU(lanes, sums + i), places);
    hn::StoreU(hn::TableLookupBytes(hn::BitCast(bytes, number), source), bytes, out + i * kWidth);
  }
  put_numbers<std::int32_t, kWidth>(sums + whole, count - whole, zeros, numbers + whole * kWidth);
}

ShortSumTable::Seen see(const std::int32_t* sums, std::size_t count) noexcept {
  const Tag<std::int32_t> lanes;
  auto any = set<std::int32_t>(0), magnitudes = any;
  std::size_t i = 0;
  for (; i + hn::Lanes(lanes) <= count; i += hn::Lanes(lanes)) {
    const auto sum = hn::LoadU(lanes, sums + i);
    any = hn::Or(any, sum);
    magnitudes = hn::Or(magnitudes, hn::Xor(sum, hn::BroadcastSignBit(sum)));
  }
  constexpr std::size_t kLanesMax = HWY_MAX_BYTES / sizeof(std::int32_t);
  alignas(64) std::int32_t bits[kLanesMax];
  alignas(64) std::int32_t magnitude_bits[kLanesMax];
  hn::StoreU(any, lanes, bits);
  hn::StoreU(magnitudes, lanes, magnitude_bits);
  ShortSumTable::Seen seen;
  for (std::size_t lane = 0; lane < hn::Lanes(lanes); ++lane) {
    seen.any |= bits[lane];
    seen.magnitudes |= magnitude_bits[lane];
  }
  for (; i < count; ++i) {
    seen.any |= sums[i];
    seen.magnitudes |= sums[i] ^ (sums[i] >> 31);
  }
  return seen;
}

template <class Format>
constexpr SmallFloatKernels kSmallFloat = {
    .magnitudes = magnitudes<Format>, .add = add<Format>, .round = round<Format>};

}  // namespace

extern const ShortSumTable kShortSumTable;

const ShortSumTable kShortSumTable = {.float16 = kSmallFloat<FormatOfFloat16>,
                                      .bfloat16 = kSmallFloat<FormatOfBFloat16>,
                                      .see = see,
                                      .add_bytes3 = add_bytes3,
                                      .put_bytes3 = put_bytes3};

}  // namespace tributary::kernels::TRIBUTARY_TARGET
HWY_AFTER_NAMESPACE();
