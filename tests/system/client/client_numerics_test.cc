// Numerics of single calls, and products in the order of the ranks: the bits are the same on every path.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/system/client/group.h"

namespace tributary::test {
namespace {

constexpr int kRanks = 3;

tributary_op with(tributary_op op, int numerics) {
  return static_cast<tributary_op>(op | numerics);
}

GroupOptions numerics(const char* word) {
  return {.configure = [word](int, tributary_config& config) { config.numerics = word; }};
}

/// 1e30, 1 and -1e30, in another order from element to element: rounded sums lose the one in some orders.
std::vector<float> far_apart(std::size_t count, int rank) {
  constexpr float kValues[] = {1e30F, 1.0F, -1e30F};
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = kValues[(i + static_cast<std::size_t>(rank)) % kRanks];
  return values;
}

/// The last bit of a product of these depends on the order.
double factor(std::size_t i, int rank) {
  return 1.0 + static_cast<double>((i * 37 + static_cast<std::size_t>(rank) * 101) % 997) / 997.0;
}

double product_in_order(std::size_t i) {
  double product = factor(i, 0);
  for (int rank = 1; rank < kRanks; ++rank) product *= factor(i, rank);
  return product;
}

void expect_exact_sums(tributary_comm* comm, int rank, tributary_op sum) {
  for (const std::size_t count : {1UL, 1'000UL, 300'007UL}) {
    const std::vector<float> input = far_apart(count, rank);
    std::vector<float> result(count);
    ASSERT_EQ(tributary_all_reduce(input.data(), result.data(), count, TRIBUTARY_FLOAT32, sum, comm, nullptr),
              TRIBUTARY_OK)
        << last_error();
    EXPECT_EQ(result, std::vector<float>(count, 1.0F));
    const std::vector<float> parts = far_apart(count * kRanks, rank);
    ASSERT_EQ(tributary_reduce_scatter(parts.data(), result.data(), count, TRIBUTARY_FLOAT32, sum, comm, nullptr),
              TRIBUTARY_OK)
        << last_error();
    EXPECT_EQ(result, std::vector<float>(count, 1.0F));
  }
}

TEST(CallNumerics, MakeSingleSumsExact) {
  run_ranks(
      kRanks,
      [](tributary_comm* comm, int rank) {
        const std::vector<float> input = far_apart(3'000, rank);
        std::vector<float> rounded(input.size());
        const auto add = [&](tributary_op op) {
          ASSERT_EQ(
              tributary_all_reduce(input.data(), rounded.data(), input.size(), TRIBUTARY_FLOAT32, op, comm, nullptr),
              TRIBUTARY_OK)
              << last_error();
        };
        add(TRIBUTARY_SUM);
        EXPECT_NE(rounded, std::vector<float>(input.size(), 1.0F)) << "these values prove nothing";
        expect_exact_sums(comm, rank, with(TRIBUTARY_SUM, TRIBUTARY_OP_EXACT));
        add(TRIBUTARY_SUM);
        EXPECT_NE(rounded, std::vector<float>(input.size(), 1.0F)) << "a call has changed the communicator";
      },
      numerics("fast"));
}

TEST(CallNumerics, MakeSingleSumsFast) {
  run_ranks(
      kRanks,
      [](tributary_comm* comm, int rank) {
        const std::vector<float> input = far_apart(3'000, rank);
        std::vector<float> rounded(input.size());
        ASSERT_EQ(tributary_all_reduce(input.data(), rounded.data(), input.size(), TRIBUTARY_FLOAT32,
                                       with(TRIBUTARY_SUM, TRIBUTARY_OP_FAST), comm, nullptr),
                  TRIBUTARY_OK)
            << last_error();
        EXPECT_NE(rounded, std::vector<float>(input.size(), 1.0F));
        expect_exact_sums(comm, rank, TRIBUTARY_SUM);
      },
      numerics("exact"));
}

void expect_ordered_products(tributary_comm* comm, int rank, tributary_op product) {
  for (const std::size_t count : {1UL, 1'000UL, 300'007UL}) {
    std::vector<double> input(count * kRanks), result(count), right(count);
    for (std::size_t i = 0; i < input.size(); ++i) input[i] = factor(i, rank);
    for (std::size_t i = 0; i < count; ++i) right[i] = product_in_order(i);
    ASSERT_EQ(tributary_all_reduce(input.data(), result.data(), count, TRIBUTARY_FLOAT64, product, comm, nullptr),
              TRIBUTARY_OK)
        << last_error();
    EXPECT_EQ(result, right) << "all_reduce of " << count;
    ASSERT_EQ(tributary_reduce(input.data(), result.data(), count, TRIBUTARY_FLOAT64, product, 1, comm, nullptr),
              TRIBUTARY_OK)
        << last_error();
    if (rank == 1) {
      EXPECT_EQ(result, right) << "reduce of " << count;
    }
    ASSERT_EQ(tributary_reduce_scatter(input.data(), result.data(), count, TRIBUTARY_FLOAT64, product, comm, nullptr),
              TRIBUTARY_OK)
        << last_error();
    const std::size_t first = static_cast<std::size_t>(rank) * count;
    for (std::size_t i = 0; i < count; ++i) right[i] = product_in_order(first + i);
    EXPECT_EQ(result, right) << "reduce_scatter of " << count;
  }
}

TEST(CallNumerics, MultiplyInTheOrderOfTheRanks) {
  run_ranks(
      kRanks, [](tributary_comm* comm, int rank) { expect_ordered_products(comm, rank, TRIBUTARY_PROD); },
      numerics("exact"));
  run_ranks(
      kRanks,
      [](tributary_comm* comm, int rank) {
        expect_ordered_products(comm, rank, with(TRIBUTARY_PROD, TRIBUTARY_OP_EXACT));
      },
      numerics("fast"));
}

TEST(CallNumerics, BoundTheErrorOfTheirCall) {
  const auto counts = [](int, tributary_config& config) { config.check_values = "count"; };
  run_ranks(kRanks,
            [](tributary_comm* comm, int) {
              const std::vector<float> input(100, 0.1F);
              std::vector<float> result(100);
              const auto bound = [&](tributary_op op) {
                tributary_request* request = nullptr;
                EXPECT_EQ(tributary_all_reduce(input.data(), result.data(), 100, TRIBUTARY_FLOAT32, op, comm, &request),
                          TRIBUTARY_OK);
                tributary_request_details details{};
                details.struct_bytes = sizeof details;
                EXPECT_EQ(tributary_request_info(request, -1, &details), TRIBUTARY_OK);
                EXPECT_EQ(tributary_wait(request, -1), TRIBUTARY_OK);
                return details.relative_error_bound;
              };
              EXPECT_EQ(bound(with(TRIBUTARY_SUM, TRIBUTARY_OP_EXACT)), 0x1p-24);
              EXPECT_EQ(bound(TRIBUTARY_SUM), -1);
            },
            {.configure = counts});
}

}  // namespace
}  // namespace tributary::test
