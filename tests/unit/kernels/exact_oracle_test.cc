// exact_sum(), and sums that go through forms, beside MPFR.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "tests/unit/kernels/exact_inputs.h"
#include "tests/unit/kernels/mpfr_oracle.h"
#include "tributary/kernels/exact.h"
#include "tributary/kernels/partial_sum.h"

namespace tributary::kernels {
namespace {

class BesideMpfr : public testing::TestWithParam<DType> {
 protected:
  /// Sums the inputs as a tree of two levels does: two forms, and the last input beside them.
  static std::vector<std::byte> by_forms(const std::vector<std::vector<std::byte>>& arrays, std::size_t count,
                                         std::uint32_t divisor) {
    const std::size_t last = arrays.size() - 1;
    std::vector<std::byte> forms[2];
    std::vector<PartialInput> at_root;
    for (std::size_t k = 0; k < 2 && k < last; ++k) {
      std::vector<PartialInput> inputs;
      for (std::size_t i = k; i < last; i += 2) inputs.push_back({arrays[i], false});
      forms[k].resize(form_bytes_max(GetParam(), count));
      forms[k].resize(add_partial_sums(GetParam(), inputs, count, forms[k]));
      at_root.push_back({forms[k], true});
    }
    at_root.push_back({arrays[last], false});
    std::vector<std::byte> sums(count * size_of(GetParam()));
    round_partial_sums(GetParam(), at_root, sums.data(), count, divisor);
    return sums;
  }

  static void compare(test::Family family, std::size_t inputs, std::size_t count, std::uint32_t divisor) {
    const DType dtype = GetParam();
    const auto arrays = test::exact_inputs(dtype, family, inputs, count, inputs);
    std::vector<const void*> pointers;
    for (const auto& array : arrays) pointers.push_back(array.data());
    std::vector<std::byte> sums(count * size_of(dtype));
    exact_sum(dtype, pointers, sums.data(), count, divisor);
    EXPECT_EQ(by_forms(arrays, count, divisor), sums) << to_string(dtype) << " " << test::to_string(family);
    ASSERT_EQ(test::wrong_sum(dtype, arrays, sums, divisor), "")
        << to_string(dtype) << " " << test::to_string(family) << ", " << inputs << " inputs by " << divisor;
  }
};

TEST_P(BesideMpfr, EveryFamilyOfInputs) {
  for (const test::Family family : test::kFamilies) {
    for (const std::size_t inputs : {2U, 3U, 5U, 8U, 33U}) {
      for (const std::uint32_t divisor : {1U, static_cast<std::uint32_t>(inputs)})
        ASSERT_NO_FATAL_FAILURE(compare(family, inputs, 700, divisor));
    }
  }
}

TEST_P(BesideMpfr, AHundredThousandElements) {
  ASSERT_NO_FATAL_FAILURE(compare(test::Family::ordinary, 4, 100'000, 1));
  ASSERT_NO_FATAL_FAILURE(compare(test::Family::ordinary, 3, 100'000, 3));
}

TEST(MpfrOracle, SaysByWhichBitASumIsWrong) {
  const auto bytes = [](double value) {
    std::vector<std::byte> array(sizeof(value));
    std::memcpy(array.data(), &value, sizeof(value));
    return array;
  };
  EXPECT_EQ(test::wrong_sum(DType::float64, {bytes(1), bytes(0)}, bytes(0x1.0000000000001p+0), 1),
            "element 0 is 0x1.0000000000001p+0, not 0x1p+0");
}

INSTANTIATE_TEST_SUITE_P(ExactSum, BesideMpfr, testing::ValuesIn(test::kFloats),
                         [](const auto& the) { return std::string(to_string(the.param)); });

}  // namespace
}  // namespace tributary::kernels
