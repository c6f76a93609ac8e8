// The reference against values that were calculated by hand or are printed in the standards. All other tests rely on
// it.
#include "kernels/reference/reduce.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/reference/float_format.h"

namespace tributary::kernels::reference {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(ReferenceFormat, DecodesTheValuesThatTheStandardsPrint) {
  const FloatFormat half = format_of(DType::float16);
  EXPECT_EQ(decode(half, 0x3C00), 1.0F);
  EXPECT_EQ(decode(half, 0x7BFF), 65504.0F);
  EXPECT_EQ(decode(half, 0x0001), 0x1p-24F);
  EXPECT_EQ(decode(half, 0x0400), 0x1p-14F);
  EXPECT_EQ(decode(half, 0xFC00), -kInfinity);
  EXPECT_TRUE(std::isnan(decode(half, 0x7E00)));

  const FloatFormat brain = format_of(DType::bfloat16);
  EXPECT_EQ(decode(brain, 0x3F80), 1.0F);
  EXPECT_EQ(decode(brain, 0x0001), 0x1p-133F);

  const FloatFormat e4m3 = format_of(DType::float8_e4m3);
  EXPECT_EQ(decode(e4m3, 0x7E), 448.0F);
  EXPECT_EQ(decode(e4m3, 0x01), 0x1p-9F);
  EXPECT_EQ(decode(e4m3, 0x08), 0x1p-6F);
  EXPECT_TRUE(std::isnan(decode(e4m3, 0xFF)));

  const FloatFormat e5m2 = format_of(DType::float8_e5m2);
  EXPECT_EQ(decode(e5m2, 0x7B), 57344.0F);
  EXPECT_EQ(decode(e5m2, 0x01), 0x1p-16F);
  EXPECT_EQ(decode(e5m2, 0x7C), kInfinity);
}

TEST(ReferenceFormat, EncodesEveryCodeBackToItself) {
  for (const DType dtype : {DType::float16, DType::bfloat16, DType::float8_e4m3, DType::float8_e5m2}) {
    const FloatFormat format = format_of(dtype);
    for (std::uint32_t code = 0; code < 2 * format.sign_bit(); ++code) {
      const float value = decode(format, code);
      const std::uint32_t expected = std::isnan(value) ? format.quiet_nan() | (code & format.sign_bit()) : code;
      ASSERT_EQ(encode(format, value), expected) << to_string(dtype);
    }
  }
}

TEST(ReferenceFormat, RoundsToNearestAndTiesToEven) {
  const FloatFormat half = format_of(DType::float16);
  EXPECT_EQ(encode(half, 1.0F + 0x1p-11F), 0x3C00U);             // half way between two values: down to the even one
  EXPECT_EQ(encode(half, 1.0F + 3 * 0x1p-11F), 0x3C02U);         // half way between two values: up to the even one
  EXPECT_EQ(encode(half, 1.0F + 0x1p-11F + 0x1p-23F), 0x3C01U);  // a little more than half way
  EXPECT_EQ(encode(half, 0x1p-25F), 0U);                         // half of the least subnormal
  EXPECT_EQ(encode(half, std::nextafter(0x1p-25F, 1.0F)), 1U);
  EXPECT_EQ(encode(half, -0x1p-26F), 0x8000U);
}

TEST(ReferenceFormat, OverflowsOrSaturatesAsAsked) {
  const FloatFormat half = format_of(DType::float16);
  EXPECT_EQ(encode(half, 65519.99F), 0x7BFFU);
  EXPECT_EQ(encode(half, 65520.0F), 0x7C00U);
  EXPECT_EQ(encode(half, -65520.0F, Overflow::saturate), 0xFBFFU);
  EXPECT_EQ(encode(half, kInfinity, Overflow::saturate), 0x7BFFU);

  const FloatFormat e4m3 = format_of(DType::float8_e4m3);
  EXPECT_EQ(encode(e4m3, 464.0F), 0x7EU);  // half way to 480, which the format lacks; 448 is even
  EXPECT_EQ(encode(e4m3, 465.0F), 0x7FU);
  EXPECT_EQ(encode(e4m3, -465.0F, Overflow::saturate), 0xFEU);
  EXPECT_EQ(encode(e4m3, -kInfinity), 0xFFU);
}

template <class T, std::size_t kCount>
T reduced(DType dtype, ReduceOp op, const std::array<T, kCount>& values, std::uint32_t divisor = 1) {
  std::array<const void*, kCount> inputs;
  for (std::size_t i = 0; i < kCount; ++i) inputs[i] = &values[i];
  T out;
  reduce(dtype, op, inputs, &out, 1, divisor);
  return out;
}

TEST(ReferenceReduce, WrapsIntegers) {
  EXPECT_EQ(reduced<std::int8_t>(DType::int8, ReduceOp::sum, std::array<std::int8_t, 2>{127, 1}), -128);
  EXPECT_EQ(reduced<std::uint32_t>(DType::uint32, ReduceOp::prod, std::array<std::uint32_t, 2>{0x10000, 0x10001}),
            0x10000U);
  EXPECT_EQ(reduced<std::int64_t>(DType::int64, ReduceOp::sum,
                                  std::array{std::numeric_limits<std::int64_t>::max(), std::int64_t{2}}),
            std::numeric_limits<std::int64_t>::min() + 1);
}

TEST(ReferenceReduce, CombinesBitsAndTruthValues) {
  constexpr std::array<std::uint16_t, 2> kBits{0xFF0C, 0x0F0A};
  const auto bits = [&](ReduceOp op) { return reduced<std::uint16_t>(DType::uint16, op, kBits); };
  EXPECT_EQ(bits(ReduceOp::band), 0x0F08);
  EXPECT_EQ(bits(ReduceOp::bor), 0xFF0E);
  EXPECT_EQ(bits(ReduceOp::bxor), 0xF006);
  const auto truth = [](ReduceOp op, std::int16_t a, std::int16_t b) {
    return reduced<std::int16_t>(DType::int16, op, std::array{a, b});
  };
  for (const std::int16_t a : {std::int16_t{0}, std::int16_t{-2}}) {
    for (const std::int16_t b : {std::int16_t{0}, std::int16_t{256}}) {
      EXPECT_EQ(truth(ReduceOp::land, a, b), a != 0 && b != 0 ? 1 : 0);
      EXPECT_EQ(truth(ReduceOp::lor, a, b), a != 0 || b != 0 ? 1 : 0);
      EXPECT_EQ(truth(ReduceOp::lxor, a, b), (a != 0) != (b != 0) ? 1 : 0);
    }
  }
}

TEST(ReferenceReduce, AveragesIntegersTowardZero) {
  EXPECT_EQ(reduced<std::int32_t>(DType::int32, ReduceOp::avg, std::array<std::int32_t, 3>{-1, -2, -4}, 3), -2);
  EXPECT_EQ(reduced<std::uint8_t>(DType::uint8, ReduceOp::avg, std::array<std::uint8_t, 2>{255, 255}, 2),
            127);  // the first sum wraps to 254
}

TEST(ReferenceReduce, RoundsASumOfHalvesOnce) {
  // 2048 + 1 + 1 is 2050 in float32; rounding after each step would stay at 2048.
  EXPECT_EQ(reduced<std::uint16_t>(DType::float16, ReduceOp::sum, std::array<std::uint16_t, 3>{0x6800, 0x3C00, 0x3C00}),
            0x6801);
}

TEST(ReferenceReduce, MinAndMaxPropagateNaNAndOrderTheZeros) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(reduced(DType::float32, ReduceOp::min, std::array{1.0F, nan, -kInfinity})));
  EXPECT_TRUE(std::isnan(reduced(DType::float32, ReduceOp::max, std::array{nan, kInfinity})));
  EXPECT_TRUE(std::signbit(reduced(DType::float32, ReduceOp::min, std::array{0.0F, -0.0F})));
  EXPECT_FALSE(std::signbit(reduced(DType::float32, ReduceOp::max, std::array{-0.0F, 0.0F})));
}

}  // namespace
}  // namespace tributary::kernels::reference
