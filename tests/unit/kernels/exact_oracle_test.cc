// exact_sum() beside MPFR, whose mpfr_sum() is rounded correctly, too (V. Lefevre, Correctly rounded
// arbitrary-precision floating-point summation, ARITH 2016).
#include <gtest/gtest.h>
#include <mpfr.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "kernels/reference/float_format.h"
#include "tests/unit/kernels/exact_inputs.h"
#include "tests/unit/kernels/values.h"
#include "tributary/kernels/exact.h"
#include "tributary/kernels/partial_sum.h"

namespace tributary::kernels {
namespace {

/// The bits of a type, and its exponents as MPFR counts them: a number is a fraction from 1/2 to 1, times 2^exponent.
struct Format {
  mpfr_prec_t bits;
  mpfr_exp_t least, most;
};

Format format_of(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return {11, -23, 16};
    case DType::bfloat16:
      return {8, -132, 128};
    case DType::float32:
      return {24, -148, 128};
    case DType::float8_e4m3:
      return {4, -8, 9};
    case DType::float8_e5m2:
      return {3, -15, 16};
    default:
      return {53, -1073, 1024};
  }
}

double value_at(DType dtype, const std::byte* array, std::size_t index) {
  const std::uint64_t bits = test::bits_at(dtype, array, index);
  if (dtype == DType::float64) return std::bit_cast<double>(bits);
  if (dtype == DType::float32) return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  return static_cast<double>(reference::decode(reference::format_of(dtype), static_cast<std::uint32_t>(bits)));
}

class Oracle {
 public:
  Oracle(DType dtype, std::size_t inputs) : dtype_(dtype), format_(format_of(dtype)), values_(inputs) {
    for (auto& value : values_) mpfr_init2(&value, 53);
    for (auto& value : values_) pointers_.push_back(&value);
    mpfr_init2(&exact_, 2400);  // every exact sum of float64 fits
    mpfr_init2(&rounded_, format_.bits);
  }
  Oracle(const Oracle&) = delete;
  Oracle& operator=(const Oracle&) = delete;
  ~Oracle() {
    for (auto& value : values_) mpfr_clear(&value);
    mpfr_clear(&exact_);
    mpfr_clear(&rounded_);
  }

  [[nodiscard]] double sum(const std::vector<double>& values, std::uint32_t divisor) {
    const mpfr_exp_t least = mpfr_get_emin(), most = mpfr_get_emax();
    for (std::size_t k = 0; k < values.size(); ++k) mpfr_set_d(&values_[k], values[k], MPFR_RNDN);
    EXPECT_EQ(mpfr_sum(&exact_, pointers_.data(), pointers_.size(), MPFR_RNDN), 0);
    int error = mpfr_div_ui(&rounded_, &exact_, divisor, MPFR_RNDN);
    mpfr_set_emin(format_.least);
    mpfr_set_emax(format_.most);
    error = mpfr_check_range(&rounded_, error, MPFR_RNDN);
    static_cast<void>(mpfr_subnormalize(&rounded_, error, MPFR_RNDN));
    mpfr_set_emin(least);
    mpfr_set_emax(most);
    const double result = mpfr_get_d(&rounded_, MPFR_RNDN);
    constexpr double kLargestE4M3 = 448;
    if (dtype_ == DType::float8_e4m3 && std::fabs(result) > kLargestE4M3) return std::nan("");
    if (result != 0 || mpfr_zero_p(&exact_) == 0) return result;
    const bool all_negative = std::ranges::all_of(values, [](double v) { return v == 0 && std::signbit(v); });
    return all_negative ? -0.0 : 0.0;
  }

 private:
  using Number = std::remove_all_extents_t<mpfr_t>;
  DType dtype_;
  Format format_;
  std::vector<Number> values_;
  std::vector<mpfr_ptr> pointers_;
  Number exact_{}, rounded_{};
};

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
    Oracle oracle(dtype, inputs);
    std::vector<double> values(inputs);
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t k = 0; k < inputs; ++k) values[k] = value_at(dtype, arrays[k].data(), i);
      const double want = oracle.sum(values, divisor);
      const double got = value_at(dtype, sums.data(), i);
      const bool same = std::isnan(want) ? std::isnan(got) && !std::signbit(got)
                                         : got == want && std::signbit(got) == std::signbit(want);
      ASSERT_TRUE(same) << to_string(dtype) << " " << test::to_string(family) << ", element " << i << " of " << inputs
                        << " inputs by " << divisor << ": " << got << ", not " << want;
    }
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

INSTANTIATE_TEST_SUITE_P(ExactSum, BesideMpfr, testing::ValuesIn(test::kFloats),
                         [](const auto& the) { return std::string(to_string(the.param)); });

}  // namespace
}  // namespace tributary::kernels
