// One lane's engine refuses or ignores frames that break its protocol.
#include <gtest/gtest.h>

#include <random>

#include "tests/unit/aggregator/lane_driver.h"
#include "tributary/kernels/partial_sum.h"
#include "tributary/protocol/numerics.h"

namespace tributary::engine::test {
namespace {

const Signature kSum{Collective::all_reduce, DType::int32, ReduceOp::sum, 0, 4};
const Signature kBroadcast{Collective::broadcast, DType::int32, ReduceOp::sum, 0, 4};
const Bytes kData = bytes_of(std::vector<std::int32_t>{1, 2, 3, 4});

LaneShape shape_of(std::uint32_t children, bool root = true) {
  return {.children = children, .window = 2, .segment_bytes = 256, .ranks = children, .root = root};
}

TEST(LaneProtocol, ADuplicateChangesNothingInEveryStateOfTheSlot) {
  LaneDriver driver(shape_of(2));
  ASSERT_TRUE(driver.contribute(0, contribution(0, kSum), kData));
  EXPECT_EQ(driver.contribute(0, contribution(0, kSum), kData).error(), Refusal::duplicate) << "the slot is collecting";
  ASSERT_TRUE(driver.contribute(1, contribution(0, kSum), kData));
  EXPECT_EQ(driver.contribute(1, contribution(0, kSum), kData).error(), Refusal::duplicate) << "the slot is complete";
  EXPECT_EQ(driver.out.result_of(0, 0)->payload, bytes_of(std::vector<std::int32_t>{2, 4, 6, 8}));
  EXPECT_EQ(driver.out.down.size(), 2U);
  EXPECT_TRUE(harmless(Refusal::duplicate));

  LaneDriver inner(shape_of(1, false));
  ASSERT_TRUE(inner.contribute(0, contribution(0, kSum), kData));
  EXPECT_EQ(inner.contribute(0, contribution(0, kSum), kData).error(), Refusal::duplicate) << "the slot is waiting";
  EXPECT_EQ(inner.out.up.size(), 1U);
}

TEST(LaneProtocol, FramesOfAnotherEpochChangeNothing) {
  LaneDriver driver(shape_of(2, false));
  for (const std::uint32_t epoch : {kEpoch - 1, kEpoch + 1}) {
    FrameHeader header = contribution(0, kSum);
    header.epoch = epoch;
    EXPECT_EQ(driver.contribute(0, header, kData).error(), Refusal::stale_epoch);
    EXPECT_EQ(driver.result(header, kData).error(), Refusal::stale_epoch);
  }
  EXPECT_TRUE(harmless(Refusal::stale_epoch));
  EXPECT_EQ(driver.lane.segments_in_flight(), 0U);
}

TEST(LaneProtocol, AContributionBeyondTheWindowIsRefusedInEveryStateOfTheSlot) {
  LaneDriver driver(shape_of(2));
  EXPECT_EQ(driver.contribute(0, contribution(2, kSum), kData).error(), Refusal::beyond_window) << "the slot is idle";
  ASSERT_TRUE(driver.contribute(0, contribution(0, kSum), kData));
  EXPECT_EQ(driver.contribute(0, contribution(2, kSum), kData).error(), Refusal::beyond_window)
      << "the slot is collecting";
  ASSERT_TRUE(driver.contribute(1, contribution(0, kSum), kData));
  EXPECT_EQ(driver.contribute(0, contribution(4, kSum), kData).error(), Refusal::beyond_window)
      << "the slot is complete";
  const std::uint64_t far = ~std::uint64_t{0};
  EXPECT_EQ(driver.contribute(0, contribution(far, kSum), kData).error(), Refusal::beyond_window);

  LaneDriver inner(shape_of(1, false));
  ASSERT_TRUE(inner.contribute(0, contribution(0, kSum), kData));
  EXPECT_EQ(inner.contribute(0, contribution(2, kSum), kData).error(), Refusal::beyond_window) << "the slot is waiting";
  EXPECT_FALSE(harmless(Refusal::beyond_window));
}

TEST(LaneProtocol, LengthsThatDoNotFitAreRefused) {
  LaneDriver driver(shape_of(2));
  for (const std::uint32_t bytes : {257U, 260U, 512U, kSegmentBytesMax}) {
    FrameHeader long_one = contribution(0, kSum);
    long_one.payload_bytes = bytes;
    EXPECT_EQ(driver.lane.contribution_begins(0, long_one), std::unexpected(Refusal::wrong_length)) << bytes;
    EXPECT_FALSE(driver.lane.takes_in_place(0, long_one)) << bytes;
  }
  FrameHeader bare = contribution(0, kSum, frame_flags::kBare);
  EXPECT_EQ(driver.contribute(0, bare, kData).error(), Refusal::wrong_length) << "a bare contribution has data";
  EXPECT_EQ(driver.contribute(0, contribution(0, kSum), Bytes(7)).error(), Refusal::wrong_length)
      << "the contribution ends within an element";

  LaneDriver unequal(shape_of(2));
  ASSERT_TRUE(unequal.contribute(0, contribution(0, kSum), kData));
  EXPECT_EQ(unequal.contribute(1, contribution(0, kSum), Bytes(8)).error(), Refusal::wrong_length)
      << "the other contribution has another length";
}

TEST(LaneProtocol, ABareFrameInPlaceOfDataIsRefusedAndDataInPlaceOfABareFrame) {
  LaneDriver sum(shape_of(2));
  EXPECT_EQ(sum.contribute(0, contribution(0, kSum, frame_flags::kBare), {}).error(), Refusal::unexpected_data);
  LaneDriver broadcast(shape_of(2));
  ASSERT_TRUE(broadcast.contribute(0, contribution(0, kBroadcast, 0), kData));
  EXPECT_EQ(broadcast.contribute(1, contribution(0, kBroadcast, 0), kData).error(), Refusal::unexpected_data);
}

TEST(LaneProtocol, AnExactSumIsRefusedWhereTheChildrenDoNotStandForAllRanks) {
  Signature exact = kSum;
  exact.dtype = DType::float32;
  exact.op = kExactSum;
  LaneShape above = shape_of(2);
  above.ranks = 3;
  LaneDriver driver(above);
  EXPECT_EQ(driver.contribute(0, contribution(0, exact), kData).error(), Refusal::partial_exact);
  EXPECT_FALSE(harmless(Refusal::partial_exact));
}

TEST(LaneProtocol, OnlyFormsOfWholeSegmentsAreTakenFromAnAggregator) {
  Signature exact = kSum;
  exact.dtype = DType::float32;
  exact.op = kExactSum;
  LaneShape shape = shape_of(2);
  shape.ranks = 3;
  LaneDriver driver(shape);
  driver.lane.set_child(0, 2, true);
  const FrameHeader header = contribution(0, exact);
  EXPECT_EQ(driver.contribute(0, header, kData).error(), Refusal::malformed_form) << "values";
  FrameHeader long_one = header;
  long_one.payload_bytes = shape.segment_bytes;
  EXPECT_FALSE(driver.lane.takes_in_place(0, long_one)) << "a form could change after the check";
  // A form of zeros is short, whatever its number of elements is. Its result would not fit in a segment.
  const std::vector<float> zeros(shape.segment_bytes / sizeof(float) + 1);
  const std::vector<kernels::PartialInput> input{{std::as_bytes(std::span(zeros)), false}};
  Bytes form(form_bytes_max(DType::float32, zeros.size()));
  form.resize(kernels::add_partial_sums(DType::float32, input, zeros.size(), form));
  ASSERT_LE(form.size(), shape.segment_bytes);
  EXPECT_EQ(driver.contribute(0, header, form).error(), Refusal::wrong_length);
  const std::vector<float> two{1, 2};
  Bytes right(form_bytes_max(DType::float32, 2));
  right.resize(kernels::add_partial_sums(
      DType::float32, std::vector<kernels::PartialInput>{{std::as_bytes(std::span(two)), false}}, 2, right));
  ASSERT_TRUE(driver.contribute(0, header, right));
  EXPECT_EQ(driver.contribute(1, header, bytes_of(std::vector<float>{1, 2, 3})).error(), Refusal::wrong_length)
      << "another number of elements";
  EXPECT_TRUE(driver.contribute(1, header, bytes_of(two)));
  EXPECT_EQ(driver.out.result_of(0, 0)->payload, bytes_of(std::vector<float>{2, 4}));
}

TEST(LaneProtocol, ResultsThatNobodyWaitsForAreRefused) {
  LaneDriver driver(shape_of(1, false));
  EXPECT_EQ(driver.result(contribution(0, kSum, 0), kData).error(), Refusal::no_such_segment) << "idle";
  ASSERT_TRUE(driver.contribute(0, contribution(0, kSum), kData));
  EXPECT_EQ(driver.result(contribution(1, kSum, 0), kData).error(), Refusal::no_such_segment)
      << "the result is of another segment";
  EXPECT_EQ(driver.result(contribution(2, kSum, 0), kData).error(), Refusal::no_such_segment)
      << "the result is of a later round of the slot";
  EXPECT_EQ(driver.result(contribution(0, kBroadcast, 0), kData).error(), Refusal::no_such_segment)
      << "the result is of another call";
  ASSERT_TRUE(driver.result(contribution(0, kSum, 0), kData));
  EXPECT_EQ(driver.result(contribution(0, kSum, 0), kData).error(), Refusal::no_such_segment)
      << "the result is repeated";
}

TEST(LaneProtocol, ResultsOfTheWrongKindOrLengthAreRefused) {
  LaneDriver driver(shape_of(1, false));
  ASSERT_TRUE(driver.contribute(0, contribution(0, kSum), kData));
  EXPECT_EQ(driver.result(contribution(0, kSum, 0), Bytes(8)).error(), Refusal::wrong_length);
  EXPECT_EQ(driver.result(contribution(0, kSum, frame_flags::kBare), {}).error(), Refusal::unexpected_data);
  EXPECT_EQ(driver.result(contribution(0, kSum, frame_flags::kBare), kData).error(), Refusal::wrong_length);
  ASSERT_TRUE(driver.contribute(0, contribution(1, kBroadcast, 0), kData));
  EXPECT_EQ(driver.result(contribution(1, kBroadcast, 0), kData).error(), Refusal::wrong_length)
      << "the data came from this aggregator";
}

// The owner's data comes from above, and only the parent knows how long they are.
TEST(LaneProtocol, AParentsResultLongerThanASlotIsRefused) {
  for (const std::uint32_t bytes : {256U, 260U, 512U, kSegmentBytesMax}) {
    LaneDriver driver(shape_of(2, false));
    for (std::uint32_t child = 0; child < 2; ++child)
      ASSERT_TRUE(driver.contribute(child, contribution(0, kBroadcast, kBareAndWants), {}));
    FrameHeader result = contribution(0, kBroadcast, 0);
    result.type = FrameType::result;
    result.payload_bytes = bytes;
    const auto place = driver.lane.result_begins(result);
    if (bytes <= 256) {
      ASSERT_TRUE(place);
      EXPECT_EQ(place->size(), bytes);
    } else {
      ASSERT_FALSE(place) << bytes << " bytes in a slot of 256";
      EXPECT_EQ(place.error(), Refusal::wrong_length);
      EXPECT_FALSE(harmless(place.error()));
    }
  }
}

TEST(LaneProtocol, ChildrenThatDisagreeAreReportedOnceAndEndTheLane) {
  LaneDriver driver(shape_of(3));
  ASSERT_TRUE(driver.contribute(2, contribution(0, kSum), kData));
  ASSERT_TRUE(driver.contribute(0, contribution(0, kBroadcast, 0), kData)) << "a fault is no refusal";
  ASSERT_EQ(driver.out.faults.size(), 1U);
  EXPECT_EQ(driver.out.faults[0].child_a, 2U);
  EXPECT_EQ(driver.out.faults[0].child_b, 0U);
  EXPECT_EQ(driver.out.faults[0].report.a, kSum);
  EXPECT_EQ(driver.out.faults[0].report.b, kBroadcast);
  EXPECT_EQ(driver.contribute(1, contribution(0, kSum), kData).error(), Refusal::over);
  EXPECT_TRUE(driver.out.down.empty());
  EXPECT_TRUE(harmless(Refusal::over)) << "such frames were under way when the fault was found";
}

TEST(LaneProtocol, EveryPartOfASignatureCounts) {
  const auto differs = [](auto change) {
    LaneDriver driver(shape_of(2));
    FrameHeader other = contribution(0, kSum);
    change(other);
    EXPECT_TRUE(driver.contribute(0, contribution(0, kSum), kData));
    EXPECT_TRUE(driver.contribute(1, other, kData));
    return driver.out.faults.size() == 1 && driver.out.down.empty();
  };
  EXPECT_TRUE(differs([](FrameHeader& h) { h.collective = Collective::reduce; }));
  EXPECT_TRUE(differs([](FrameHeader& h) { h.dtype = DType::float32; }));
  EXPECT_TRUE(differs([](FrameHeader& h) { h.op = ReduceOp::max; }));
  EXPECT_TRUE(differs([](FrameHeader& h) { h.root = 1; }));
  EXPECT_TRUE(differs([](FrameHeader& h) { h.count = 5; }));
  EXPECT_TRUE(differs([](FrameHeader& h) { h.operation = 1; }));
  EXPECT_TRUE(differs([](FrameHeader& h) { h.segment = 1; }));
}

TEST(LaneProtocol, RandomHeadersNeverBreakTheEngine) {
  // Feeds any header that decode() accepts, in any order, with any length that a transport would deliver.
  std::mt19937 random(5);
  for (int lane = 0; lane < 300; ++lane) {
    const std::uint32_t children = 1 + static_cast<std::uint32_t>(random() % 5);
    LaneDriver driver(shape_of(children, random() % 2 == 0));
    for (int step = 0; step < 200; ++step) {
      FrameHeader header = contribution(random() % 6, kSum, static_cast<std::uint16_t>(random() % 4));
      header.operation = random() % 8 == 0 ? 1 : 0;
      header.epoch = random() % 8 == 0 ? kEpoch - 1 : kEpoch;
      if (random() % 8 == 0) header.collective = static_cast<Collective>(random() % kCollectiveCount);
      if (random() % 16 == 0) header.dtype = static_cast<DType>(random() % kDTypeCount);
      if (random() % 16 == 0) header.op = static_cast<ReduceOp>(random() % kReduceOpCount);
      const Bytes payload(header.bare() && random() % 8 != 0 ? 0 : (random() % 4 == 0 ? random() % 300 : 16));
      if (random() % 3 == 0) {
        (void)driver.result(header, payload);
      } else {
        (void)driver.contribute(static_cast<std::uint32_t>(random() % children), header, payload);
      }
      ASSERT_LE(driver.lane.segments_in_flight(), 2U);
    }
  }
}

}  // namespace
}  // namespace tributary::engine::test
