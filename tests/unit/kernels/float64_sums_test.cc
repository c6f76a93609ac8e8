// Partial sums that float64 holds: the kernels of every target of this machine beside the scalar ones, and the limit above
// which sums are made in longer numbers.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/cpu/partial_table.h"
#include "kernels/cpu/scalar_tables.h"
#include "kernels/reference/exact_sum.h"
#include "tributary/kernels/partial_sum.h"

namespace tributary::kernels {
namespace {

constexpr double kLeast = 0x1p-60;  // all sums of these tests are multiples of it

/// Sums of so many bits and a sign, among them the longest ones.
std::vector<double> any_sums(std::size_t count, unsigned bits, std::mt19937_64& random) {
  const std::int64_t most = (std::int64_t{1} << bits) - 1;
  std::vector<double> sums(count);
  for (double& sum : sums) {
    auto number = static_cast<std::int64_t>(random() & static_cast<std::uint64_t>(most));
    if (random() % 8 == 0) number = random() % 2 == 0 ? most : 0;
    if (random() % 2 == 0) number = -number - 1;
    sum = static_cast<double>(number) * kLeast;
  }
  return sums;
}

TEST(Float64Sums, AreThoseOfTheScalarKernels) {
  std::mt19937_64 random(9);
  const Float64SumKernels& wanted = *scalar::kPartialTable.float64_sums;
  for (const Target target : available_targets()) {
    const Float64SumKernels& kernels = *partial_table(target).float64_sums;
    for (unsigned width = 1; width <= kFloat64SumWidthMax; ++width) {
      for (std::size_t count = 0; count <= 512; count += count < 70 ? 1 : 61) {
        const std::string where =
            std::string(to_string(target)) + ", " + std::to_string(count) + ", " + std::to_string(width);
        const auto sums = any_sums(count, 8 * width - 1, random);
        const auto seen = kernels.see(sums.data(), count, 1 / kLeast);
        const auto want_seen = wanted.see(sums.data(), count, 1 / kLeast);
        ASSERT_EQ(seen.magnitude, want_seen.magnitude) << where;
        ASSERT_EQ(seen.any == 0, want_seen.any == 0) << where;
        ASSERT_EQ(seen.any & -seen.any, want_seen.any & -want_seen.any) << where;
        std::vector<std::byte> numbers(width * count + 1, std::byte{9}), want_numbers = numbers;
        kernels.put_numbers(sums.data(), count, 1 / kLeast, width, numbers.data());
        wanted.put_numbers(sums.data(), count, 1 / kLeast, width, want_numbers.data());
        ASSERT_EQ(numbers, want_numbers) << where;
        std::vector<double> got(count + 1, 3), want(count + 1, 3);
        kernels.add_numbers(numbers.data(), count, width, kLeast, got.data());
        for (std::size_t i = 0; i < count; ++i) want[i] += sums[i];
        ASSERT_EQ(got, want) << where;
        wanted.add_numbers(numbers.data(), count, width, kLeast, want.data());
        kernels.add_numbers(numbers.data(), count, width, kLeast, got.data());
        ASSERT_EQ(got, want) << where;
      }
    }
  }
}

TEST(Float64Sums, AreAddedAndRoundedLikeTheScalarKernels) {
  std::mt19937_64 random(10);
  std::normal_distribution<float> normal;
  const Float64SumKernels& wanted = *scalar::kPartialTable.float64_sums;
  for (const Target target : available_targets()) {
    const Float64SumKernels& kernels = *partial_table(target).float64_sums;
    for (std::size_t count = 0; count <= 512; count += count < 70 ? 1 : 61) {
      std::vector<std::byte> values(4 * count + 1);
      for (std::size_t i = 0; i < count; ++i) {
        const float value = i % 3 == 0 ? 0x1p-149F * static_cast<float>(random() % 100) : normal(random);
        std::memcpy(&values[4 * i + 1], &value, sizeof(value));  // no multiple of four
      }
      std::vector<double> got(count + 1, 0x1p-3), want(count + 1, 0x1p-3);
      kernels.add_floats(values.data() + 1, count, got.data());
      wanted.add_floats(values.data() + 1, count, want.data());
      ASSERT_EQ(got, want) << to_string(target) << ", " << count;
      // The factors lead to subnormal results, to ordinary ones, and beyond the largest.
      for (const double factor : {0x1p-140, 0x1p-1, 0x1p127}) {
        std::vector<std::byte> rounded(4 * count + 1, std::byte{9}), want_rounded = rounded;
        const auto sums = any_sums(count, 51, random);
        kernels.round(sums.data(), count, factor, rounded.data());
        wanted.round(sums.data(), count, factor, want_rounded.data());
        ASSERT_EQ(rounded, want_rounded) << to_string(target) << ", " << count << ", " << factor;
      }
    }
  }
}

// 2^span lies in the middle of two float32, and only a number of 1 tells on which side the sum is.
TEST(Float64Sums, AreUsedOnlyIfTheyHoldEverySum) {
  constexpr std::size_t kCount = 37;
  for (int span = 24; span <= 70; ++span) {
    std::array<std::vector<float>, 3> values;
    for (auto& array : values) array.resize(kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      const float sign = i % 2 == 0 ? 1 : -1;
      values[i % 3][i] = sign * std::ldexp(1.0F, span);
      values[(i + 1) % 3][i] = sign * std::ldexp(1.0F, span - 24);
      values[(i + 2) % 3][i] = i % 5 == 0 ? 0.0F : sign;
    }
    std::vector<std::vector<std::byte>> forms;
    std::vector<PartialInput> of_values, of_forms;
    for (const auto& array : values) {
      of_values.push_back({.bytes = std::as_bytes(std::span(array))});
      auto& form = forms.emplace_back(form_bytes_max(DType::float32, kCount));
      form.resize(add_partial_sums(DType::float32, {&of_values.back(), 1}, kCount, form));
    }
    for (const auto& form : forms) of_forms.push_back({.bytes = form, .is_form = true});
    std::vector<std::byte> whole(form_bytes_max(DType::float32, kCount));
    whole.resize(add_partial_sums(DType::float32, of_values, kCount, whole));
    std::vector<PartialInput> of_whole{{.bytes = whole, .is_form = true}};
    for (const auto* inputs : {&of_values, &of_forms, &of_whole}) {
      std::vector<float> sums(kCount);
      round_partial_sums(DType::float32, *inputs, sums.data(), kCount, 1);
      for (std::size_t i = 0; i < kCount; ++i) {
        const float upper = std::ldexp(1.0F, span) + (i % 5 == 0 ? 0.0F : std::ldexp(1.0F, span - 23));
        ASSERT_EQ(sums[i], i % 2 == 0 ? upper : -upper) << span << ", " << i << ", " << inputs->size();
      }
    }
  }
}

}  // namespace
}  // namespace tributary::kernels
