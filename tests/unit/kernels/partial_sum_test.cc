// Sums that go through forms beside exact_sum(), for every family of inputs and random trees.
#include "tributary/kernels/partial_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/cpu/partial_form.h"
#include "kernels/reference/exact_sum.h"
#include "tests/unit/kernels/exact_inputs.h"
#include "tributary/kernels/exact.h"
#include "tributary/protocol/frame.h"

namespace tributary::kernels {
namespace {

using Bytes = std::vector<std::byte>;

Bytes form_of(DType dtype, const std::vector<PartialInput>& inputs, std::size_t count) {
  Bytes form(form_bytes_max(dtype, count));
  form.resize(add_partial_sums(dtype, inputs, count, form));
  return form;
}

class Forms : public testing::TestWithParam<DType> {
 protected:
  /// Sums the arrays [first, last) in a random tree: each is a rank's values or the form of a part of them.
  Bytes tree(const std::vector<Bytes>& arrays, std::size_t first, std::size_t last, std::size_t count) {
    std::vector<Bytes> forms;
    std::vector<PartialInput> inputs;
    forms.reserve(last - first);
    while (first < last) {
      const std::size_t part =
          std::uniform_int_distribution<std::size_t>(1, std::max<std::size_t>(1, (last - first) / 2))(random_);
      if (part == 1 && random_() % 2 == 0) {
        inputs.push_back({arrays[first], false});
      } else {
        forms.push_back(part == 1 ? form_of(GetParam(), {{arrays[first], false}}, count)
                                  : tree(arrays, first, first + part, count));
        inputs.push_back({forms.back(), true});
      }
      first += part;
    }
    return form_of(GetParam(), inputs, count);
  }

  std::mt19937_64 random_{7};
};

TEST_P(Forms, RoundToTheBitsOfExactSumAfterEveryTree) {
  const DType dtype = GetParam();
  for (const test::Family family : test::kFamilies) {
    for (const std::size_t inputs : {1U, 2U, 3U, 5U, 8U, 33U}) {
      const std::size_t count = inputs == 3 ? 256 : inputs == 5 ? 1 : 700;
      const auto arrays = test::exact_inputs(dtype, family, inputs, count, inputs);
      std::vector<const void*> pointers;
      for (const auto& array : arrays) pointers.push_back(array.data());
      const std::size_t half = (inputs + 1) / 2;
      const Bytes form = tree(arrays, 0, half, count);
      ASSERT_EQ(partial_sum_elements(dtype, form), count);
      std::vector<PartialInput> at_root{{form, true}};
      for (std::size_t k = half; k < inputs; ++k) at_root.push_back({arrays[k], false});
      for (const std::uint32_t divisor : {1U, static_cast<std::uint32_t>(inputs), 3U}) {
        Bytes want(count * size_of(dtype)), got(count * size_of(dtype));
        exact_sum(dtype, pointers, want.data(), count, divisor);
        round_partial_sums(dtype, at_root, got.data(), count, divisor);
        const auto differs = std::ranges::mismatch(got, want).in1 - got.begin();
        ASSERT_EQ(differs, std::ssize(got))
            << to_string(dtype) << " " << test::to_string(family) << ", " << inputs << " inputs by " << divisor;
      }
    }
  }
}

TEST_P(Forms, HaveTheSameBytesAfterEveryTree) {
  for (const test::Family family : test::kFamilies) {
    const auto arrays = test::exact_inputs(GetParam(), family, 9, 300, 1);
    const Bytes first = tree(arrays, 0, 9, 300);
    for (int i = 0; i < 5; ++i) ASSERT_EQ(tree(arrays, 0, 9, 300), first) << test::to_string(family);
  }
}

TEST_P(Forms, NeverExceedTheLargestSize) {
  const DType dtype = GetParam();
  for (const std::size_t bytes : {0U, 4U, 64U, 300U, 4096U, 16384U, 65536U, 1U << 20U}) {
    const std::size_t elements = form_elements_max(dtype, bytes);
    EXPECT_TRUE(elements == 0 || form_bytes_max(dtype, elements) <= bytes) << bytes;
    EXPECT_GT(form_bytes_max(dtype, elements + 1), bytes);
  }
}

TEST_P(Forms, OfACutOrChangedLengthAreRefused) {
  const auto arrays = test::exact_inputs(GetParam(), test::Family::any, 2, 300, 1);
  const Bytes form = form_of(GetParam(), {{arrays[0], false}, {arrays[1], false}}, 300);
  for (std::size_t bytes = 0; bytes < form.size(); ++bytes)
    ASSERT_EQ(partial_sum_elements(GetParam(), std::span(form).first(bytes)), std::nullopt) << bytes;
  Bytes longer = form;
  longer.push_back(std::byte{0});
  EXPECT_EQ(partial_sum_elements(GetParam(), longer), std::nullopt);
}

TEST_P(Forms, OfNumbersBeyondTheRangeAreRefused) {
  const DType dtype = GetParam();
  const FormRange range = form_range_of(dtype);
  const auto form = [](int exponent, unsigned width, unsigned mark) {
    Bytes bytes(12 + width);
    bytes[0] = bytes[4] = std::byte{1};
    const auto stored = static_cast<std::int16_t>(exponent);
    std::memcpy(&bytes[8], &stored, sizeof(stored));
    bytes[10] = static_cast<std::byte>(width);
    bytes[11] = static_cast<std::byte>(mark);
    return bytes;
  };
  EXPECT_EQ(partial_sum_elements(dtype, form(range.least, 1, 0)), 1U);
  EXPECT_EQ(partial_sum_elements(dtype, form(range.least - 1, 1, 0)), std::nullopt);
  EXPECT_EQ(partial_sum_elements(dtype, form(range.end() - 8, 1, 0)), 1U);
  EXPECT_EQ(partial_sum_elements(dtype, form(range.end() - 7, 1, 0)), std::nullopt);
  EXPECT_EQ(partial_sum_elements(dtype, form(range.least, 1, 2)), std::nullopt) << "a width of 513 bytes";
  Bytes marked = form(0, 1, partial::kMarked >> 8U);
  marked[10] = std::byte{0};
  marked[12] = std::byte{15};
  EXPECT_EQ(partial_sum_elements(dtype, marked), 1U);
  marked[12] = std::byte{16};
  EXPECT_EQ(partial_sum_elements(dtype, marked), std::nullopt) << "an unknown mark";
}

TEST_P(Forms, CountTheRanksOfTheirValues) {
  const DType dtype = GetParam();
  const auto arrays = test::exact_inputs(dtype, test::Family::ordinary, 5, 3, 1);
  const Bytes two = form_of(dtype, {{arrays[0], false}, {arrays[1], false}}, 3);
  const Bytes five = form_of(dtype, {{arrays[2], false}, {two, true}, {arrays[3], false}, {arrays[4], false}}, 3);
  EXPECT_EQ(ranks_of(dtype, {arrays[0], false}), 1U);
  EXPECT_EQ(ranks_of(dtype, {two, true}), 2U);
  EXPECT_EQ(ranks_of(dtype, {five, true}), 5U);
  Bytes wrong = two;
  const auto say = [&wrong](std::uint32_t ranks) { std::memcpy(&wrong[4], &ranks, sizeof(ranks)); };
  say(0);
  EXPECT_EQ(partial_sum_elements(dtype, wrong), std::nullopt);
  say(kRanksMax + 1);
  EXPECT_EQ(partial_sum_elements(dtype, wrong), std::nullopt);
  say(kRanksMax);
  EXPECT_EQ(partial_sum_elements(dtype, wrong), 3U);
  EXPECT_EQ(ranks_of(dtype, {form_of(dtype, {{wrong, true}, {wrong, true}}, 3), true}), kRanksMax);
}

TEST_P(Forms, OfAnyNumberOfInputsHaveTheSameBytes) {
  const DType dtype = GetParam();
  const auto arrays = test::exact_inputs(dtype, test::Family::any, 150, 300, 1);
  std::vector<PartialInput> inputs;
  for (const Bytes& array : arrays) inputs.push_back({array, false});
  ManyPartialSums sums;
  for (int turn = 0; turn < 2; ++turn) {
    Bytes form(form_bytes_max(dtype, 300));
    form.resize(sums.add(dtype, inputs, 300, form));
    EXPECT_EQ(form, tree(arrays, 0, 150, 300));
    Bytes want(300 * size_of(dtype)), got(want.size());
    round_partial_sums(dtype, std::vector<PartialInput>{{form, true}}, want.data(), 300, 150);
    sums.round(dtype, inputs, got.data(), 300, 150);
    EXPECT_EQ(got, want);
  }
}

// 64 liars send the largest number that a form may hold: their sum has no form.
TEST_P(Forms, BeyondTheRangeGiveNaN) {
  const DType dtype = GetParam();
  const Bytes bytes = test::form_of_one(form_range_of(dtype).end() - 8, 1, 127);
  const std::vector<PartialInput> liars(kPartialInputsMax, {bytes, true});
  const Bytes form = form_of(dtype, liars, 1);
  ASSERT_EQ(partial_sum_elements(dtype, form), 1U);
  const Bytes one = test::exact_inputs(dtype, test::Family::ordinary, 1, 1, 1)[0];
  std::vector<std::byte> got(size_of(dtype));
  round_partial_sums(dtype, std::vector<PartialInput>{{form, true}, {one, false}}, got.data(), 1, 1);
  const Bytes nan = [&] {
    const auto special = [&] {
      switch (dtype) {
        case DType::float64:
          return std::vector<std::uint8_t>{0, 0, 0, 0, 0, 0, 0xF8, 0x7F};
        case DType::float32:
          return std::vector<std::uint8_t>{0, 0, 0xC0, 0x7F};
        case DType::float16:
          return std::vector<std::uint8_t>{0, 0x7E};
        case DType::bfloat16:
          return std::vector<std::uint8_t>{0xC0, 0x7F};
        case DType::float8_e4m3:
          return std::vector<std::uint8_t>{0x7F};
        default:
          return std::vector<std::uint8_t>{0x7E};
      }
    }();
    Bytes out;
    for (const auto byte : special) out.push_back(static_cast<std::byte>(byte));
    return out;
  }();
  EXPECT_EQ(got, nan);
}

// Two liars send a number above all values, and one so far below it that their sum takes 65 bits.
TEST_P(Forms, AboveAllValuesGiveInfinity) {
  const DType dtype = GetParam();
  const FormRange range = form_range_of(dtype);
  const Bytes small = test::form_of_one(std::max(range.least, range.end() - 62), 1, 1);
  const Bytes large = test::form_of_one(range.end() - 8, 1, 127);
  const Bytes zero(size_of(dtype));
  for (const std::uint32_t divisor : {1U, 3U}) {
    Bytes out(size_of(dtype));
    const std::vector<PartialInput> inputs{{small, true}, {large, true}, {zero, false}};
    round_partial_sums(dtype, inputs, out.data(), 1, divisor);
    const double got = reference::value_at(dtype, out.data(), 0);
    EXPECT_TRUE(dtype == DType::float8_e4m3 ? std::isnan(got) : got == std::numeric_limits<double>::infinity())
        << got << " by " << divisor;
  }
}

// A liar marks a number as -0, in forms of every length of sums.
TEST_P(Forms, OfANumberMarkedMinusZeroHaveTheNumber) {
  const DType dtype = GetParam();
  const FormRange range = form_range_of(dtype);
  for (unsigned width = 1; width <= 40 && 8 * static_cast<int>(width) <= range.end(); ++width) {
    const auto sum = [&](std::int8_t first, std::int8_t second) {
      const Bytes a = test::form_of_one(0, width, first, reference::ExactSum::kMinusZero);
      const Bytes b = test::form_of_one(0, width, second, reference::ExactSum::kMinusZero);
      Bytes out(size_of(dtype));
      round_partial_sums(dtype, std::vector<PartialInput>{{a, true}, {b, true}}, out.data(), 1, 1);
      return reference::value_at(dtype, out.data(), 0);
    };
    EXPECT_EQ(sum(1, 0), 1) << width;
    EXPECT_EQ(sum(1, -3), -2) << width;
    for (const double zero : {sum(0, 0), sum(1, -1)}) {
      EXPECT_EQ(zero, 0) << width;
      EXPECT_TRUE(std::signbit(zero)) << width << " bytes: all that is left are the marks";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(PartialSum, Forms, testing::ValuesIn(test::kFloats),
                         [](const auto& the) { return std::string(to_string(the.param)); });

TEST(PartialSumDeathTest, AFormCountsItsElementsIn32Bits) {
  EXPECT_DEATH(static_cast<void>(add_partial_sums(DType::float32, {}, std::size_t{1} << 32U, {})),
               "a form of 4294967296 elements, more than");
}

// Values of about the same size need few bytes more than their type: the range of the block, and no constant.
TEST(PartialSum, OfOrdinaryFloat32NeedFewBytes) {
  std::mt19937_64 random(1);
  std::normal_distribution<float> gaussian;
  std::vector<float> a(4096), b(4096);
  for (auto& v : a) v = gaussian(random);
  for (auto& v : b) v = gaussian(random);
  const auto bytes = [](const std::vector<float>& v) { return std::as_bytes(std::span(v)); };
  EXPECT_LE(form_of(DType::float32, {{bytes(a), false}, {bytes(b), false}}, 4096).size(), 4096U * 11 / 2);
  for (auto& v : a) v = 3;
  EXPECT_LE(form_of(DType::float32, {{bytes(a), false}, {bytes(a), false}}, 4096).size(), 4096U * 5 / 4)
      << "whole numbers have no bits after the point";
}

// The first element passes through large numbers, which no number of 128 bits holds, and leaves -128 units.
TEST(PartialSum, OfNumbersThatCancelIsAsShortAsWithoutThem) {
  const float unit = 0x1p-149F, large = 0x1p100F;
  const auto bytes = [](const std::vector<float>& v) { return std::as_bytes(std::span(v)); };
  const std::vector<float> a{large, unit}, b{-large, 0}, c{-128 * unit, 0}, zeros{0, 0}, second{0, unit};
  EXPECT_EQ(form_of(DType::float32, {{bytes(a), false}, {bytes(b), false}, {bytes(c), false}}, 2),
            form_of(DType::float32, {{bytes(second), false}, {bytes(zeros), false}, {bytes(c), false}}, 2));
}

// A third of the sum lies above the middle of two neighbours by less than float64 has bits for.
TEST(PartialSum, AnAverageOfLongSumsIsRoundedOnce) {
  const auto average = [](std::vector<double> values, std::uint32_t divisor) {
    std::vector<PartialInput> inputs;
    for (const double& value : values) inputs.push_back({std::as_bytes(std::span(&value, 1)), false});
    double out = 0;
    round_partial_sums(DType::float64, inputs, &out, 1, divisor);
    return out;
  };
  EXPECT_EQ(average({3, 0x3p-53, -0x1p-60, 0x1.0000000000001p-60}, 3), 1 + 0x1p-52) << "2^-112 is left";
  EXPECT_EQ(average({3, 0x3p-53, 0x1p-60, -0x1.0000000000001p-60}, 3), 1) << "2^-112 is missing";
  EXPECT_EQ(average({3, 0x3p-53, 0x1p-60, -0x1p-60}, 3), 1) << "the middle goes to the even neighbour";
  EXPECT_EQ(average({-3, -0x3p-53, 0x1p-60, -0x1.0000000000001p-60}, 3), -1 - 0x1p-52);
  EXPECT_EQ(average({0x1p-1074, 0x1p-1074}, 3), 0x1p-1074) << "two thirds of the smallest value";
}

}  // namespace
}  // namespace tributary::kernels
