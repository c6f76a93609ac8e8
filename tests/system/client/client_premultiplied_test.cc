// Pre-multiplied sums: each rank has a factor of its own, and every path gives the sum of the same rounded products.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/reference/reduce.h"
#include "tests/system/client/group.h"
#include "tests/system/client/tensors.h"

namespace tributary::test {
namespace {

constexpr int kRanks = 3, kRoot = 1;

tributary_op with(tributary_op op, int numerics) {
  return static_cast<tributary_op>(op | numerics);
}

/// Returns one element: an integer rank + 1, or 1, -1 or 2, so that the sums of the products are exact in any order.
Bytes factor_of(DType dtype, int rank) {
  constexpr std::array<float, 3> kValues{1.0F, -1.0F, 2.0F};
  const float value = kValues[static_cast<std::size_t>(rank) % kValues.size()];
  Bytes factor(8);
  const auto put = [&](auto number) { std::memcpy(factor.data(), &number, sizeof number); };
  switch (dtype) {
    case DType::float64:
      put(static_cast<double>(value));
      break;
    case DType::float32:
      put(value);
      break;
    case DType::float16:
      put(std::array<std::uint16_t, 3>{0x3C00, 0xBC00, 0x4000}[static_cast<std::size_t>(rank)]);
      break;
    case DType::bfloat16:
      put(std::array<std::uint16_t, 3>{0x3F80, 0xBF80, 0x4000}[static_cast<std::size_t>(rank)]);
      break;
    case DType::float8_e4m3:
      put(std::array<std::uint8_t, 3>{0x38, 0xB8, 0x40}[static_cast<std::size_t>(rank)]);
      break;
    case DType::float8_e5m2:
      put(std::array<std::uint8_t, 3>{0x3C, 0xBC, 0x40}[static_cast<std::size_t>(rank)]);
      break;
    default:
      factor[0] = static_cast<std::byte>(rank + 1);  // the lowest byte of an integer
  }
  return factor;
}

Bytes products(DType dtype, const Bytes& input, const Bytes& factor) {
  const std::size_t element = size_of(dtype), count = input.size() / element;
  Bytes factors(input.size()), out(input.size());
  for (std::size_t i = 0; i < count; ++i) std::memcpy(factors.data() + i * element, factor.data(), element);
  const void* inputs[] = {input.data(), factors.data()};
  kernels::reference::reduce(dtype, ReduceOp::prod, inputs, out.data(), count);
  return out;
}

tributary_op make_op(tributary_comm* comm, DType dtype, int rank) {
  tributary_op op = TRIBUTARY_SUM;
  const Bytes factor = factor_of(dtype, rank);
  EXPECT_EQ(tributary_op_create_premul_sum(comm, factor.data(), static_cast<tributary_dtype>(dtype), &op), TRIBUTARY_OK)
      << last_error();
  return op;
}

/// All forms of the three collectives with `count` elements for each rank, against the scalar reference.
void expect_sums_of_products(tributary_comm* comm, int rank, DType dtype, std::size_t count, int numerics) {
  const auto type = static_cast<tributary_dtype>(dtype);
  const std::size_t bytes = count * size_of(dtype), own = static_cast<std::size_t>(rank) * bytes;
  std::vector<Bytes> multiplied;
  for (int r = 0; r < kRanks; ++r)
    multiplied.push_back(products(dtype, reducible(dtype, ReduceOp::sum, count * kRanks, r), factor_of(dtype, r)));
  const Bytes input = reducible(dtype, ReduceOp::sum, count * kRanks, rank);
  const Bytes all = reduced(dtype, ReduceOp::sum, multiplied);
  const tributary_op op = with(make_op(comm, dtype, rank), numerics);
  const std::string what = std::string(to_string(dtype)) + ", " + std::to_string(count);

  Bytes send = input, recv(input.size());
  tributary_request* request = nullptr;
  ASSERT_EQ(tributary_all_reduce(send.data(), recv.data(), count * kRanks, type, op, comm, &request), TRIBUTARY_OK);
  ASSERT_EQ(tributary_wait(request, -1), TRIBUTARY_OK) << last_error();
  EXPECT_EQ(difference(all, recv), "") << "all_reduce of " << what;
  EXPECT_EQ(difference(input, send), "") << "all_reduce has changed its input";
  ASSERT_EQ(tributary_all_reduce(send.data(), send.data(), count * kRanks, type, op, comm, nullptr), TRIBUTARY_OK);
  EXPECT_EQ(difference(all, send), "") << "all_reduce in place of " << what;

  for (const bool in_place : {false, true}) {
    send = input;
    std::byte* const result = in_place ? send.data() : recv.data();
    ASSERT_EQ(
        tributary_reduce(send.data(), rank == kRoot ? result : nullptr, count * kRanks, type, op, kRoot, comm, nullptr),
        TRIBUTARY_OK)
        << last_error();
    const Bytes& expected = in_place && rank != kRoot ? input : all;
    if (rank == kRoot || in_place) {
      EXPECT_EQ(difference(expected, in_place ? send : recv), "") << "reduce of " << what;
    }
    send = input;
    std::byte* const mine = in_place ? send.data() + own : recv.data();
    ASSERT_EQ(tributary_reduce_scatter(send.data(), mine, count, type, op, comm, nullptr), TRIBUTARY_OK)
        << last_error();
    EXPECT_EQ(difference(part(all, own, bytes), {mine, bytes}), "") << "reduce_scatter of " << what;
    if (in_place && bytes != 0) std::memcpy(mine, input.data() + own, bytes);
    EXPECT_EQ(difference(input, send), "") << "reduce_scatter has changed other parts of its input";
  }
  EXPECT_EQ(tributary_op_destroy(comm, static_cast<tributary_op>(op - numerics)), TRIBUTARY_OK) << last_error();
}

TEST(PremultipliedSums, AreTheSumsOfTheProductsInEveryForm) {
  run_ranks(kRanks, [](tributary_comm* comm, int rank) {
    for (std::uint8_t dtype = 0; dtype < kDTypeCount; ++dtype) {
      for (const std::size_t count : {0UL, 1UL, 700UL, 50'001UL})
        expect_sums_of_products(comm, rank, static_cast<DType>(dtype), count, 0);
    }
  });
}

TEST(PremultipliedSums, AreExactSumsOfTheRoundedProductsWithExactNumerics) {
  run_ranks(kRanks, [](tributary_comm* comm, int rank) {
    expect_sums_of_products(comm, rank, DType::float32, 700, TRIBUTARY_OP_EXACT);
    expect_sums_of_products(comm, rank, DType::bfloat16, 50'001, TRIBUTARY_OP_EXACT);
    // The products 1e30, 1 and -1e30: rounded sums lose the one in some orders.
    constexpr std::array<float, kRanks> kFactors{1e30F, 1.0F, -1e30F};
    tributary_op op = TRIBUTARY_SUM;
    ASSERT_EQ(tributary_op_create_premul_sum(comm, &kFactors[static_cast<std::size_t>(rank)], TRIBUTARY_FLOAT32, &op),
              TRIBUTARY_OK);
    std::vector<float> values(100'003, 1.0F);
    ASSERT_EQ(tributary_all_reduce(values.data(), values.data(), values.size(), TRIBUTARY_FLOAT32,
                                   with(op, TRIBUTARY_OP_EXACT), comm, nullptr),
              TRIBUTARY_OK)
        << last_error();
    EXPECT_EQ(values, std::vector<float>(values.size(), 1.0F));
    // Each product is rounded before the sum: 1 + 2^-23 squared loses its last bit, 2^-46.
    const float near = 1.0F + 0x1p-23F, minus = rank == 0 ? near : rank == 1 ? -(1.0F + 0x1p-22F) : 0.0F;
    float value = rank == 0 ? near : 1.0F, sum = -1;
    ASSERT_EQ(tributary_op_create_premul_sum(comm, &minus, TRIBUTARY_FLOAT32, &op), TRIBUTARY_OK);
    ASSERT_EQ(tributary_all_reduce(&value, &sum, 1, TRIBUTARY_FLOAT32, with(op, TRIBUTARY_OP_EXACT), comm, nullptr),
              TRIBUTARY_OK);
    EXPECT_EQ(sum, 0.0F);
  });
}

TEST(PremultipliedSums, MeetPlainSumsOfOtherRanks) {
  run_ranks(kRanks, [](tributary_comm* comm, int rank) {
    tributary_op op = TRIBUTARY_SUM;
    const std::int64_t factor = -5'000'000'000;
    if (rank == 0) {
      ASSERT_EQ(tributary_op_create_premul_sum(comm, &factor, TRIBUTARY_INT64, &op), TRIBUTARY_OK);
    }
    std::int64_t value = rank + 1;
    ASSERT_EQ(tributary_all_reduce(&value, &value, 1, TRIBUTARY_INT64, op, comm, nullptr), TRIBUTARY_OK);
    EXPECT_EQ(value, factor + 2 + 3);
  });
}

TEST(PremultipliedSums, OfOneRankAreItsProducts) {
  run_ranks(1, [](tributary_comm* comm, int) {
    const double factor = 0.25;
    tributary_op op = TRIBUTARY_SUM;
    ASSERT_EQ(tributary_op_create_premul_sum(comm, &factor, TRIBUTARY_FLOAT64, &op), TRIBUTARY_OK);
    double value = 3, result = 0;
    ASSERT_EQ(tributary_reduce_scatter(&value, &result, 1, TRIBUTARY_FLOAT64, op, comm, nullptr), TRIBUTARY_OK);
    EXPECT_EQ(result, 0.75);
    EXPECT_EQ(value, 3);
  });
}

TEST(PremultipliedSums, CountTheProductsAndNameNoBound) {
  run_ranks(kRanks,
            [](tributary_comm* comm, int) {
              const float factor = INFINITY;
              tributary_op op = TRIBUTARY_SUM;
              ASSERT_EQ(tributary_op_create_premul_sum(comm, &factor, TRIBUTARY_FLOAT32, &op), TRIBUTARY_OK);
              std::vector<float> values{0, 1, 2};
              tributary_request* request = nullptr;
              ASSERT_EQ(tributary_all_reduce(values.data(), values.data(), values.size(), TRIBUTARY_FLOAT32,
                                             with(op, TRIBUTARY_OP_EXACT), comm, &request),
                        TRIBUTARY_OK);
              tributary_request_details details{};
              details.struct_bytes = sizeof details;
              EXPECT_EQ(tributary_request_info(request, -1, &details), TRIBUTARY_OK);
              EXPECT_EQ(details.input.nans, 1U) << "zero times infinity";
              EXPECT_EQ(details.input.infinities, 2U);
              EXPECT_EQ(details.relative_error_bound, -1);
              EXPECT_EQ(tributary_wait(request, -1), TRIBUTARY_OK);
            },
            {.configure = [](int, tributary_config& config) { config.check_values = "count"; }});
}

TEST(PremultipliedSums, RefuseWrongArguments) {
  run_ranks(1, [](tributary_comm* comm, int) {
    const float factor = 2;
    tributary_op op = TRIBUTARY_SUM;
    EXPECT_EQ(tributary_op_create_premul_sum(comm, nullptr, TRIBUTARY_FLOAT32, &op), TRIBUTARY_ERROR_BAD_ARGUMENT);
    EXPECT_EQ(tributary_op_create_premul_sum(comm, &factor, static_cast<tributary_dtype>(99), &op),
              TRIBUTARY_ERROR_BAD_ARGUMENT);
    EXPECT_EQ(tributary_op_create_premul_sum(comm, &factor, TRIBUTARY_FLOAT32, nullptr), TRIBUTARY_ERROR_BAD_ARGUMENT);
    EXPECT_EQ(tributary_op_destroy(comm, TRIBUTARY_SUM), TRIBUTARY_ERROR_BAD_ARGUMENT);
    ASSERT_EQ(tributary_op_create_premul_sum(comm, &factor, TRIBUTARY_FLOAT32, &op), TRIBUTARY_OK);
    double wide = 1;
    EXPECT_EQ(tributary_all_reduce(&wide, &wide, 1, TRIBUTARY_FLOAT64, op, comm, nullptr),
              TRIBUTARY_ERROR_BAD_ARGUMENT);
    EXPECT_NE(last_error().find("float32"), std::string::npos) << last_error();
    float value = 1;
    EXPECT_EQ(tributary_all_reduce(&value, &value, 1, TRIBUTARY_FLOAT32, with(op, TRIBUTARY_MAX), comm, nullptr),
              TRIBUTARY_ERROR_BAD_ARGUMENT)
        << "an op with a factor is a sum";
    EXPECT_EQ(tributary_op_destroy(comm, op), TRIBUTARY_OK);
    EXPECT_EQ(tributary_op_destroy(comm, op), TRIBUTARY_ERROR_BAD_ARGUMENT);
    value = 1;
    EXPECT_EQ(tributary_all_reduce(&value, &value, 1, TRIBUTARY_FLOAT32, op, comm, nullptr),
              TRIBUTARY_ERROR_BAD_ARGUMENT);
    EXPECT_EQ(value, 1);
  });
}

}  // namespace
}  // namespace tributary::test
