// Counts of NaN, infinities and subnormal numbers (check_values), and the error that names the rank of a NaN. Runs in
// shared memory, between the ranks, on hosts, and over a tree: with TRIBUTARY_MANAGER all bytes must go by trees.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <thread>
#include <vector>

#include "tests/system/client/group.h"
#include "tributary/tributary.hpp"

namespace tributary::test {
namespace {

using testing::HasSubstr;
using Floats = std::vector<float>;

constexpr int kRanks = 3;
constexpr std::size_t kCount = 40'000;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kSubnormal = 1e-40F;

GroupOptions checking(const char* check, const char* numerics = "fast") {
  return {.configure = [=](int, tributary_config& config) {
    config.check_values = check;
    config.numerics = numerics;
  }};
}

tributary_request_details details_of(tributary_request* request, std::int64_t timeout_ns = -1) {
  tributary_request_details details{};
  details.struct_bytes = sizeof details;
  EXPECT_EQ(tributary_request_info(request, timeout_ns, &details), TRIBUTARY_OK) << last_error();
  return details;
}

void expect_counts(const tributary_values& values, const tributary_values& expected, const char* of, int rank) {
  const std::string where = std::string(of) + " of rank " + std::to_string(rank);
  EXPECT_EQ(values.elements, expected.elements) << where;
  EXPECT_EQ(values.nans, expected.nans) << where;
  EXPECT_EQ(values.infinities, expected.infinities) << where;
  EXPECT_EQ(values.subnormals, expected.subnormals) << where;
}

void expect_the_tests_path(tributary_comm* comm) {
  tributary_info info{};
  info.struct_bytes = sizeof info;
  ASSERT_EQ(tributary_comm_info(comm, &info), TRIBUTARY_OK) << last_error();
  if (std::getenv("TRIBUTARY_MANAGER") != nullptr) {
    EXPECT_GT(info.bytes_in_network, 0U) << info.reason;
  }
}

/// Returns the input of one rank: each rank brings two values of trouble, and rank 1 also a NaN.
Floats input_of(int rank) {
  Floats values(kCount, 1.0F + static_cast<float>(rank));
  values[10 + static_cast<std::size_t>(rank)] = kInfinity;
  values[20] = kSubnormal;
  values[30] = rank == 0 ? -kInfinity : rank == 1 ? kInfinity : 0.0F;  // their sum is NaN
  if (rank == 1) values[kCount - 1] = kNan;
  if (rank == 2) values[40] = std::numeric_limits<float>::max();
  if (rank == 0) values[40] = std::numeric_limits<float>::max();
  return values;
}

TEST(Values, AreCountedInInputAndResult) {
  run_ranks(
      kRanks,
      [](tributary_comm* comm, int rank) {
        const Floats input = input_of(rank);
        Floats result(kCount);
        tributary_request* request = nullptr;
        ASSERT_EQ(
            tributary_all_reduce(input.data(), result.data(), kCount, TRIBUTARY_FLOAT32, TRIBUTARY_SUM, comm, &request),
            TRIBUTARY_OK);
        const auto details = details_of(request);
        EXPECT_EQ(details.done, 1);
        EXPECT_EQ(details.counted, 1);
        EXPECT_EQ(details.relative_error_bound, -1) << "the sum of three values may cancel";
        expect_counts(details.input, {kCount, rank == 1 ? 1U : 0U, rank < 2 ? 2U : 1U, 1}, "input", rank);
        // Infinite: three that were brought, and one sum beyond the largest value.
        expect_counts(details.result, {kCount, 2, 4, 1}, "result", rank);
        EXPECT_EQ(tributary_wait(request, -1), TRIBUTARY_OK) << "the description leaves the request";
        expect_the_tests_path(comm);
      },
      checking("count"));
}

TEST(Values, AreCountedInPlaceAndInEveryTypeOfFloat) {
  run_ranks(
      kRanks,
      [](tributary_comm* comm, int rank) {
        struct Type {
          tributary_dtype dtype;
          std::uint64_t nan;
          std::size_t size;
        };
        const Type types[] = {{TRIBUTARY_FLOAT16, 0x7E00, 2},     {TRIBUTARY_BFLOAT16, 0x7FC0, 2},
                              {TRIBUTARY_FLOAT32, 0x7FC00000, 4}, {TRIBUTARY_FLOAT64, 0x7FF8000000000000, 8},
                              {TRIBUTARY_FLOAT8_E4M3, 0x7F, 1},   {TRIBUTARY_FLOAT8_E5M2, 0x7E, 1},
                              {TRIBUTARY_INT32, 0x7FC00000, 4}};
        for (const auto& [dtype, nan, size] : types) {
          std::vector<std::byte> data(1000 * size);
          std::memcpy(&data[7 * size + static_cast<std::size_t>(rank) * size], &nan, size);
          tributary_request* request = nullptr;
          ASSERT_EQ(tributary_all_reduce(data.data(), data.data(), 1000, dtype, TRIBUTARY_MAX, comm, &request),
                    TRIBUTARY_OK);
          const auto details = details_of(request);
          const bool whole = dtype == TRIBUTARY_INT32;
          expect_counts(details.input, {1000, whole ? 0U : 1U, 0, 0}, "input", rank);
          expect_counts(details.result, {1000, whole ? 0U : 3U, 0, 0}, "result", rank);
          EXPECT_EQ(details.relative_error_bound, 0) << "a maximum is one of its inputs";
          EXPECT_EQ(tributary_wait(request, -1), TRIBUTARY_OK);
        }
      },
      checking("count"));
}

TEST(Values, OfAReductionToOneRankAreCountedThere) {
  run_ranks(
      kRanks,
      [](tributary_comm* comm, int rank) {
        const Floats input(kCount, kSubnormal);
        Floats result(kCount);
        tributary_request* request = nullptr;
        ASSERT_EQ(
            tributary_reduce(input.data(), result.data(), kCount, TRIBUTARY_FLOAT32, TRIBUTARY_SUM, 2, comm, &request),
            TRIBUTARY_OK);
        const auto details = details_of(request);
        expect_counts(details.input, {kCount, 0, 0, kCount}, "input", rank);
        expect_counts(details.result, {rank == 2 ? kCount : 0, 0, 0, rank == 2 ? kCount : 0}, "result", rank);
        EXPECT_EQ(tributary_wait(request, -1), TRIBUTARY_OK);
      },
      checking("count"));
}

TEST(Values, HaveABoundOfTheErrorWithExactNumerics) {
  run_ranks(
      kRanks,
      [](tributary_comm* comm, int) {
        const Floats input(100, 0.1F);
        Floats result(100);
        tributary_request* request = nullptr;
        ASSERT_EQ(
            tributary_all_reduce(input.data(), result.data(), 100, TRIBUTARY_FLOAT32, TRIBUTARY_AVG, comm, &request),
            TRIBUTARY_OK);
        EXPECT_EQ(details_of(request).relative_error_bound, 0x1p-24);
        EXPECT_EQ(tributary_wait(request, -1), TRIBUTARY_OK);
      },
      checking("count", "exact"));
}

TEST(Values, AreNotCountedUnlessTheUserAsks) {
  run_ranks(2, [](tributary_comm* comm, int) {
    Floats data(100, kNan);
    tributary_request* request = nullptr;
    ASSERT_EQ(tributary_all_reduce(data.data(), data.data(), 100, TRIBUTARY_FLOAT32, TRIBUTARY_SUM, comm, &request),
              TRIBUTARY_OK);
    const auto details = details_of(request);
    EXPECT_EQ(details.done, 1);
    EXPECT_EQ(details.counted, 0);
    EXPECT_EQ(details.input.nans, 0U);
    EXPECT_EQ(details.relative_error_bound, -1);
    EXPECT_EQ(tributary_wait(request, -1), TRIBUTARY_OK);
    tributary_request_details wrong{};
    EXPECT_EQ(tributary_request_info(request, -1, &wrong), TRIBUTARY_ERROR_BAD_ARGUMENT) << "no struct_bytes";
    wrong.struct_bytes = sizeof wrong;
    EXPECT_EQ(tributary_request_info(request, -1, &wrong), TRIBUTARY_ERROR_BAD_ARGUMENT) << "the request is gone";
    EXPECT_EQ(tributary_request_info(nullptr, -2, &wrong), TRIBUTARY_ERROR_BAD_ARGUMENT);
  });
}

TEST(Values, OfAnOperationThatGoesOnAreThoseOfItsInput) {
  run_ranks(
      2,
      [](tributary_comm* comm, int rank) {
        if (rank == 1) std::this_thread::sleep_for(Milliseconds(300));
        Floats data(100, kInfinity);
        tributary_request* request = nullptr;
        ASSERT_EQ(tributary_all_reduce(data.data(), data.data(), 100, TRIBUTARY_FLOAT32, TRIBUTARY_SUM, comm, &request),
                  TRIBUTARY_OK);
        if (rank == 0) {
          const auto early = details_of(request, 0);
          EXPECT_EQ(early.done, 0);
          expect_counts(early.input, {100, 0, 100, 0}, "input", rank);
          expect_counts(early.result, {}, "result", rank);
        }
        EXPECT_EQ(details_of(request).result.infinities, 100U);
        EXPECT_EQ(tributary_wait(request, -1), TRIBUTARY_OK);
      },
      checking("count"));
}

/// Lets rank 1 bring a NaN to the third of four calls, by `call`, and checks every rank's error.
void expect_the_rank_named(const std::function<tributary_status(Floats&, tributary_comm*)>& call) {
  std::barrier<> ended(kRanks);
  run_ranks_without_end(
      kRanks,
      [&](tributary_comm* comm, int rank) {
        for (int round = 0; round < 2; ++round) {
          Floats data(kCount, 1.0F);
          EXPECT_EQ(call(data, comm), TRIBUTARY_OK) << last_error();
          EXPECT_EQ(data.back(), static_cast<float>(kRanks));
        }
        // The NaN also ends calls that other ranks are still about to end.
        ended.arrive_and_wait();
        Floats data(kCount, 1.0F);
        if (rank == 1) data[1234] = data[5678] = kNan;
        EXPECT_EQ(call(data, comm), TRIBUTARY_ERROR_ABORTED) << "rank " << rank << ": " << last_error();
        EXPECT_THAT(last_error(), HasSubstr("the input of rank 1 to all_reduce of 40000 float32 (sum) has 2 NaN, the "
                                            "first at element 1234 (TRIBUTARY_CHECK_VALUES=nan-fails)"))
            << "rank " << rank;
        Floats clean(kCount, 1.0F);
        EXPECT_EQ(call(clean, comm), TRIBUTARY_ERROR_ABORTED) << "no later call takes the place of the failed one";
        tributary_comm_destroy(comm);
      },
      checking("nan-fails"));
}

TEST(Values, ANaNEndsABlockingCallOnEveryRankAndNamesItsRank) {
  expect_the_rank_named([](Floats& data, tributary_comm* comm) {
    return tributary_all_reduce(data.data(), data.data(), data.size(), TRIBUTARY_FLOAT32, TRIBUTARY_SUM, comm, nullptr);
  });
}

TEST(Values, ANaNEndsARequestOnEveryRankAndNamesItsRank) {
  expect_the_rank_named([](Floats& data, tributary_comm* comm) {
    tributary_request* request = nullptr;
    const auto started =
        tributary_all_reduce(data.data(), data.data(), data.size(), TRIBUTARY_FLOAT32, TRIBUTARY_SUM, comm, &request);
    return started != TRIBUTARY_OK ? started : tributary_wait(request, -1);
  });
}

TEST(Values, AnInfinityIsNoNaN) {
  run_ranks(
      2,
      [](tributary_comm* comm, int rank) {
        Floats data(100, rank == 0 ? kInfinity : -kInfinity);
        tributary_request* request = nullptr;
        ASSERT_EQ(tributary_all_reduce(data.data(), data.data(), 100, TRIBUTARY_FLOAT32, TRIBUTARY_SUM, comm, &request),
                  TRIBUTARY_OK);
        EXPECT_EQ(details_of(request).result.nans, 100U) << "the sum made them, and no rank brought them";
        EXPECT_EQ(tributary_wait(request, -1), TRIBUTARY_OK) << last_error();
      },
      checking("nan-fails"));
}

TEST(Values, AreThereInCpp) {
  const UniqueId id = UniqueId::create();
  in_threads(2, [&](int rank) {
    Config config;
    config.timeout = Milliseconds(20'000);
    config.check_values = "count";
    Communicator comm(2, UniqueId::from_bytes(id.bytes()), rank, config);
    Floats data(100, kInfinity);
    Request request = comm.start_all_reduce(data, data, Op::sum);
    EXPECT_EQ(request.details().result.infinities, 100U);
    request.wait();
    EXPECT_THROW(static_cast<void>(request.details()), Error) << "the request has reported its end";
  });
}

}  // namespace
}  // namespace tributary::test
