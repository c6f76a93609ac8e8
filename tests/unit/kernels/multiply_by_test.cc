#include "tributary/kernels/multiply_by.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "kernels/reference/reduce.h"
#include "tests/unit/kernels/values.h"

namespace tributary::kernels {
namespace {

class MultiplyBy : public testing::TestWithParam<std::size_t> {};

TEST_P(MultiplyBy, GivesTheProductsOfReduceForEveryLengthAlsoInPlace) {
  const std::size_t count = GetParam();
  std::mt19937_64 random(count + 1);
  for (std::uint8_t number = 0; number < kDTypeCount; ++number) {
    const auto dtype = static_cast<DType>(number);
    const std::size_t element = size_of(dtype);
    for (int round = 0; round < 4; ++round) {
      const auto in = test::values(dtype, count, random);
      const auto factor = round < 2 ? test::plain_values(dtype, 1, random) : test::values(dtype, 1, random);
      std::vector<std::byte> factors(count * element), expected(count * element);
      for (std::size_t i = 0; i < count; ++i) std::memcpy(factors.data() + i * element, factor.data(), element);
      const void* inputs[] = {in.data(), factors.data()};
      reference::reduce(dtype, ReduceOp::prod, inputs, expected.data(), count);
      test::GuardedArray out(count * element, static_cast<std::size_t>(round));
      multiply_by(dtype, in.data(), factor.data(), out.data(), count);
      EXPECT_EQ(test::difference(dtype, expected.data(), out.data(), count), "") << to_string(dtype);
      out.assign(in);
      multiply_by(dtype, out.data(), factor.data(), out.data(), count);
      EXPECT_EQ(test::difference(dtype, expected.data(), out.data(), count), "") << to_string(dtype) << " in place";
      EXPECT_TRUE(out.guards_intact());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, MultiplyBy, testing::Values(0, 1, 77, 1'024, 8'192, 8'193, 30'001));

}  // namespace
}  // namespace tributary::kernels
