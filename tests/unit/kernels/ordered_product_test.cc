// Products of floats in the order of the inputs, beside products in float64 that MPFR rounds once.
#include "tributary/kernels/ordered_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tests/unit/kernels/exact_inputs.h"
#include "tests/unit/kernels/mpfr_oracle.h"

namespace tributary::kernels {
namespace {

using Array = std::vector<std::byte>;

Array product_of(DType dtype, const std::vector<Array>& arrays, std::size_t count) {
  std::vector<const void*> inputs;
  for (const Array& array : arrays) inputs.push_back(array.data());
  Array out(count * size_of(dtype));
  ordered_product(dtype, inputs, out.data(), count);
  return out;
}

template <class T>
Array array_of(std::initializer_list<T> values) {
  Array bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.begin(), bytes.size());
  return bytes;
}

class OrderedProducts : public testing::TestWithParam<DType> {};

TEST_P(OrderedProducts, AreRoundedOnceAfterProductsOfFloat64InOrder) {
  const DType dtype = GetParam();
  constexpr std::size_t kCount = 700;
  test::MpfrOracle oracle(dtype, 1);
  for (const test::Family family : test::kFamilies) {
    for (const std::size_t inputs : {1U, 2U, 3U, 8U, 70U}) {
      const auto arrays = test::exact_inputs(dtype, family, inputs, kCount, inputs);
      const Array ours = product_of(dtype, arrays, kCount);
      for (std::size_t i = 0; i < kCount; ++i) {
        double product = test::value_at(dtype, arrays[0].data(), i);
        for (std::size_t k = 1; k < inputs; ++k) product *= test::value_at(dtype, arrays[k].data(), i);
        const bool finite = std::isfinite(product);
        double want = finite ? oracle.sum({product}, 1) : product;
        if (dtype == DType::float8_e4m3 && std::isinf(product)) want = std::numeric_limits<double>::quiet_NaN();
        const double got = test::value_at(dtype, ours.data(), i);
        const bool same = std::isnan(want) ? std::isnan(got) && !std::signbit(got)
                                           : got == want && std::signbit(got) == std::signbit(want);
        ASSERT_TRUE(same) << to_string(dtype) << " " << test::to_string(family) << ", element " << i << " of " << inputs
                          << " inputs: " << got << ", not " << want;
      }
    }
  }
}

TEST_P(OrderedProducts, HaveTheSameBitsForEveryLengthAndPlaceAlsoInPlace) {
  const DType dtype = GetParam();
  const std::size_t element = size_of(dtype);
  constexpr std::size_t kCount = 530;
  const auto arrays = test::exact_inputs(dtype, test::Family::any, 5, kCount, 3);
  const Array whole = product_of(dtype, arrays, kCount);
  for (const std::size_t begin : {0U, 1U, 255U, 256U, 300U}) {
    for (const std::size_t count : {0U, 1U, 7U, 230U}) {
      std::vector<const void*> inputs;
      for (const Array& array : arrays) inputs.push_back(array.data() + begin * element);
      Array in_place(arrays[2].begin() + static_cast<std::ptrdiff_t>(begin * element),
                     arrays[2].begin() + static_cast<std::ptrdiff_t>((begin + count) * element));
      inputs[2] = in_place.data();
      ordered_product(dtype, inputs, in_place.data(), count);
      ASSERT_TRUE(
          std::equal(in_place.begin(), in_place.end(), whole.begin() + static_cast<std::ptrdiff_t>(begin * element)))
          << begin << " " << count;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, OrderedProducts, testing::ValuesIn(test::kFloats),
                         [](const auto& the) { return std::string(to_string(the.param)); });

TEST(OrderedProduct, HasOneNaN) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float odd_nan = std::bit_cast<float>(0xFFC12345U);
  const Array product = product_of(
      DType::float32, {array_of({0.0F, -kInfinity, odd_nan, 1.0F}), array_of({kInfinity, 0.0F, 1.0F, odd_nan})}, 4);
  EXPECT_EQ(product, (array_of<std::uint32_t>({0x7FC00000, 0x7FC00000, 0x7FC00000, 0x7FC00000})));
  const Array small = product_of(DType::float8_e4m3, {array_of<std::uint8_t>({0x7E, 0xFE, 0xFF})}, 3);
  EXPECT_EQ(small, (array_of<std::uint8_t>({0x7E, 0xFE, 0x7F})));
  const Array beyond =
      product_of(DType::float8_e4m3, {array_of<std::uint8_t>({0xFE}), array_of<std::uint8_t>({0x7E})}, 1);
  EXPECT_EQ(beyond, (array_of<std::uint8_t>({0x7F}))) << "float8 e4m3 has no infinity";
}

// In another order these products are infinite, or have another last bit.
TEST(OrderedProduct, GoesByTheOrderOfTheInputs) {
  const auto product = [](double a, double b, double c) {
    double result = 0;
    const Array bytes = product_of(DType::float64, {array_of({a}), array_of({b}), array_of({c})}, 1);
    std::memcpy(&result, bytes.data(), sizeof result);
    return result;
  };
  EXPECT_EQ(product(1e200, 1e-200, 1e200), 1e200 * 1e-200 * 1e200);
  EXPECT_EQ(product(1e200, 1e200, 1e-200), std::numeric_limits<double>::infinity());
  EXPECT_EQ(product(1.1, 1.3, 1.7), 1.1 * 1.3 * 1.7);
}

}  // namespace
}  // namespace tributary::kernels
