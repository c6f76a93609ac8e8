// Conversions on every target that this machine can run, against the scalar reference, bit by bit.
#include "tributary/kernels/convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "kernels/cpu/kernel_table.h"
#include "kernels/reference/convert.h"
#include "kernels/reference/float_format.h"
#include "tests/unit/kernels/values.h"
#include "tributary/kernels/counters.h"
#include "tributary/kernels/reduce.h"

namespace tributary::kernels {
namespace {

using test::GuardedArray;

/// Returns every value where rounding to `dtype` can go either way: each representable value, the midpoint to the next,
/// and a float32 step to either side.
std::vector<float> rounding_boundaries(DType dtype) {
  const reference::FloatFormat format = reference::format_of(dtype);
  std::vector<float> values;
  for (std::uint32_t code = 0; code < 2 * format.sign_bit(); ++code) {
    const float value = reference::decode(format, code);
    const float next = reference::decode(format, code + 1 < 2 * format.sign_bit() ? code + 1 : code);
    const float middle = value + (next - value) / 2;
    for (const float point : {value, middle}) {
      values.insert(values.end(), {point, std::nextafter(point, std::numeric_limits<float>::infinity()),
                                   std::nextafter(point, -std::numeric_limits<float>::infinity())});
    }
  }
  return values;
}

/// Adds values beyond the format's ends: overflow, float32's own subnormals, specials, and any bits.
std::vector<float> floats_of_all_kinds(std::size_t count) {
  std::mt19937_64 random(1);
  const std::vector<std::byte> bytes = test::values(DType::float32, count, random);
  std::vector<float> values(count);
  std::memcpy(values.data(), bytes.data(), bytes.size());
  for (const float edge : {464.0F, 480.0F, 448.0F, 57344.0F, 61440.0F, 65504.0F, 65520.0F, 65536.0F, 3.3961776e38F,
                           0x1p-133F, 0x1p-134F}) {
    for (const float point :
         {edge, std::nextafter(edge, 0.0F), std::nextafter(edge, std::numeric_limits<float>::infinity())})
      values.insert(values.end(), {point, -point});
  }
  return values;
}

struct Case {
  Target target;
  std::size_t format;

  [[nodiscard]] DType dtype() const { return kSmallFormats[format]; }
  [[nodiscard]] const SmallFormatKernels& kernels() const { return convert_table(target).small[format]; }
};

/// GoogleTest would otherwise print the bytes with their padding, and valgrind complains about padding.
void PrintTo(const Case& c, std::ostream* out) {
  *out << std::string(to_string(c.target)) + " format " + std::to_string(c.format);
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const Target target : available_targets()) {
    for (std::size_t format = 0; format < kSmallFormatCount; ++format) cases.push_back({target, format});
  }
  return cases;
}

std::string name_of(const testing::TestParamInfo<Case>& info) {
  return std::string(to_string(info.param.target)) + "_" + std::string(to_string(info.param.dtype()));
}

class ConvertOnTarget : public testing::TestWithParam<Case> {
 protected:
  static DType dtype() { return GetParam().dtype(); }

  /// Returns an empty text if the kernel gives the reference's bits and counts. The output is `misalignment` bytes off.
  static std::string narrowed(const std::vector<float>& in, Overflow overflow, bool counted, bool stream,
                              std::size_t misalignment = 0) {
    std::vector<std::byte> expected(in.size() * size_of(dtype()));
    GuardedArray out(expected.size(), misalignment);
    ConvertCounters expected_counters, counters;
    reference::convert(DType::float32, dtype(), in.data(), expected.data(), in.size(), {overflow, &expected_counters});
    const ConvertFunction function = GetParam().kernels().narrow[static_cast<std::size_t>(overflow)][counted];
    function({.in = in.data(),
              .out = out.data(),
              .count = in.size(),
              .counters = counted ? &counters : nullptr,
              .stream = stream});
    if (!out.guards_intact()) return "bytes beside the result were written";
    if (counted && (counters.nans != expected_counters.nans || counters.overflows != expected_counters.overflows))
      return "counted wrongly";
    return test::difference(dtype(), expected.data(), out.data(), in.size());
  }

  static std::string widened(const std::vector<std::byte>& in, bool counted, bool stream,
                             std::size_t misalignment = 0) {
    const std::size_t count = in.size() / size_of(dtype());
    std::vector<std::byte> expected(count * sizeof(float));
    GuardedArray out(expected.size(), misalignment);
    ConvertCounters expected_counters, counters;
    reference::convert(dtype(), DType::float32, in.data(), expected.data(), count, {.counters = &expected_counters});
    GetParam().kernels().widen[counted]({.in = in.data(),
                                         .out = out.data(),
                                         .count = count,
                                         .counters = counted ? &counters : nullptr,
                                         .stream = stream});
    if (!out.guards_intact()) return "bytes beside the result were written";
    if (counted && counters.nans != expected_counters.nans) return "counted wrongly";
    make_nans_quiet(out.data(), count);
    return test::difference(DType::float32, expected.data(), out.data(), count);
  }

  /// Widening must keep a NaN, quiet or signalling.
  static void make_nans_quiet(std::byte* floats, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      if (!test::is_nan(DType::float32, test::bits_at(DType::float32, floats, i))) continue;
      const float quiet = std::numeric_limits<float>::quiet_NaN();
      std::memcpy(floats + i * sizeof(float), &quiet, sizeof(float));
    }
  }

  static std::vector<std::byte> every_code() {
    const std::size_t size = size_of(dtype());
    const std::size_t codes = std::size_t{1} << (8 * size);
    std::vector<std::byte> array(codes * size);
    for (std::size_t code = 0; code < codes; ++code) std::memcpy(array.data() + code * size, &code, size);
    return array;
  }
};

TEST_P(ConvertOnTarget, RoundsAsTheReferenceAtEveryBoundary) {
  const std::vector<float> boundaries = rounding_boundaries(dtype());
  EXPECT_EQ(narrowed(boundaries, Overflow::to_infinity, false, false), "");
  EXPECT_EQ(narrowed(boundaries, Overflow::saturate, true, false), "");
}

TEST_P(ConvertOnTarget, OverflowsAndSaturatesAsTheReference) {
  const std::vector<float> in = floats_of_all_kinds(5000);
  for (const Overflow overflow : {Overflow::to_infinity, Overflow::saturate}) {
    EXPECT_EQ(narrowed(in, overflow, false, false), "");
    EXPECT_EQ(narrowed(in, overflow, true, false), "");
    EXPECT_EQ(narrowed(in, overflow, false, true), "") << "streamed";
  }
}

TEST_P(ConvertOnTarget, WidensEveryCode) {
  EXPECT_EQ(widened(every_code(), false, false), "");
  EXPECT_EQ(widened(every_code(), true, false), "");
  EXPECT_EQ(widened(every_code(), false, true), "") << "streamed";
}

TEST_P(ConvertOnTarget, TakesEveryLengthAndAlignment) {
  const std::vector<float> source = floats_of_all_kinds(300);
  const std::vector<std::byte> codes = every_code();
  for (std::size_t length = 0; length < 300; length += length < 140 ? 1 : 13) {
    const std::vector<float> in(source.begin(), source.begin() + static_cast<std::ptrdiff_t>(length));
    const std::vector<std::byte> wire(
        codes.begin(), codes.begin() + static_cast<std::ptrdiff_t>(std::min(length * size_of(dtype()), codes.size())));
    for (const bool stream : {false, true}) {
      ASSERT_EQ(narrowed(in, Overflow::to_infinity, false, stream, length % 64), "") << length;
      ASSERT_EQ(widened(wire, false, stream, 4 * length % 64), "") << length;
      ASSERT_EQ(widened(wire, false, stream, length % 64), "") << length;
    }
  }
}

TEST_P(ConvertOnTarget, AccumulatesInFloat32) {
  const std::vector<std::byte> wire = every_code();
  for (const std::size_t length : {std::size_t{0}, std::size_t{1}, std::size_t{15}, std::size_t{63}, std::size_t{64},
                                   std::size_t{65}, wire.size() / size_of(dtype())}) {
    std::vector<float> expected = floats_of_all_kinds(wire.size());
    std::vector<float> actual = expected;
    ConvertCounters expected_counters, counters;
    reference::convert_accumulate(dtype(), wire.data(), expected.data(), length, {.counters = &expected_counters});
    GetParam().kernels().accumulate[1](
        {.in = wire.data(), .out = actual.data(), .count = length, .counters = &counters, .stream = false});
    const auto* const expected_bytes = reinterpret_cast<const std::byte*>(expected.data());
    ASSERT_EQ(test::difference(DType::float32, expected_bytes, reinterpret_cast<const std::byte*>(actual.data()),
                               expected.size()),
              "");
    EXPECT_EQ(counters.nans, expected_counters.nans);
    EXPECT_EQ(counters.overflows, expected_counters.overflows);

    std::vector<float> uncounted = floats_of_all_kinds(wire.size());
    GetParam().kernels().accumulate[0](
        {.in = wire.data(), .out = uncounted.data(), .count = length, .counters = nullptr, .stream = false});
    ASSERT_EQ(test::difference(DType::float32, expected_bytes, reinterpret_cast<const std::byte*>(uncounted.data()),
                               expected.size()),
              "");
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, ConvertOnTarget, testing::ValuesIn(all_cases()), name_of);

// ---- int8 with scales

class QuantizeOnTarget : public testing::TestWithParam<Target> {
 protected:
  static const ConvertTable& table() { return convert_table(GetParam()); }
};

std::vector<float> finite_floats(std::size_t count, float magnitude) {
  std::mt19937_64 random(count);
  std::uniform_real_distribution<float> uniform(-magnitude, magnitude);
  std::vector<float> values(count);
  for (float& value : values) value = uniform(random);
  return values;
}

void expect_same_floats(const std::vector<float>& expected, const std::vector<float>& actual) {
  EXPECT_EQ(test::difference(DType::float32, reinterpret_cast<const std::byte*>(expected.data()),
                             reinterpret_cast<const std::byte*>(actual.data()), expected.size()),
            "");
}

TEST_P(QuantizeOnTarget, GivesTheReferencesBitsForEveryBlockAndLength) {
  for (std::size_t block = kScaleBlockMin; block <= kScaleBlockMax; block += kScaleBlockMin) {
    for (const std::size_t length :
         {std::size_t{0}, std::size_t{1}, block - 1, block, block + 1, 3 * block, 5 * block + 7}) {
      for (const float magnitude : {1.0F, 3e38F, 1e-37F, 1e-40F, 0.0F}) {
        const std::vector<float> in = finite_floats(length, magnitude);
        std::vector<std::int8_t> expected(length), actual(length);
        std::vector<float> expected_scales(scales_count(length, block)), scales(expected_scales.size());
        reference::quantize(in.data(), expected.data(), expected_scales.data(), length, block);
        table().quantize({.in = in.data(),
                          .out = actual.data(),
                          .scales = scales.data(),
                          .count = length,
                          .block = block,
                          .counters = nullptr,
                          .stream = false});
        ASSERT_EQ(actual, expected) << "block " << block << " length " << length << " magnitude " << magnitude;
        expect_same_floats(expected_scales, scales);

        std::vector<float> expected_floats(length), floats(length), expected_sum = in, sum = in;
        reference::dequantize(expected.data(), expected_scales.data(), expected_floats.data(), length, block);
        table().dequantize({.in = actual.data(),
                            .out = floats.data(),
                            .scales = scales.data(),
                            .count = length,
                            .block = block,
                            .counters = nullptr,
                            .stream = length % 2 == 0});
        expect_same_floats(expected_floats, floats);
        reference::dequantize_accumulate(expected.data(), expected_scales.data(), expected_sum.data(), length, block);
        table().dequantize_accumulate({.in = actual.data(),
                                       .out = sum.data(),
                                       .scales = scales.data(),
                                       .count = length,
                                       .block = block,
                                       .counters = nullptr,
                                       .stream = false});
        expect_same_floats(expected_sum, sum);
      }
    }
  }
}

TEST_P(QuantizeOnTarget, StaysWithinTheErrorThatTheContractStates) {
  constexpr std::size_t kBlock = 64;
  const std::vector<float> in = finite_floats(100 * kBlock, 5.0F);
  std::vector<std::int8_t> steps(in.size());
  std::vector<float> scales(scales_count(in.size(), kBlock));
  table().quantize({.in = in.data(),
                    .out = steps.data(),
                    .scales = scales.data(),
                    .count = in.size(),
                    .block = kBlock,
                    .counters = nullptr,
                    .stream = false});
  for (std::size_t i = 0; i < in.size(); ++i) {
    const double scale = scales[i / kBlock];
    ASSERT_LE(std::fabs(in[i] - steps[i] * scale), (0.5 + 0x1p-15) * scale) << i;
  }
}

TEST_P(QuantizeOnTarget, MarksABlockThatIsNotFiniteAndCounts) {
  constexpr std::size_t kBlock = 32;
  std::vector<float> in = finite_floats(4 * kBlock, 1.0F);
  in[kBlock + 3] = std::numeric_limits<float>::infinity();
  in[3 * kBlock] = std::numeric_limits<float>::quiet_NaN();
  in[3 * kBlock + 31] = -std::numeric_limits<float>::infinity();
  std::vector<std::int8_t> steps(in.size());
  std::vector<float> scales(4);
  ConvertCounters counters;
  table().quantize({.in = in.data(),
                    .out = steps.data(),
                    .scales = scales.data(),
                    .count = in.size(),
                    .block = kBlock,
                    .counters = &counters,
                    .stream = false});
  EXPECT_FALSE(std::isnan(scales[0]));
  EXPECT_TRUE(std::isnan(scales[1]));
  EXPECT_FALSE(std::isnan(scales[2]));
  EXPECT_TRUE(std::isnan(scales[3]));
  EXPECT_EQ(steps[kBlock + 4], 0);
  EXPECT_EQ(counters.overflows, 2U);
  EXPECT_EQ(counters.nans, 1U);
}

INSTANTIATE_TEST_SUITE_P(Kernels, QuantizeOnTarget,
                         testing::ValuesIn(available_targets().begin(), available_targets().end()),
                         [](const auto& target) { return std::string(to_string(target.param)); });

// ---- Counts of NaN, infinities and subnormal numbers

class CountOnTarget : public testing::TestWithParam<Target> {};

TEST_P(CountOnTarget, CountsAsTheReference) {
  for (std::uint8_t index = 0; index < kDTypeCount; ++index) {
    const auto dtype = DType{index};
    const CountFunction function = convert_table(GetParam()).count_values[index];
    if (function == nullptr) continue;
    for (const std::size_t length : {0U, 1U, 31U, 64U, 65U, 1000U, 100'000U}) {
      std::mt19937_64 random(length);
      const std::vector<std::byte> data = test::values(dtype, length, random);
      ValueCounts expected, found;
      reference::count_values(dtype, data.data(), length, expected);
      function(data.data(), length, found);
      EXPECT_EQ(found, expected) << to_string(dtype) << " " << length;
    }
  }
}

TEST_P(CountOnTarget, CountsEveryPatternOfTheSmallFloats) {
  for (const DType dtype : {DType::float16, DType::bfloat16, DType::float8_e4m3, DType::float8_e5m2}) {
    const std::size_t patterns = std::size_t{1} << 8 * size_of(dtype);
    std::vector<std::byte> data(patterns * size_of(dtype));
    for (std::size_t i = 0; i < patterns; ++i) std::memcpy(&data[i * size_of(dtype)], &i, size_of(dtype));
    ValueCounts expected, found;
    reference::count_values(dtype, data.data(), patterns, expected);
    convert_table(GetParam()).count_values[static_cast<std::size_t>(dtype)](data.data(), patterns, found);
    EXPECT_EQ(found, expected) << to_string(dtype);
    EXPECT_GT(found.nans, 0U) << to_string(dtype);
    EXPECT_GT(found.subnormals, 0U) << to_string(dtype);
  }
}

// More equal values than a lane of bytes can count.
TEST_P(CountOnTarget, CountsManyOfOneKind) {
  constexpr std::size_t kCount = 100'001;
  const auto counts = [&](DType dtype, std::byte value) {
    const std::vector<std::byte> data(kCount, value);
    ValueCounts found;
    convert_table(GetParam()).count_values[static_cast<std::size_t>(dtype)](data.data(), kCount, found);
    return found;
  };
  EXPECT_EQ(counts(DType::float8_e5m2, std::byte{0x7F}), (ValueCounts{.nans = kCount}));
  EXPECT_EQ(counts(DType::float8_e5m2, std::byte{0xFC}), (ValueCounts{.infinities = kCount}));
  EXPECT_EQ(counts(DType::float8_e4m3, std::byte{0x87}), (ValueCounts{.subnormals = kCount}));
  EXPECT_EQ(counts(DType::float8_e4m3, std::byte{0x80}), ValueCounts{}) << "-0 is a zero";
}

INSTANTIATE_TEST_SUITE_P(Kernels, CountOnTarget,
                         testing::ValuesIn(available_targets().begin(), available_targets().end()),
                         [](const auto& target) { return std::string(to_string(target.param)); });

// ---- The public calls

TEST(Convert, AllowsPairsOfFloat32AndASmallerFloat) {
  EXPECT_TRUE(can_convert(DType::float32, DType::float8_e4m3));
  EXPECT_TRUE(can_convert(DType::bfloat16, DType::float32));
  EXPECT_FALSE(can_convert(DType::float32, DType::float32));
  EXPECT_FALSE(can_convert(DType::float16, DType::bfloat16));
  EXPECT_FALSE(can_convert(DType::float32, DType::int8));
}

TEST(Convert, GoesThereAndBackThroughThePublicCalls) {
  const float in[] = {1.0F, -2.5F, 70000.0F};
  std::uint16_t wire[3];
  float back[3] = {0, 0, 0};
  ConvertCounters counters;
  convert(DType::float32, DType::float16, in, wire, 3, {.overflow = Overflow::saturate, .counters = &counters});
  convert(DType::float16, DType::float32, wire, back, 3);
  convert_accumulate(DType::float16, wire, back, 3);
  EXPECT_EQ(back[0], 2.0F);
  EXPECT_EQ(back[1], -5.0F);
  EXPECT_EQ(back[2], 2 * 65504.0F);
  EXPECT_EQ(counters.overflows, 1U);
}

TEST(Convert, QuantizesThereAndBackThroughThePublicCalls) {
  const std::vector<float> in = finite_floats(100, 1.0F);
  std::vector<std::int8_t> steps(100);
  std::vector<float> scales(scales_count(100, 64)), back(100), sum(100, 1.0F);
  quantize(in.data(), steps.data(), scales.data(), 100, 64);
  dequantize(steps.data(), scales.data(), back.data(), 100, 64);
  dequantize_accumulate(steps.data(), scales.data(), sum.data(), 100, 64);
  for (std::size_t i = 0; i < 100; ++i) {
    EXPECT_NEAR(back[i], in[i], 0.004);
    EXPECT_EQ(sum[i], 1.0F + back[i]);
  }
}

TEST(CountValues, FindsTheFirstNaN) {
  std::vector<float> data(10'007, 1.0F);
  EXPECT_EQ(first_nan(DType::float32, data.data(), data.size()), data.size());
  EXPECT_EQ(first_nan(DType::float32, data.data(), 0), 0U);
  EXPECT_EQ(first_nan(DType::int32, data.data(), data.size()), data.size());
  for (const std::size_t at : {10'006U, 5003U, 17U, 0U}) {
    data[at] = -std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(first_nan(DType::float32, data.data(), data.size()), at);
  }
}

TEST(ReduceCounted, ReducesAndCountsWhatIsNotFinite) {
  constexpr std::size_t kCount = 10000;
  std::vector<float> first(kCount, 1.0F), second(kCount, 2.0F), out(kCount);
  first[17] = std::numeric_limits<float>::max();
  second[17] = std::numeric_limits<float>::max();
  first[9999] = std::numeric_limits<float>::quiet_NaN();
  const void* inputs[] = {first.data(), second.data()};
  ValueCounts found;
  reduce_counted(DType::float32, ReduceOp::sum, inputs, out.data(), kCount, 1, found);
  EXPECT_EQ(found.infinities, 1U);
  EXPECT_EQ(found.nans, 1U);
  EXPECT_EQ(out[0], 3.0F);
  EXPECT_EQ(out[9998], 3.0F);
}

}  // namespace
}  // namespace tributary::kernels
