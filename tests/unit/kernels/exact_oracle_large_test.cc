// Ten million sums of each float type beside MPFR: by exact_sum(), and through forms of segments.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/unit/kernels/exact_inputs.h"
#include "tests/unit/kernels/mpfr_oracle.h"
#include "tributary/kernels/exact.h"
#include "tributary/kernels/partial_sum.h"

namespace tributary::kernels {
namespace {

constexpr std::size_t kCount = 10'000'000, kSegment = 65'536;

using Bytes = std::vector<std::byte>;

/// Rounds the sum of a form of all inputs but the last, and the last input, segment by segment.
Bytes by_forms(DType dtype, const std::vector<Bytes>& arrays, std::uint32_t divisor) {
  const std::size_t size = size_of(dtype);
  Bytes sums(kCount * size), form(form_bytes_max(dtype, kSegment));
  for (std::size_t first = 0; first < kCount; first += kSegment) {
    const std::size_t count = std::min(kSegment, kCount - first);
    std::vector<PartialInput> inputs;
    for (const Bytes& array : arrays) inputs.push_back({std::span(array).subspan(first * size, count * size), false});
    const PartialInput last = inputs.back();
    inputs.pop_back();
    const std::size_t bytes = add_partial_sums(dtype, inputs, count, form);
    round_partial_sums(dtype, std::vector<PartialInput>{{std::span(form).first(bytes), true}, last},
                       sums.data() + first * size, count, divisor);
  }
  return sums;
}

class TenMillion : public testing::TestWithParam<DType> {};

TEST_P(TenMillion, SumsAreThoseOfMpfr) {
  for (const test::Family family : {test::Family::gaussian, test::Family::any}) {
    const auto arrays = test::exact_inputs(GetParam(), family, 3, kCount, 1);
    std::vector<const void*> pointers;
    for (const auto& array : arrays) pointers.push_back(array.data());
    const std::uint32_t divisor = family == test::Family::any ? 3 : 1;
    Bytes sums(kCount * size_of(GetParam()));
    exact_sum(GetParam(), pointers, sums.data(), kCount, divisor);
    ASSERT_TRUE(by_forms(GetParam(), arrays, divisor) == sums) << test::to_string(family);
    ASSERT_EQ(test::wrong_sum(GetParam(), arrays, sums, divisor), "") << test::to_string(family);
  }
}

INSTANTIATE_TEST_SUITE_P(ExactSum, TenMillion, testing::ValuesIn(test::kFloats),
                         [](const auto& the) { return std::string(to_string(the.param)); });

}  // namespace
}  // namespace tributary::kernels
