// The kernels for partial sums of every target of this machine beside the scalar ones: the same bits for any values.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
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
  using Bits = Layout<Float>::Bits;
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
    const auto field = static_cast<L::Bits>(first + random() % 8) << L::kFraction;
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
    const auto* const bytes = reinterpret_cast<const std::byte*>(any.data());
    const Magnitudes got = magnitudes(bytes, count), want = want_magnitudes(bytes, count);
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

// ---- Sums of 32 bits.

std::vector<std::byte> any_words(std::size_t count, std::uint16_t mask, std::mt19937_64& random) {
  std::vector<std::byte> values(2 * count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto word = static_cast<std::uint16_t>(random() & mask);
    std::memcpy(values.data() + 2 * i, &word, sizeof(word));
  }
  return values;
}

/// Compares the kernels of one type. `infinity`: its bits.
void compare_small(const SmallFloatKernels& kernels, const SmallFloatKernels& wanted, std::uint16_t infinity) {
  std::mt19937_64 random(6);
  const auto finite = static_cast<std::uint16_t>(~(infinity & (~infinity + 1U)));  // without the exponent's last bit
  for (std::size_t count = 0; count <= 256; count += count < 70 ? 1 : 31) {
    for (const std::uint16_t mask : {std::uint16_t{0xFFFF}, finite, std::uint16_t{0x83FF}, std::uint16_t{0x8000}}) {
      const auto values = any_words(count, mask, random);
      const Magnitudes got = kernels.magnitudes(values.data(), count), want = wanted.magnitudes(values.data(), count);
      EXPECT_EQ(got.most, want.most) << count;
      EXPECT_EQ(got.least, want.least) << count;
      EXPECT_EQ(got.marked, want.marked) << count;
    }
    // Values from 2^-8 to 1, as both types write them.
    const auto one = static_cast<std::uint16_t>(infinity == 0x7C00 ? 0x3C00 : 0x3F80);
    const auto last = static_cast<std::uint16_t>(infinity & (~infinity + 1U));
    auto near = any_words(count, static_cast<std::uint16_t>(0x8000U | (8U * last - 1U)), random);
    for (std::size_t i = 0; i < count; ++i) {
      std::uint16_t word = 0;
      std::memcpy(&word, &near[2 * i], sizeof(word));
      word = static_cast<std::uint16_t>(word + one - 8U * last);
      std::memcpy(&near[2 * i], &word, sizeof(word));
    }
    std::vector<std::int32_t> sums(count + 1, -7), want_sums(count + 1, -7);
    for (int times = 0; times < 3; ++times) {
      kernels.add(near.data(), count, 0x1p20F, sums.data());
      wanted.add(near.data(), count, 0x1p20F, want_sums.data());
    }
    EXPECT_EQ(sums, want_sums) << count;
  }
}

TEST(PartialTargets, HaveTheShortSumsOfTheScalarKernels) {
  const ShortSumTable& wanted = *scalar::kPartialTable.short_sums;
  for (const Target target : available_targets()) {
    SCOPED_TRACE(std::string(to_string(target)));
    const ShortSumTable& kernels = *partial_table(target).short_sums;
    compare_small(kernels.float16, wanted.float16, 0x7C00);
    compare_small(kernels.bfloat16, wanted.bfloat16, 0x7F80);
  }
}

/// Any numbers, and numbers beside the middle of two neighbours of each type: a first rounding to float32 would move
/// them to the middle.
std::vector<std::int32_t> any_sums(std::size_t count, std::mt19937_64& random) {
  std::vector<std::int32_t> sums(count);
  for (std::int32_t& sum : sums) {
    const auto digits = static_cast<std::int32_t>(random() % 2 == 0 ? 7 : 10);  // after the first one
    const auto middle = ((std::int32_t{1} << digits) + static_cast<std::int32_t>(random() % 64)) * 2 + 1;
    sum = static_cast<std::int32_t>(random()) >> (1 + random() % 30);
    if (random() % 2 == 0) sum = middle * (1 << (29 - digits)) + static_cast<std::int32_t>(random() % 3) - 1;
    if (random() % 2 == 0) sum = -sum;
  }
  return sums;
}

TEST(PartialTargets, RoundShortSumsLikeTheScalarKernels) {
  std::mt19937_64 random(7);
  const ShortSumTable& wanted = *scalar::kPartialTable.short_sums;
  for (const Target target : available_targets()) {
    const ShortSumTable& kernels = *partial_table(target).short_sums;
    for (std::size_t count = 0; count <= 256; count += count < 70 ? 1 : 31) {
      const auto sums = any_sums(count, random);
      // The factors lead to subnormal results, to ordinary ones, and beyond the largest.
      for (const float factor : {0x1p-46F, 0x1p-20F, 0x1p-10F, 0x1p100F}) {
        for (const auto type : {&ShortSumTable::float16, &ShortSumTable::bfloat16}) {
          std::vector<std::byte> got(2 * count + 1, std::byte{9}), want = got;
          (kernels.*type).round(sums.data(), count, factor, got.data());
          (wanted.*type).round(sums.data(), count, factor, want.data());
          ASSERT_EQ(got, want) << to_string(target) << ", " << count << ", " << factor;
        }
      }
    }
  }
}

TEST(PartialTargets, ReadAndWriteThreeBytesLikeTheScalarKernels) {
  std::mt19937_64 random(8);
  const ShortSumTable& wanted = *scalar::kPartialTable.short_sums;
  for (const Target target : available_targets()) {
    const ShortSumTable& kernels = *partial_table(target).short_sums;
    for (std::size_t count = 0; count <= 256; count += count < 70 ? 1 : 31) {
      const auto sums = any_sums(count, random);
      const auto seen = kernels.see(sums.data(), count), want_seen = wanted.see(sums.data(), count);
      EXPECT_EQ(seen.any, want_seen.any) << to_string(target) << ", " << count;
      EXPECT_EQ(seen.magnitudes, want_seen.magnitudes) << to_string(target) << ", " << count;
      for (const unsigned places : {0U, 1U, 7U}) {
        std::vector<std::byte> numbers(3 * count + 1, std::byte{9}), want_numbers = numbers;
        kernels.put_bytes3(sums.data(), count, places, numbers.data());
        wanted.put_bytes3(sums.data(), count, places, want_numbers.data());
        ASSERT_EQ(numbers, want_numbers) << to_string(target) << ", " << count << ", " << places;
        std::vector<std::int32_t> got(count + 1, 5), want(count + 1, 5);
        kernels.add_bytes3(numbers.data(), count, static_cast<int>(places), got.data());
        wanted.add_bytes3(numbers.data(), count, static_cast<int>(places), want.data());
        ASSERT_EQ(got, want) << to_string(target) << ", " << count << ", " << places;
      }
    }
  }
}

}  // namespace
}  // namespace tributary::kernels
