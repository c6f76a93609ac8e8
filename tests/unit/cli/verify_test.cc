// The exact sums of `tributary verify-bits` beside those of the kernels' reference, which shares no code with them.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "client/cli/verify/bit_inputs.h"
#include "kernels/reference/exact_sum.h"
#include "tributary/kernels/ordered_product.h"

namespace tributary::cli {
namespace {

class BitSums : public testing::TestWithParam<DType> {};

TEST_P(BitSums, AreTheReferencesForEveryFamilyAndDivisor) {
  const DType dtype = GetParam();
  const FloatBits format = float_bits_of(dtype);
  const std::size_t element = size_of(dtype);
  constexpr std::size_t kCount = 500;
  for (const BitFamily family : kBitFamilies) {
    for (const std::uint32_t ranks : {1U, 2U, 3U, 7U, 64U}) {
      std::vector<std::vector<std::byte>> arrays(ranks, std::vector<std::byte>(kCount * element));
      std::vector<const void*> inputs;
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        for (std::size_t i = 0; i < kCount; ++i) {
          const std::uint64_t bits = bits_of_input(format, family, 5, rank, i);
          std::memcpy(&arrays[rank][i * element], &bits, element);
        }
        inputs.push_back(arrays[rank].data());
      }
      for (const std::uint32_t divisor : {1U, ranks}) {
        std::vector<std::byte> expected(kCount * element);
        kernels::reference::exact_sum(dtype, inputs, expected.data(), 0, kCount, divisor);
        for (std::size_t i = 0; i < kCount; ++i) {
          BitSum sum(format);
          for (std::uint32_t rank = 0; rank < ranks; ++rank) sum.add(bits_of_input(format, family, 5, rank, i));
          std::uint64_t want = 0;
          std::memcpy(&want, &expected[i * element], element);
          ASSERT_EQ(sum.rounded(divisor), want) << to_string(dtype) << " " << to_string(family) << ", element " << i
                                                << " of " << ranks << " ranks by " << divisor;
        }
      }
    }
  }
}

TEST_P(BitSums, AndProductsAreTheKernelsForEveryFamily) {
  const DType dtype = GetParam();
  const FloatBits format = float_bits_of(dtype);
  const std::size_t element = size_of(dtype);
  constexpr std::size_t kCount = 300;
  for (const BitFamily family : kBitFamilies) {
    for (const std::uint32_t ranks : {1U, 2U, 3U, 7U}) {
      std::vector<std::vector<std::byte>> arrays(ranks, std::vector<std::byte>(kCount * element));
      std::vector<double> products(kCount, 1);
      std::vector<const void*> inputs;
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        for (std::size_t i = 0; i < kCount; ++i) {
          const std::uint64_t bits = bits_of_input(format, family, 5, rank, i);
          std::memcpy(&arrays[rank][i * element], &bits, element);
          products[i] *= value_of(format, bits);
        }
        inputs.push_back(arrays[rank].data());
      }
      std::vector<std::byte> ours(kCount * element);
      kernels::ordered_product(dtype, inputs, ours.data(), kCount);
      for (std::size_t i = 0; i < kCount; ++i) {
        std::uint64_t bits = 0;
        std::memcpy(&bits, &ours[i * element], element);
        ASSERT_EQ(bits, bits_of_product(format, products[i]))
            << to_string(dtype) << " " << to_string(family) << ", element " << i << " of " << ranks << " ranks";
      }
    }
  }
}

// Inputs that no order of additions changes would prove nothing.
TEST_P(BitSums, DifferFromRoundedSumsInSomePlace) {
  const FloatBits format = float_bits_of(GetParam());
  int differ = 0;
  for (std::uint64_t i = 0; i < 300; ++i) {
    BitSum all(format), pairs(format);
    for (std::uint32_t pair = 0; pair < 4; ++pair) {
      BitSum two(format);
      for (const std::uint32_t rank : {pair, pair + 4}) {
        const std::uint64_t bits = bits_of_input(format, BitFamily::gaussian, 5, rank, i);
        all.add(bits);
        two.add(bits);
      }
      pairs.add(two.rounded(1));
    }
    differ += all.rounded(1) != pairs.rounded(1) ? 1 : 0;
  }
  EXPECT_GT(differ, 10);
}

INSTANTIATE_TEST_SUITE_P(Verify, BitSums,
                         testing::Values(DType::float16, DType::bfloat16, DType::float32, DType::float64,
                                         DType::float8_e4m3, DType::float8_e5m2),
                         [](const auto& the) { return std::string(to_string(the.param)); });

}  // namespace
}  // namespace tributary::cli
