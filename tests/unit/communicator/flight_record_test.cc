// The flight record: the ring keeps the last operations, and an operation that hangs, in their order.
#include "client/operation/flight_record.h"

#include <gtest/gtest.h>

#include <span>
#include <thread>

namespace tributary::client {
namespace {

using transport::TimePoint;
constexpr std::uint64_t kEntries = FlightRecord::kEntries;

TimePoint at(int seconds) {
  return TimePoint(std::chrono::seconds(seconds));
}

Signature signature_of(std::uint64_t count) {
  return {.collective = Collective::all_reduce, .dtype = DType::float32, .op = ReduceOp::sum, .count = count};
}

class FlightRecordTest : public testing::Test {
 protected:
  void call(std::uint64_t number) { record_.called(number, signature_of(number + 1), at(1)); }
  void end(std::uint64_t number) { record_.ended(number, FlightPath::between_ranks, FlightOutcome::success, at(3)); }
  FlightRecord record_{{.job = "training", .host = "node-1", .group = "5c0f", .rank = 2, .nranks = 4}};
};

TEST_F(FlightRecordTest, IsEmptyAtFirst) {
  const auto now = record_.snapshot();
  EXPECT_EQ(now.called, 0U);
  EXPECT_TRUE(now.entries.empty());
  EXPECT_TRUE(now.failure.empty());
}

TEST_F(FlightRecordTest, TheTimeOfOperationsThatOverlapCountsOnce) {
  for (std::uint64_t number : {0U, 1U, 2U}) call(number);
  record_.started(0, FlightPath::between_ranks, at(10));
  record_.started(1, FlightPath::between_ranks, at(11));
  record_.ended(0, FlightPath::between_ranks, FlightOutcome::success, at(14));
  record_.ended(1, FlightPath::between_ranks, FlightOutcome::success, at(15));
  EXPECT_EQ(record_.snapshot().busy, std::chrono::seconds(5));
  record_.started(2, FlightPath::between_ranks, at(20));
  EXPECT_EQ(record_.snapshot().busy, std::chrono::seconds(5)) << "the operation has not ended";
  record_.ended(2, FlightPath::between_ranks, FlightOutcome::failure, at(22));
  EXPECT_EQ(record_.snapshot().busy, std::chrono::seconds(7));
}

TEST_F(FlightRecordTest, KeepsWhatTheCallWasAndItsTimes) {
  const Signature signature{.collective = Collective::broadcast,
                            .dtype = DType::bfloat16,
                            .op = ReduceOp::max,
                            .root = 0xFFFF'FFFF,
                            .count = 0xFFFF'FFFF'FFFF'FFFF};
  record_.called(0, signature, at(1));
  record_.started(0, FlightPath::in_network, at(2));
  auto now = record_.snapshot();
  ASSERT_EQ(now.entries.size(), 1U);
  EXPECT_EQ(now.entries[0].signature, signature);
  EXPECT_EQ(now.entries[0].path, FlightPath::in_network);
  EXPECT_EQ(now.entries[0].outcome, FlightOutcome::open);
  EXPECT_EQ(now.entries[0].queued, at(1));
  EXPECT_EQ(now.entries[0].started, at(2));
  EXPECT_EQ(now.entries[0].ended, std::nullopt);
  end(0);  // its tree was lost
  now = record_.snapshot();
  EXPECT_EQ(now.entries[0].path, FlightPath::between_ranks);
  EXPECT_EQ(now.entries[0].outcome, FlightOutcome::success);
  EXPECT_EQ(now.entries[0].ended, at(3));
}

TEST_F(FlightRecordTest, KeepsWhenTheFirstAndTheLastPartCame) {
  call(0);
  record_.started(0, FlightPath::in_network, at(2));
  EXPECT_EQ(record_.snapshot().entries[0].first_byte, std::nullopt);
  record_.came(0, at(3));
  EXPECT_EQ(record_.snapshot().entries[0].last_byte, at(3)) << "also while the operation is open";
  record_.came(0, at(5));
  end(0);
  const auto now = record_.snapshot();
  EXPECT_EQ(now.entries[0].first_byte, at(3));
  EXPECT_EQ(now.entries[0].last_byte, at(5));
  EXPECT_EQ(now.entries[0].outcome, FlightOutcome::success);
  EXPECT_EQ(now.entries[0].signature, signature_of(1));
}

TEST_F(FlightRecordTest, TheNextOperationInAPlaceOfTheRingHasNoBytesOfTheOneBefore) {
  call(0);
  record_.came(0, at(2));
  end(0);
  call(1);  // hangs
  record_.came(1, at(2));
  for (std::uint64_t number = 2; number <= kEntries + 1; ++number) call(number);
  record_.came(1, at(4));
  record_.came(0, at(4));  // no longer kept
  const auto now = record_.snapshot();
  ASSERT_EQ(now.entries.size(), kEntries + 1);
  EXPECT_EQ(now.entries[0].number, 1U);
  EXPECT_EQ(now.entries[0].first_byte, at(2));
  EXPECT_EQ(now.entries[0].last_byte, at(4));
  for (const FlightEntry& entry : std::span(now.entries).subspan(1)) {
    EXPECT_EQ(entry.first_byte, std::nullopt) << entry.number;
    EXPECT_EQ(entry.last_byte, std::nullopt) << entry.number;
  }
}

TEST_F(FlightRecordTest, ATraceHasAllOperationsAlsoThoseThatTheRingHasPassed) {
  call(0);
  record_.begin_trace(transport::Clock::now() + std::chrono::hours(1));
  end(0);
  for (std::uint64_t number = 1; number <= 3 * kEntries; ++number) {
    call(number);
    end(number);
  }
  call(3 * kEntries + 1);
  const auto trace = record_.take_trace();
  ASSERT_EQ(trace.operations.size(), 3 * kEntries + 2);
  EXPECT_EQ(trace.operations_lost, 0U);
  for (std::uint64_t number = 0; number < trace.operations.size(); ++number) {
    EXPECT_EQ(trace.operations[number].number, number);
    EXPECT_EQ(trace.operations[number].signature, signature_of(number + 1));
  }
  EXPECT_EQ(trace.operations.back().outcome, FlightOutcome::open);
  call(3 * kEntries + 2);
  end(3 * kEntries + 2);
  EXPECT_EQ(record_.take_trace().operations.size(), 3 * kEntries + 2) << "nothing is added after the end";
}

TEST_F(FlightRecordTest, WhileATraceIsRecordedCallsHaveExactTimes) {
  const auto before = transport::Clock::now();
  record_.begin_trace(before + std::chrono::hours(1));
  record_.began(0, signature_of(1), FlightPath::shared_memory, {.queued = at(1), .started = at(1)});
  end(0);
  const auto trace = record_.take_trace();
  ASSERT_EQ(trace.operations.size(), 1U);
  EXPECT_EQ(trace.operations[0].queued, at(1));
  EXPECT_GE(*trace.operations[0].started, before);
  EXPECT_GE(*trace.operations[0].ended, *trace.operations[0].started);
}

TEST_F(FlightRecordTest, ACallThatBeginsAtOnceHasBothTimes) {
  record_.began(0, signature_of(1), FlightPath::shared_memory, {.queued = at(1), .started = at(2)});
  const auto now = record_.snapshot();
  ASSERT_EQ(now.entries.size(), 1U);
  EXPECT_EQ(now.entries[0].queued, at(1));
  EXPECT_EQ(now.entries[0].started, at(2));
  EXPECT_EQ(now.entries[0].path, FlightPath::shared_memory);
}

TEST_F(FlightRecordTest, TheRingKeepsTheLastOperationsInTheirOrder) {
  for (std::uint64_t number = 0; number < 3 * kEntries + 7; ++number) {
    call(number);
    end(number);
  }
  const auto now = record_.snapshot();
  EXPECT_EQ(now.called, 3 * kEntries + 7);
  ASSERT_EQ(now.entries.size(), kEntries);
  for (std::uint64_t i = 0; i < kEntries; ++i) {
    EXPECT_EQ(now.entries[i].number, 2 * kEntries + 7 + i);
    EXPECT_EQ(now.entries[i].signature.count, 2 * kEntries + 8 + i);
  }
}

TEST_F(FlightRecordTest, AnOperationThatHangsStaysWhenTheRingHasPassedIt) {
  call(0);
  end(0);
  call(1);  // hangs
  for (std::uint64_t number = 2; number < 3 * kEntries; ++number) {
    call(number);
    end(number);
  }
  auto now = record_.snapshot();
  ASSERT_EQ(now.entries.size(), kEntries + 1);
  EXPECT_EQ(now.entries[0].number, 1U);
  EXPECT_EQ(now.entries[0].signature, signature_of(2));
  EXPECT_EQ(now.entries[0].outcome, FlightOutcome::open);
  EXPECT_EQ(now.entries[1].number, 2 * kEntries);
  end(1);
  now = record_.snapshot();
  EXPECT_EQ(now.entries[0].number, 1U);
  EXPECT_EQ(now.entries[0].outcome, FlightOutcome::success);
}

TEST_F(FlightRecordTest, TheEndOfAnOperationThatIsNotKeptChangesNothing) {
  for (std::uint64_t number = 0; number < 2 * kEntries; ++number) call(number);  // only operation 0 is kept beside
  end(1);
  record_.started(1, FlightPath::in_network, at(2));
  const auto now = record_.snapshot();
  ASSERT_EQ(now.entries.size(), kEntries + 1);
  for (const FlightEntry& entry : now.entries) EXPECT_EQ(entry.outcome, FlightOutcome::open) << entry.number;
}

TEST_F(FlightRecordTest, AFailureEndsTheOpenOperationsAndItsFirstReasonStands) {
  call(0);
  end(0);
  call(1);
  record_.failed("rank 3 is gone");
  record_.failed("aborted");
  record_.fail_open(at(9));
  const auto now = record_.snapshot();
  EXPECT_EQ(now.failure, "rank 3 is gone");
  ASSERT_EQ(now.entries.size(), 2U);
  EXPECT_EQ(now.entries[0].outcome, FlightOutcome::success);
  EXPECT_EQ(now.entries[0].ended, at(3));
  EXPECT_EQ(now.entries[1].outcome, FlightOutcome::failure);
  EXPECT_EQ(now.entries[1].ended, at(9));
}

// The values of each entry follow from its number, so that a mixture of two operations shows.
TEST_F(FlightRecordTest, AReaderNeverSeesAMixtureOfTwoOperations) {
  constexpr std::uint64_t kCalls = 200'000;
  std::thread writer([&] {
    for (std::uint64_t number = 0; number < kCalls; ++number) {
      const auto seconds = static_cast<int>(number + 1);
      record_.called(number, signature_of(number + 1), at(seconds));
      for (int part = 0; part < 3; ++part) record_.came(number, at(seconds));
      record_.ended(number, FlightPath::in_network, FlightOutcome::success, at(seconds));
    }
  });
  std::uint64_t called = 0;
  while (called < kCalls) {
    const auto now = record_.snapshot();
    called = now.called;
    for (const FlightEntry& entry : now.entries) {
      const auto seconds = static_cast<int>(entry.number + 1);
      EXPECT_EQ(entry.signature, signature_of(entry.number + 1));
      EXPECT_EQ(entry.queued, at(seconds));
      const bool has_ended = entry.outcome == FlightOutcome::success;
      if (entry.first_byte) {
        EXPECT_EQ(entry.first_byte, at(seconds));
      }
      EXPECT_EQ(entry.last_byte, entry.first_byte);
      EXPECT_EQ(entry.ended, has_ended ? std::optional(at(seconds)) : std::nullopt);
    }
  }
  writer.join();
}

TEST(FlightClock, TheCoarseTimeIsTheSteadyClocksAndNeverAhead) {
  const TimePoint before = transport::Clock::now();
  const TimePoint coarse = coarse_now();
  EXPECT_LE(coarse, transport::Clock::now());
  EXPECT_GT(coarse, before - std::chrono::seconds(1));
}

}  // namespace
}  // namespace tributary::client
