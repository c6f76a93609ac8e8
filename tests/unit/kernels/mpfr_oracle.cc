#include "tests/unit/kernels/mpfr_oracle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>

#include "kernels/reference/float_format.h"
#include "tests/unit/kernels/values.h"

namespace tributary::kernels::test {
namespace {

MpfrFormat format_of(DType dtype) {
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

/// Returns the value to its last bit.
std::string exactly(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%a", value);
  return text;
}

}  // namespace

double value_at(DType dtype, const std::byte* array, std::size_t index) {
  const std::uint64_t bits = bits_at(dtype, array, index);
  if (dtype == DType::float64) return std::bit_cast<double>(bits);
  if (dtype == DType::float32) return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  return static_cast<double>(reference::decode(reference::format_of(dtype), static_cast<std::uint32_t>(bits)));
}

MpfrOracle::MpfrOracle(DType dtype, std::size_t inputs) : dtype_(dtype), format_(format_of(dtype)), values_(inputs) {
  for (auto& value : values_) mpfr_init2(&value, 53);
  for (auto& value : values_) pointers_.push_back(&value);
  mpfr_init2(&exact_, 2400);  // every exact sum of float64 fits
  mpfr_init2(&rounded_, format_.bits);
}

MpfrOracle::~MpfrOracle() {
  for (auto& value : values_) mpfr_clear(&value);
  mpfr_clear(&exact_);
  mpfr_clear(&rounded_);
}

double MpfrOracle::sum(const std::vector<double>& values, std::uint32_t divisor) {
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

std::string wrong_sum(DType dtype, const std::vector<std::vector<std::byte>>& inputs,
                      const std::vector<std::byte>& sums, std::uint32_t divisor) {
  MpfrOracle oracle(dtype, inputs.size());
  std::vector<double> values(inputs.size());
  const std::size_t count = sums.size() / size_of(dtype);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t k = 0; k < inputs.size(); ++k) values[k] = value_at(dtype, inputs[k].data(), i);
    const double want = oracle.sum(values, divisor);
    const double got = value_at(dtype, sums.data(), i);
    const bool same = std::isnan(want) ? std::isnan(got) && !std::signbit(got)
                                       : got == want && std::signbit(got) == std::signbit(want);
    if (!same) return "element " + std::to_string(i) + " is " + exactly(got) + ", not " + exactly(want);
  }
  return {};
}

}  // namespace tributary::kernels::test
