// The kernels for partial sums of every target of this machine beside the scalar ones: the same bits for any values.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <random>
#include <vector>

#include "kernels/cpu/float_layout.h"
#include "kernels/cpu/partial_table.h"
#include "kernels/cpu/scalar_tables.h"

namespace tributary::kernels {
namespace {

template <class Float>
std::vector<Float> any_values(std::size_t count, std::mt19937_64& random) {
  using Bits = typename Layout<Float>::Bits;
  const Float special[] = {0,
                           Float{-0.0},
                           std::numeric_limits<Float>::infinity(),
                           -std::numeric_limits<Float>::infinity(),
                           std::numeric_limits<Float>::quiet_NaN(),
                           std::numeric_limits<Float>::denorm_min(),
                           -std::numeric_limits<Float>::max()};
  const bool specials = random() % 2 == 0;
  std::vector<Float> values(count);
  for (Float& value : values) {
    value = std::bit_cast<Float>(static_cast<Bits>(random()));
    if (specials && random() % 4 == 0) value = special[random() % std::size(special)];
    if (!specials && !FloatBits<Float>(value).finite()) value = 1;
  }
  return values;
}

/// Values with one of eight fields from `first` on. Field 0 is that of subnormal numbers.
template <class Float>
std::vector<Float> near_values(std::size_t count, unsigned first, std::mt19937_64& random) {
  std::vector<Float> values = any_values<Float>(count, random);
  using L = Layout<Float>;
  for (Float& value : values) {
    const FloatBits<Float> bits(value);
    if (!bits.counts()) continue;
    const auto field = static_cast<typename L::Bits>(first + random() % 8) << L::kFraction;
    const auto sign = bits.bits ^ bits.magnitude();
    value = std::bit_cast<Float>(sign | field | bits.fraction());
  }
  return values;
}

template <class Float>
auto functions(const PartialTable& table) {
  if constexpr (std::is_same_v<Float, float>) {
    return std::pair(table.magnitudes32, table.add32);
  } else {
    return std::pair(table.magnitudes64, table.add64);
  }
}

template <class Float>
void compare(const PartialTable& table) {
  std::mt19937_64 random(3);
  const auto [magnitudes, add] = functions<Float>(table);
  const auto [want_magnitudes, want_add] = functions<Float>(scalar::kPartialTable);
  for (std::size_t count = 0; count <= 256; count += count < 40 ? 1 : 27) {
    const auto any = any_values<Float>(count, random);
    const Magnitudes got = magnitudes(any.data(), count), want = want_magnitudes(any.data(), count);
    EXPECT_EQ(got.most, want.most) << count;
    EXPECT_EQ(got.least, want.least) << count;
    EXPECT_EQ(got.marked, want.marked) << count;
    for (const unsigned first : {0U, 100U}) {
      const auto near = near_values<Float>(count, first, random);
      std::vector<std::int64_t> sums(count + 1, 7), want_sums(count + 1, 7);
      for (const int unused : {0, 13, 16}) {
        const ToNumber to{.unused = unused, .base = first == 0 ? 1 : 98};
        add(near.data(), count, to, sums.data());
        want_add(near.data(), count, to, want_sums.data());
        EXPECT_EQ(sums, want_sums) << count << ", " << unused;
      }
    }
  }
}

TEST(PartialTargets, HaveTheNumbersOfTheScalarKernels) {
  for (const Target target : available_targets()) {
    SCOPED_TRACE(std::string(to_string(target)));
    compare<float>(partial_table(target));
    compare<double>(partial_table(target));
  }
}

TEST(PartialTargets, HaveTheLongNumbersOfTheScalarKernels) {
  std::mt19937_64 random(4);
  for (const Target target : available_targets()) {
    for (std::size_t count = 0; count <= 256; count += count < 40 ? 1 : 27) {
      for (const unsigned first : {0U, 30U, 55U, 56U, 57U}) {
        const auto near = near_values<double>(count, first, random);
        std::vector<std::int64_t> lower(count + 1, 7), upper(count + 1, 7), want_lower = lower, want_upper = upper;
        for (const int base : {1, static_cast<int>(std::max(first, 1U))}) {
          partial_table(target).add64_long(near.data(), count, base, lower.data(), upper.data());
          scalar::kPartialTable.add64_long(near.data(), count, base, want_lower.data(), want_upper.data());
          EXPECT_EQ(lower, want_lower) << to_string(target) << ", " << count << ", " << first;
          EXPECT_EQ(upper, want_upper) << to_string(target) << ", " << count << ", " << first;
        }
      }
    }
  }
}

TEST(PartialTargets, ScaleLikeTheScalarKernels) {
  std::mt19937_64 random(5);
  for (const Target target : available_targets()) {
    for (std::size_t count = 0; count <= 256; count += count < 40 ? 1 : 27) {
      std::vector<std::int64_t> sums(count);
      for (std::int64_t& sum : sums) sum = static_cast<std::int64_t>(random()) >> random() % 61;
      std::vector<double> got(count + 1, -1), want(count + 1, -1);
      partial_table(target).scale(sums.data(), count, 0x1p-70, got.data());
      scalar::kPartialTable.scale(sums.data(), count, 0x1p-70, want.data());
      EXPECT_EQ(got, want) << to_string(target) << ", " << count;
    }
  }
}

}  // namespace
}  // namespace tributary::kernels
