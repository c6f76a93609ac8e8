// The counts of a rank's operations: classes of sizes and times, sums, and what the flight record counts.
#include "client/operation/operation_counts.h"

#include <gtest/gtest.h>

#include "client/operation/flight_record.h"

namespace tributary::client {
namespace {

using namespace std::chrono_literals;

TEST(OperationNumbers, ClassesOfSizesAreSixteenTimesAsWideAsTheOneBefore) {
  for (std::size_t number = 0; number + 1 < OperationNumbers::kSizes; ++number) {
    EXPECT_EQ(OperationNumbers::size_class_of(OperationNumbers::upper_bytes(number)), number);
    EXPECT_EQ(OperationNumbers::size_class_of(OperationNumbers::upper_bytes(number) + 1), number + 1);
  }
  EXPECT_EQ(OperationNumbers::upper_bytes(3), 16U << 20);
  EXPECT_EQ(OperationNumbers::size_class_of(0), 0U);
  EXPECT_EQ(OperationNumbers::size_class_of(UINT64_MAX), OperationNumbers::kSizes - 1);
}

TEST(OperationNumbers, ClassesOfTimesAreFourTimesAsWideAsTheOneBefore) {
  for (std::size_t number = 0; number + 1 < OperationNumbers::kTimes; ++number) {
    const std::chrono::microseconds upper(OperationNumbers::upper_us(number));
    EXPECT_EQ(OperationNumbers::time_class_of(upper), number);
    EXPECT_EQ(OperationNumbers::time_class_of(upper + 1ns), number + 1);
  }
  EXPECT_EQ(OperationNumbers::time_class_of(-1s), 0U);
  EXPECT_EQ(OperationNumbers::time_class_of(24h), OperationNumbers::kTimes - 1);
}

TEST(OperationCounts, NumbersOfSeveralCommunicatorsAddUp) {
  OperationCounts one, two;
  one.succeeded(Collective::all_reduce, 4096, 1, 10us);
  two.succeeded(Collective::all_reduce, 100, 1, 20us);
  two.paused(3ms);
  two.failed();
  OperationNumbers sum = one.read();
  sum += two.read();
  const auto& reduces = sum.operations[static_cast<std::size_t>(Collective::all_reduce)][0];
  EXPECT_EQ(reduces.counts[0], 1U);
  EXPECT_EQ(reduces.counts[1], 1U);
  EXPECT_EQ(reduces.sum_ns, 30'000U);
  EXPECT_EQ(sum.bytes[1], 4196U);
  EXPECT_EQ(sum.pauses.sum_ns, 3'000'000U);
  EXPECT_EQ(sum.failures, 1U);
}

TEST(OperationCounts, AFlightRecordCountsOperationsThatEnd) {
  FlightRecord record({.job = "training", .host = "node-1", .group = "5c0f", .rank = 2, .nranks = 4});
  const Signature signature{
      .collective = Collective::all_gather, .dtype = DType::float32, .op = ReduceOp::sum, .count = 1024};
  const transport::TimePoint start(1h);
  record.called(0, signature, start);
  record.called(1, signature, start);
  record.called(2, signature, start);
  record.started(0, FlightPath::in_network, start + 1s);
  record.ended(0, FlightPath::in_network, FlightOutcome::success, start + 3s);
  record.ended(1, FlightPath::between_ranks, FlightOutcome::failure, start + 3s);
  record.paused(5ms);
  const OperationNumbers numbers = record.numbers();
  const auto& gathers = numbers.operations[static_cast<std::size_t>(Collective::all_gather)][1];
  EXPECT_EQ(gathers.sum_ns, 2'000'000'000U) << "the time in the queue does not count";
  EXPECT_EQ(numbers.bytes[static_cast<std::size_t>(FlightPath::in_network)], 16384U);
  EXPECT_EQ(numbers.bytes[static_cast<std::size_t>(FlightPath::between_ranks)], 0U);
  EXPECT_EQ(numbers.failures, 1U);
  EXPECT_EQ(numbers.pauses.sum_ns, 5'000'000U);
}

}  // namespace
}  // namespace tributary::client
