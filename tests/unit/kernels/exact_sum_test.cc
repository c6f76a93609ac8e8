// Every target that this machine can run, against the long fixed-point numbers of the reference: bits must be equal for
// every order of the inputs. exact_oracle_test.cc compares the reference with MPFR.
#include "tributary/kernels/exact.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "kernels/cpu/exact_table.h"
#include "kernels/reference/exact_sum.h"
#include "tests/unit/kernels/exact_inputs.h"
#include "tests/unit/kernels/values.h"
#include "tributary/kernels/reduce_step.h"
#include "tributary/protocol/numerics.h"

namespace tributary::kernels {
namespace {

using test::Family;

std::vector<const void*> pointers(const std::vector<std::vector<std::byte>>& arrays) {
  std::vector<const void*> all;
  for (const auto& array : arrays) all.push_back(array.data());
  return all;
}

/// Returns an empty text if all targets give the reference's bits, for the inputs in their order and in the reverse
/// order.
std::string compare(DType dtype, Family family, std::size_t inputs, std::size_t count, std::uint32_t divisor) {
  const auto arrays = test::exact_inputs(dtype, family, inputs, count, 1000 * inputs + count);
  std::vector<const void*> ordered = pointers(arrays);
  const std::size_t bytes = count * size_of(dtype);
  std::vector<std::byte> want(bytes);
  reference::exact_sum(dtype, ordered, want.data(), 0, count, divisor);
  for (const Target target : available_targets()) {
    for (int turn = 0; turn < 2; ++turn, std::ranges::reverse(ordered)) {
      test::GuardedArray out(bytes, 1 + inputs % 7);
      exact_sum_by(exact_table(target), dtype, ordered, out.data(), count, divisor, turn == 1);
      const bool same = bytes == 0 || std::memcmp(want.data(), out.data(), bytes) == 0;
      if (same && out.guards_intact()) continue;
      return std::string(to_string(dtype)) + " " + std::string(test::to_string(family)) + ", " +
             std::to_string(inputs) + " inputs of " + std::to_string(count) + ", by " + std::to_string(divisor) +
             ", target " + std::string(to_string(target)) + ": " +
             (same ? "bytes beside the result changed" : test::difference(dtype, want.data(), out.data(), count));
    }
  }
  return {};
}

TEST(ExactSum, AllTargetsAndOrdersGiveTheReferencesBits) {
  for (const DType dtype : test::kFloats) {
    for (const Family family : test::kFamilies) {
      for (const std::size_t inputs : {1U, 2U, 3U, 4U, 7U, 64U, 65U}) {
        for (const std::size_t count : {0U, 1U, 5U, 63U, 64U, 65U, 300U}) {
          for (const std::uint32_t divisor : {1U, static_cast<std::uint32_t>(inputs), 1U << 26U})
            ASSERT_EQ(compare(dtype, family, inputs, count, divisor), "");
        }
      }
    }
  }
}

void check_in_place(DType dtype) {
  constexpr std::size_t kCount = 200;
  for (const Family family : test::kFamilies) {
    auto arrays = test::exact_inputs(dtype, family, 5, kCount, 7);
    std::vector<std::byte> want(kCount * size_of(dtype));
    exact_sum(dtype, pointers(arrays), want.data(), kCount, 5);
    for (const std::size_t place : {0U, 4U}) {
      auto copies = arrays;
      exact_sum(dtype, pointers(copies), copies[place].data(), kCount, 5);
      ASSERT_EQ(copies[place], want) << to_string(dtype) << " " << test::to_string(family) << ", input " << place;
    }
  }
}

TEST(ExactSum, TheResultMayLieInTheFirstOrTheLastInputsPlace) {
  for (const DType dtype : test::kFloats) check_in_place(dtype);
}

template <class T>
T sum_of(DType dtype, const std::vector<T>& values, std::uint32_t divisor = 1) {
  std::vector<const void*> inputs;
  for (const T& value : values) inputs.push_back(&value);
  T out{};
  exact_sum(dtype, inputs, &out, 1, divisor);
  return out;
}

TEST(ExactSum, FindsTheSmallNumberBetweenTwoLargeOnes) {
  EXPECT_EQ(sum_of<float>(DType::float32, {1e30F, 1.0F, -1e30F}), 1.0F);
  EXPECT_EQ(sum_of<double>(DType::float64, {1e300, 1.0, -1e300}), 1.0);
}

TEST(ExactSum, CountsBeyondTheBitsOfTheType) {
  const std::vector<float> ones((1U << 24U) + 2, 1.0F);  // one by one, the sum would stop at 2^24
  EXPECT_EQ(sum_of(DType::float32, ones), 16777218.0F);
}

TEST(ExactSum, RoundsASumBetweenTwoFloatsToTheEvenOneAndASumAboveTheMiddleUp) {
  EXPECT_EQ(sum_of<float>(DType::float32, {16777216.0F, 1.0F}), 16777216.0F);
  EXPECT_EQ(sum_of<float>(DType::float32, {16777216.0F, 1.0F, 1e-40F}), 16777218.0F);
  EXPECT_EQ(sum_of<float>(DType::float32, {16777216.0F, 1.0F, -1e-40F}), 16777216.0F);
}

// The last bit of the second number lies 55 places below the first, so float64 cannot hold the sum of these two.
TEST(ExactSum, SeesABitBeyondFloat64sBits) {
  EXPECT_EQ(sum_of<float>(DType::float32, {0x1p23F, 0x1.000002p-9F, 0.5F - 0x1p-9F}), 0x1p23F + 1);
}

// The quotient lies just above the middle of two floats; rounded to float64 first, it lies in the middle.
TEST(ExactSum, RoundsAQuotientOnce) {
  EXPECT_EQ(sum_of<float>(DType::float32, {3.0F, 0x1.8p-23F, 0x1p-60F}, 3), 1 + 0x1p-23F);
  EXPECT_EQ(sum_of<float>(DType::float32, {3.0F, 0x1.8p-23F, -0x1p-60F}, 3), 1.0F);
}

TEST(ExactSum, AnAverageOfLargestValuesIsTheLargestValue) {
  const float largest = std::numeric_limits<float>::max();
  EXPECT_EQ(sum_of<float>(DType::float32, {largest, largest, largest}, 3), largest);
  EXPECT_EQ(sum_of<float>(DType::float32, {largest, largest, largest}), std::numeric_limits<float>::infinity());
}

TEST(ExactSum, EveryNanAndInfinitiesOfBothSignsGiveOneNan) {
  const float infinity = std::numeric_limits<float>::infinity();
  constexpr std::uint32_t kNan = 0x7FC00000;
  const float odd = std::bit_cast<float>(0xFF812345U);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(sum_of<float>(DType::float32, {1.0F, odd})), kNan);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(sum_of<float>(DType::float32, {infinity, 1.0F, -infinity})), kNan);
  EXPECT_EQ(sum_of<float>(DType::float32, {1.0F, -infinity}), -infinity);
}

TEST(ExactSum, AZeroIsNegativeOnlyIfEveryInputIs) {
  EXPECT_EQ(std::bit_cast<std::uint32_t>(sum_of<float>(DType::float32, {-0.0F, -0.0F})), 0x80000000U);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(sum_of<float>(DType::float32, {-0.0F, 0.0F})), 0U);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(sum_of<float>(DType::float32, {-1.0F, 1.0F})), 0U);
}

TEST(ExactSum, AStepOfAReductionIsTheExactSumOfAllRanks) {
  const std::vector<double> values{1e300, 1.0, -1e300, 3.0};
  std::vector<const void*> inputs;
  for (const double& value : values) inputs.push_back(&value);
  double out = 0;
  reduce_step(DType::float64, kExactSum, inputs, &out, 1, {.divisor = 4});
  EXPECT_EQ(out, 4.0);
  reduce_step(DType::float64, kExactAverage, inputs, &out, 1, {.divisor = 4});
  EXPECT_EQ(out, 1.0);
}

TEST(ExactSumDeathTest, AStepWithTheInputsOfOnlySomeRanksIsRefused) {
  const float value = 1;
  const std::vector<const void*> inputs(3, &value);
  float out = 0;
  EXPECT_DEATH(reduce_step(DType::float32, kExactSum, inputs, &out, 1, {.divisor = 4}), "of 4 ranks gets 3 inputs");
}

}  // namespace
}  // namespace tributary::kernels
