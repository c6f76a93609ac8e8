// Output of one lane's engine when every child obeys the protocol.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <tuple>

#include "kernels/reference/reduce.h"
#include "tests/unit/aggregator/lane_driver.h"
#include "tributary/kernels/exact.h"
#include "tributary/kernels/partial_sum.h"
#include "tributary/protocol/numerics.h"

namespace tributary::engine::test {
namespace {

LaneShape root_of(std::uint32_t children, std::uint32_t window = 4) {
  return {.children = children, .window = window, .segment_bytes = 1024, .ranks = children, .root = true};
}
LaneShape inner_of(std::uint32_t children, std::uint32_t ranks = 100) {
  return {.children = children, .window = 4, .segment_bytes = 1024, .ranks = ranks, .root = false};
}

/// Returns the sum in the order of the children's indices, in which the lane must add, whatever the order of arrival.
Bytes expected_of(DType dtype, ReduceOp op, const std::vector<Bytes>& inputs, std::uint32_t divisor = 1) {
  std::vector<const void*> pointers;
  for (const Bytes& input : inputs) pointers.push_back(input.data());
  Bytes out(inputs.front().size());
  kernels::reference::reduce(dtype, op, pointers, out.data(), out.size() / size_of(dtype), divisor);
  return out;
}

/// Every byte pattern is a number of the small floats. The function makes NaNs finite, because the engine does not
/// promise the bits of a NaN.
Bytes random_bytes(DType dtype, std::size_t count, std::mt19937& random) {
  if (dtype == DType::float32) return bytes_of(values<float>(static_cast<std::uint32_t>(random()), count));
  if (dtype == DType::float64) return bytes_of(values<double>(static_cast<std::uint32_t>(random()), count));
  Bytes bytes(count * size_of(dtype));
  for (std::byte& b : bytes) b = static_cast<std::byte>(random() & (size_of(dtype) == 2 ? 0x3BU : 0xFFU));
  return bytes;
}

struct Case {
  DType dtype;
  ReduceOp op;
};

class LaneReduces : public ::testing::TestWithParam<Case> {};

TEST_P(LaneReduces, GivesTheSameBitsInEveryOrderOfArrivalAndForEveryNumberOfChildren) {
  const auto [dtype, op] = GetParam();
  std::mt19937 random(7);
  for (const std::uint32_t children : {1U, 2U, 3U, 4U, 5U, 8U, 9U, 17U, 64U}) {
    if (children == 1 && is_logical(op)) continue;  // a single input passes as it is
    LaneDriver driver(root_of(children));
    for (std::uint64_t sequence = 0; sequence < 6; ++sequence) {
      const Signature signature{Collective::all_reduce, dtype, op, 0, 33};
      std::vector<Bytes> inputs;
      for (std::uint32_t child = 0; child < children; ++child) inputs.push_back(random_bytes(dtype, 33, random));
      std::vector<std::uint32_t> order(children);
      std::iota(order.begin(), order.end(), 0U);
      if (sequence == 1) std::reverse(order.begin(), order.end());
      if (sequence > 1) std::shuffle(order.begin(), order.end(), random);
      for (const std::uint32_t child : order) {
        ASSERT_TRUE(driver.contribute(child, contribution(sequence, signature), inputs[child]));
      }
      const Bytes expected = expected_of(dtype, op, inputs, op == ReduceOp::avg ? children : 1);
      for (std::uint32_t child = 0; child < children; ++child) {
        const Sent* result = driver.out.result_of(child, sequence);
        ASSERT_NE(result, nullptr);
        ASSERT_EQ(result->payload, expected) << children << " children, sequence " << sequence;
      }
    }
  }
}

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  return std::string(to_string(info.param.dtype)) + "_" + std::string(to_string(info.param.op));
}
INSTANTIATE_TEST_SUITE_P(Lane, LaneReduces,
                         ::testing::Values(Case{DType::float32, ReduceOp::sum}, Case{DType::float32, ReduceOp::avg},
                                           Case{DType::float64, ReduceOp::avg}, Case{DType::float16, ReduceOp::sum},
                                           Case{DType::float16, ReduceOp::avg}, Case{DType::bfloat16, ReduceOp::sum},
                                           Case{DType::bfloat16, ReduceOp::prod}, Case{DType::int8, ReduceOp::sum},
                                           Case{DType::int32, ReduceOp::avg}, Case{DType::uint64, ReduceOp::max},
                                           Case{DType::int64, ReduceOp::min}, Case{DType::uint8, ReduceOp::prod},
                                           Case{DType::int16, ReduceOp::avg}, Case{DType::uint16, ReduceOp::band},
                                           Case{DType::int64, ReduceOp::bor}, Case{DType::uint32, ReduceOp::bxor},
                                           Case{DType::int8, ReduceOp::land}, Case{DType::uint64, ReduceOp::lor},
                                           Case{DType::int32, ReduceOp::lxor}),
                         case_name);

TEST(Lane, AnEarlySumOfAPrefixGivesTheSameBitsAsOneSum) {
  constexpr std::uint32_t kChildren = 13;
  const Signature signature{Collective::all_reduce, DType::float32, ReduceOp::sum, 0, 50};
  // Children 0 to 11 in order let the engine add in three steps. With child 12 first the engine can add only when all
  // are there.
  LaneDriver early(root_of(kChildren)), late(root_of(kChildren));
  for (std::uint32_t child = 0; child < kChildren; ++child) {
    ASSERT_TRUE(early.contribute(child, contribution(0, signature), bytes_of(values<float>(child, 50))));
    const std::uint32_t other = kChildren - 1 - child;
    ASSERT_TRUE(late.contribute(other, contribution(0, signature), bytes_of(values<float>(other, 50))));
  }
  EXPECT_EQ(early.out.result_of(0, 0)->payload, late.out.result_of(0, 0)->payload);
}

TEST(Lane, ARootOfAllRanksAddsExactlyInEveryOrderOfArrival) {
  const Signature signature{Collective::all_reduce, DType::float32, kExactSum, 0, 2};
  const std::vector<std::vector<float>> inputs{{1e30F, 1}, {1, 2}, {-1e30F, 3}, {0x1p-40F, 4}, {2, 5}, {3, 6}};
  std::vector<std::uint32_t> order{0, 1, 2, 3, 4, 5};
  std::mt19937 random(3);
  for (int turn = 0; turn < 20; ++turn, std::shuffle(order.begin(), order.end(), random)) {
    LaneDriver driver(root_of(6));
    for (const std::uint32_t child : order)
      ASSERT_TRUE(driver.contribute(child, contribution(0, signature), bytes_of(inputs[child])));
    EXPECT_EQ(driver.out.result_of(0, 0)->payload, bytes_of(std::vector<float>{6, 21}));
  }
}

// A product of some ranks has no form, so no rank sends one: a process that does is wrong, or lies.
TEST(Lane, RefusesOrderedProducts) {
  for (const bool root : {true, false}) {
    LaneDriver driver(root ? root_of(2) : inner_of(2));
    const Signature product{Collective::all_reduce, DType::float32, kOrderedProduct, 0, 2};
    const auto refused = driver.contribute(0, contribution(0, product), bytes_of(std::vector<float>{1, 2}));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error(), Refusal::unexpected_data);
    Signature moved = product;
    moved.collective = Collective::broadcast;
    LaneDriver other(root ? root_of(2) : inner_of(2));
    EXPECT_TRUE(other.contribute(1, contribution(0, moved), bytes_of(std::vector<float>{1, 2})));
  }
}

/// Five ranks: two below one aggregator, two below another, and one beside them at the root.
class ExactTree {
 public:
  ExactTree()
      : left(inner_of(2, 5)),
        right(inner_of(2, 5)),
        root({.children = 3, .window = 4, .segment_bytes = 1024, .ranks = 5, .root = true}) {
    root.lane.set_child(0, 2, true);
    root.lane.set_child(1, 2, true);
  }
  /// Returns what rank 0 gets. The ranks' values are in their order.
  Bytes sum(const Signature& signature, const std::vector<Bytes>& inputs) {
    const FrameHeader header = contribution(sequence_++, signature);
    EXPECT_TRUE(right.contribute(1, header, inputs[3]) && left.contribute(0, header, inputs[0]));
    EXPECT_TRUE(right.contribute(0, header, inputs[2]) && left.contribute(1, header, inputs[1]));
    EXPECT_TRUE(root.contribute(2, header, inputs[4]));
    EXPECT_TRUE(root.contribute(1, right.out.up.back().header, right.out.up.back().payload));
    EXPECT_TRUE(root.contribute(0, left.out.up.back().header, left.out.up.back().payload));
    const Bytes down = root.out.result_of(0, header.sequence)->payload;
    EXPECT_EQ(left.out.up.back().header.payload_bytes, down.size()) << "the length of the result is known in advance";
    EXPECT_TRUE(left.result(header, down));
    return left.out.result_of(0, header.sequence)->payload;
  }

  LaneDriver left, right, root;

 private:
  std::uint64_t sequence_ = 0;
};

TEST(Lane, OfSeveralLevelsRoundsAnExactSumAtTheRootAlone) {
  ExactTree tree;
  const std::vector<std::vector<float>> inputs{{1e30F, 1}, {1, 0x1p-30F}, {-1e30F, -1}, {0x1p-40F, 0x1p-149F}, {2, 3}};
  std::vector<Bytes> bytes;
  for (const auto& input : inputs) bytes.push_back(bytes_of(input));
  const Signature sum{Collective::all_reduce, DType::float32, kExactSum, 0, 2};
  EXPECT_EQ(tree.sum(sum, bytes), bytes_of(std::vector<float>{3, 3}));
  const Signature average{Collective::all_reduce, DType::float32, kExactAverage, 0, 2};
  EXPECT_EQ(tree.sum(average, bytes), bytes_of(std::vector<float>{0.6F, 0.6F}));
}

// The root has as many children as the group has ranks, but each child is an aggregator, which sends a form.
TEST(Lane, ARootAboveAggregatorsOfOneRankEachReadsTheirForms) {
  LaneDriver left(inner_of(1, 2)), right(inner_of(1, 2)), root(root_of(2));
  root.lane.set_child(0, 1, true);
  root.lane.set_child(1, 1, true);
  const FrameHeader header = contribution(0, {Collective::all_reduce, DType::float32, kExactSum, 0, 2});
  ASSERT_TRUE(left.contribute(0, header, bytes_of(std::vector<float>{1, 2})));
  ASSERT_TRUE(right.contribute(0, header, bytes_of(std::vector<float>{3, 4})));
  ASSERT_TRUE(root.contribute(0, left.out.up.back().header, left.out.up.back().payload));
  ASSERT_TRUE(root.contribute(1, right.out.up.back().header, right.out.up.back().payload));
  EXPECT_EQ(root.out.result_of(0, 0)->payload, bytes_of(std::vector<float>{4, 6}));
}

/// Returns the form of the values of a host's ranks.
Bytes form_of_host(const std::vector<std::vector<float>>& ranks) {
  std::vector<kernels::PartialInput> inputs;
  for (const auto& values : ranks) inputs.push_back({std::as_bytes(std::span(values)), false});
  Bytes form(form_bytes_max(DType::float32, ranks[0].size()));
  form.resize(kernels::add_partial_sums(DType::float32, inputs, ranks[0].size(), form));
  return form;
}

// Two hosts are children of one aggregator; the third, of three ranks, is a child of the root.
TEST(Lane, HostsContributeFormsAndTheirRanksDivideTheAverage) {
  const Bytes first = form_of_host({{1e30F, 1}, {1, 2}}), second = form_of_host({{-1e30F, 3}});
  const Bytes third = form_of_host({{0x1p-40F, 4}, {2, 5}, {3, 6}});
  for (const auto& [op, expected] : {std::pair{kExactSumOfHosts, std::vector<float>{6, 21}},
                                     std::pair{kExactAverageOfHosts, std::vector<float>{1, 3.5}}}) {
    LaneDriver inner(inner_of(2, 3)), root(root_of(2));
    root.lane.set_child(0, 2, true);
    const FrameHeader header = contribution(0, {Collective::all_reduce, DType::float32, op, 0, 2});
    ASSERT_TRUE(inner.contribute(1, header, second));
    ASSERT_TRUE(inner.contribute(0, header, first));
    ASSERT_TRUE(root.contribute(0, inner.out.up.back().header, inner.out.up.back().payload));
    EXPECT_EQ(root.contribute(1, header, bytes_of(std::vector<float>{1, 2})).error(), Refusal::malformed_form);
    ASSERT_TRUE(root.contribute(1, header, third));
    EXPECT_EQ(root.out.result_of(0, 0)->payload, bytes_of(expected)) << to_string(op);
    LaneDriver alone(root_of(1));
    ASSERT_TRUE(alone.contribute(0, header, third));
    EXPECT_EQ(alone.out.result_of(0, 0)->payload,
              bytes_of(op == kExactSumOfHosts ? std::vector<float>{5, 15} : std::vector<float>{5.0F / 3, 5}));
  }
}

TEST(Lane, OfSeveralLevelsSumsTheLongestSegmentThatItsFormsFitIn) {
  for (const DType dtype : {DType::float32, DType::float64, DType::bfloat16}) {
    const std::size_t count = form_elements_max(dtype, 1024);
    const Signature sum{Collective::all_reduce, dtype, kExactSum, 0, count};
    std::mt19937 random(5);
    std::vector<Bytes> inputs(5, Bytes(count * size_of(dtype)));
    for (Bytes& input : inputs) {
      for (std::byte& byte : input) byte = static_cast<std::byte>(random() & 0xFFU);  // all exponents, and NaN
    }
    std::vector<const void*> pointers;
    for (const Bytes& input : inputs) pointers.push_back(input.data());
    Bytes expected(count * size_of(dtype));
    kernels::exact_sum(dtype, pointers, expected.data(), count);
    ExactTree tree;
    EXPECT_EQ(tree.sum(sum, inputs), expected) << to_string(dtype);
    const FrameHeader header = contribution(1, sum);
    const Bytes longer((count + 1) * size_of(dtype));
    EXPECT_EQ(tree.left.contribute(0, header, longer).error(), Refusal::wrong_length) << to_string(dtype);
  }
}

TEST(Lane, BelowTheRootSendsTheAverageUpScaledByItsRanksAndTheRootsAnswerDown) {
  LaneDriver driver(inner_of(2));
  const Signature average{Collective::all_reduce, DType::float32, ReduceOp::avg, 0, 3};
  ASSERT_TRUE(driver.contribute(1, contribution(0, average), bytes_of(std::vector<float>{10, 20, 30})));
  ASSERT_TRUE(driver.contribute(0, contribution(0, average), bytes_of(std::vector<float>{1, 2, 3})));
  ASSERT_EQ(driver.out.up.size(), 1U);
  EXPECT_EQ(driver.out.up[0].header.type, FrameType::contribution);
  EXPECT_TRUE(driver.out.up[0].header.wants_result());
  EXPECT_FALSE(driver.out.up[0].header.bare());
  EXPECT_EQ(driver.out.up[0].header.signature(), average);
  EXPECT_EQ(driver.out.up[0].payload, bytes_of(std::vector<float>{5.5, 11, 16.5}));
  EXPECT_TRUE(driver.out.down.empty());
  EXPECT_EQ(driver.lane.segments_in_flight(), 1U);

  const Bytes answer = bytes_of(std::vector<float>{7, 8, 9});
  ASSERT_TRUE(driver.result(contribution(0, average, 0), answer));
  for (std::uint32_t child = 0; child < 2; ++child) EXPECT_EQ(driver.out.result_of(child, 0)->payload, answer);
  EXPECT_EQ(driver.lane.segments_in_flight(), 0U);
  EXPECT_EQ(driver.lane.segments_completed(), 1U);
}

TEST(Lane, ARootWithOneChildStillDividesByTheRanksOfTheGroup) {
  LaneDriver driver({.children = 1, .window = 2, .segment_bytes = 256, .ranks = 4, .root = true});
  const Signature average{Collective::all_reduce, DType::int32, ReduceOp::avg, 0, 2};
  ASSERT_TRUE(driver.contribute(0, contribution(0, average), bytes_of(std::vector<std::int32_t>{8, -9})));
  EXPECT_EQ(driver.out.result_of(0, 0)->payload, bytes_of(std::vector<std::int32_t>{2, -2}));
}

TEST(Lane, AllToOneGivesDataToTheOneThatAskedAndBareResultsToTheOthers) {
  for (const Collective collective : {Collective::reduce, Collective::reduce_scatter}) {
    LaneDriver driver(root_of(3));
    const Signature signature{collective, DType::int32, ReduceOp::sum, 1, 4};
    for (std::uint32_t child = 0; child < 3; ++child) {
      const std::uint16_t flags = child == 1 ? frame_flags::kWantsResult : std::uint16_t{0};
      const std::vector<std::int32_t> input(4, static_cast<std::int32_t>(child + 1));
      ASSERT_TRUE(driver.contribute(child, contribution(0, signature, flags), bytes_of(input)));
    }
    for (std::uint32_t child = 0; child < 3; ++child) {
      const Sent* result = driver.out.result_of(child, 0);
      ASSERT_NE(result, nullptr);
      EXPECT_EQ(result->header.bare(), child != 1);
      EXPECT_EQ(result->payload, child == 1 ? bytes_of(std::vector<std::int32_t>(4, 6)) : Bytes{});
    }
  }
}

TEST(Lane, BelowTheRootItAsksOnlyForSumsThatAChildWants) {
  LaneDriver driver(inner_of(2));
  const Signature signature{Collective::reduce, DType::int32, ReduceOp::sum, 77, 1};
  for (std::uint32_t child = 0; child < 2; ++child) {
    ASSERT_TRUE(driver.contribute(child, contribution(0, signature, 0), bytes_of(std::vector<std::int32_t>{5})));
  }
  ASSERT_EQ(driver.out.up.size(), 1U);
  EXPECT_FALSE(driver.out.up[0].header.wants_result());
  EXPECT_EQ(driver.out.up[0].payload, bytes_of(std::vector<std::int32_t>{10}));
  ASSERT_TRUE(driver.result(contribution(0, signature, frame_flags::kBare), {}));
  EXPECT_TRUE(driver.out.result_of(0, 0)->header.bare());
  EXPECT_TRUE(driver.out.result_of(1, 0)->header.bare());
}

TEST(Lane, OneToAllGivesTheOwnersDataToAllOthers) {
  for (const Collective collective : {Collective::broadcast, Collective::all_gather}) {
    for (std::uint32_t owner = 0; owner < 3; ++owner) {
      LaneDriver driver(root_of(3));
      const Signature signature{collective, DType::float32, ReduceOp::sum, owner, 8};
      const Bytes data = bytes_of(values<float>(owner, 8));
      for (std::uint32_t child = 0; child < 3; ++child) {
        const bool owns = child == owner;
        const auto header = contribution(0, signature, owns ? std::uint16_t{0} : kBareAndWants);
        ASSERT_TRUE(driver.contribute(child, header, owns ? data : Bytes{}));
      }
      for (std::uint32_t child = 0; child < 3; ++child) {
        const Sent* result = driver.out.result_of(child, 0);
        EXPECT_EQ(result->header.bare(), child == owner);
        EXPECT_EQ(result->payload, child == owner ? Bytes{} : data);
      }
    }
  }
}

TEST(Lane, BelowTheRootKeepsTheDataOfAnOwnerBelowItAndAsksForNone) {
  LaneDriver driver(inner_of(2));
  const Signature signature{Collective::broadcast, DType::uint8, ReduceOp::sum, 0, 5};
  const Bytes data = bytes_of(std::vector<std::uint8_t>{1, 2, 3, 4, 5});
  ASSERT_TRUE(driver.contribute(1, contribution(0, signature, kBareAndWants), {}));
  ASSERT_TRUE(driver.contribute(0, contribution(0, signature, 0), data));
  ASSERT_EQ(driver.out.up.size(), 1U);
  EXPECT_EQ(driver.out.up[0].payload, data);
  EXPECT_FALSE(driver.out.up[0].header.wants_result());
  ASSERT_TRUE(driver.result(contribution(0, signature, frame_flags::kBare), {}));
  EXPECT_TRUE(driver.out.result_of(0, 0)->header.bare());
  EXPECT_EQ(driver.out.result_of(1, 0)->payload, data);
}

TEST(Lane, BelowTheRootWithoutTheOwnerSendsABareContributionAndPassesTheDataDown) {
  LaneDriver driver(inner_of(2));
  const Signature signature{Collective::all_gather, DType::uint8, ReduceOp::sum, 0, 3};
  for (std::uint32_t child = 0; child < 2; ++child) {
    ASSERT_TRUE(driver.contribute(child, contribution(0, signature, kBareAndWants), {}));
  }
  ASSERT_EQ(driver.out.up.size(), 1U);
  EXPECT_TRUE(driver.out.up[0].header.bare());
  EXPECT_TRUE(driver.out.up[0].header.wants_result());
  const Bytes data = bytes_of(std::vector<std::uint8_t>{9, 8, 7});
  ASSERT_TRUE(driver.result(contribution(0, signature, 0), data));
  for (std::uint32_t child = 0; child < 2; ++child) EXPECT_EQ(driver.out.result_of(child, 0)->payload, data);
}

TEST(Lane, ABarrierIsBareAllTheWay) {
  LaneDriver driver(root_of(2));
  const Signature signature{Collective::barrier, DType::uint8, ReduceOp::sum, 0, 0};
  ASSERT_TRUE(driver.contribute(0, contribution(0, signature, frame_flags::kBare), {}));
  EXPECT_TRUE(driver.out.down.empty()) << "no child passes the barrier before all children came";
  ASSERT_TRUE(driver.contribute(1, contribution(0, signature, frame_flags::kBare), {}));
  ASSERT_EQ(driver.out.down.size(), 2U);
  for (const SentDown& sent : driver.out.down) EXPECT_TRUE(sent.header.bare());
}

TEST(Lane, ZeroElementsAreReducedToZeroElements) {
  LaneDriver driver(root_of(2));
  const Signature signature{Collective::all_reduce, DType::float64, ReduceOp::avg, 0, 0};
  for (std::uint32_t child = 0; child < 2; ++child) {
    ASSERT_TRUE(driver.contribute(child, contribution(0, signature), {}));
  }
  ASSERT_EQ(driver.out.down.size(), 2U);
  EXPECT_TRUE(driver.out.down[0].payload.empty());
}

TEST(Lane, ManySegmentsRunThroughAWindowWithChildrenAheadOfOneAnother) {
  constexpr std::uint32_t kChildren = 5, kWindow = 4;
  constexpr std::uint64_t kSegments = 400;
  const Signature signature{Collective::all_reduce, DType::int64, ReduceOp::sum, 0, 16};
  LaneDriver driver(root_of(kChildren, kWindow));
  std::array<std::uint64_t, kChildren> contributed{};
  std::mt19937 random(11);
  for (std::uint64_t completed = 0; completed < kSegments; completed = driver.lane.segments_completed()) {
    const std::uint32_t child = static_cast<std::uint32_t>(random() % kChildren);
    const std::uint64_t sequence = contributed[child];
    if (sequence >= completed + kWindow || sequence >= kSegments) continue;
    ASSERT_TRUE(driver.contribute(child, contribution(sequence, signature),
                                  bytes_of(values<std::int64_t>(child, 16, sequence))));
    ++contributed[child];
  }
  for (std::uint64_t sequence = 0; sequence < kSegments; ++sequence) {
    std::vector<Bytes> inputs;
    for (std::uint32_t c = 0; c < kChildren; ++c) inputs.push_back(bytes_of(values<std::int64_t>(c, 16, sequence)));
    ASSERT_EQ(driver.out.result_of(2, sequence)->payload, expected_of(DType::int64, ReduceOp::sum, inputs));
  }
  EXPECT_EQ(driver.lane.segments_in_flight(), 0U);
}

TEST(Lane, SumsContributionsWhereTheyLieAndGivesThemBackOnce) {
  // Every second child's contribution lies elsewhere, and there are so many that a part is summed early.
  constexpr std::uint32_t kChildren = 9;
  for (const std::uint32_t parity : {0U, 1U, 2U}) {  // 2: all children contribute from elsewhere
    LaneDriver driver(root_of(kChildren, 2));
    const Signature sum{Collective::all_reduce, DType::int32, ReduceOp::sum, 0, 16};
    for (std::uint64_t sequence = 0; sequence < 6; ++sequence) {
      std::vector<Bytes> inputs;
      for (std::uint32_t c = 0; c < kChildren; ++c) inputs.push_back(bytes_of(values<std::int32_t>(c, 16, sequence)));
      std::vector<std::pair<std::uint32_t, const std::byte*>> kept;
      for (std::uint32_t c = 0; c < kChildren; ++c) {
        const bool in_place = parity == 2 || c % 2 == parity;
        if (in_place) kept.emplace_back(c, inputs[c].data());
        ASSERT_TRUE(in_place ? driver.contribute_in_place(c, contribution(sequence, sum), inputs[c])
                             : driver.contribute(c, contribution(sequence, sum), inputs[c]));
      }
      ASSERT_EQ(driver.out.result_of(2, sequence)->payload, expected_of(DType::int32, ReduceOp::sum, inputs));
      EXPECT_EQ(driver.out.given_back, kept);
      driver.out.given_back.clear();
    }
  }
}

TEST(Lane, DataThatMoveOnUnchangedAreNotTakenInPlace) {
  LaneDriver alone(root_of(1, 2));
  const Signature sum{Collective::all_reduce, DType::int32, ReduceOp::sum, 0, 16};
  FrameHeader header = contribution(0, sum);
  header.payload_bytes = 64;
  EXPECT_FALSE(alone.lane.takes_in_place(0, header));
  LaneDriver driver(root_of(3, 2));
  EXPECT_TRUE(driver.lane.takes_in_place(0, header));
  header.sequence = 2;
  EXPECT_FALSE(driver.lane.takes_in_place(0, header)) << "the contribution is beyond the window";
  FrameHeader moved = contribution(0, {Collective::broadcast, DType::uint8, ReduceOp::sum, 0, 64});
  moved.payload_bytes = 64;
  EXPECT_FALSE(driver.lane.takes_in_place(0, moved));
}

/// Keeps the buffers from which the lane sends, until the test says that they are sent.
class Lent final : public LaneOutput {
 public:
  bool to_parent(const FrameHeader&, std::span<const std::byte>) override { return false; }
  bool to_child(std::uint32_t, const FrameHeader& header, std::span<const std::byte> payload) override {
    result_of[header.sequence] = payload.data();
    return !payload.empty();
  }
  void fault(std::uint32_t, std::uint32_t, MismatchReport) override { FAIL(); }
  std::map<std::uint64_t, const std::byte*> result_of;
};

/// Two children contribute to a segment. Returns the buffers of the two contributions.
std::array<const std::byte*, 2> contribute_both(Lane& lane, LaneOutput& output, std::uint64_t sequence) {
  FrameHeader header = contribution(sequence, {Collective::all_reduce, DType::uint8, ReduceOp::sum, 0, 64});
  header.payload_bytes = 64;
  std::array<const std::byte*, 2> buffers{};
  for (const std::uint32_t child : {0U, 1U}) {
    const auto place = lane.contribution_begins(child, header);
    EXPECT_TRUE(place);
    buffers[child] = place->data();
    EXPECT_TRUE(lane.contribution_landed(child, header, output));
  }
  return buffers;
}

TEST(Lane, UsesThreeBuffersAgainAndAgainIfOneSegmentIsInFlight) {
  Lane lane(root_of(2, 64), kEpoch);
  Lent lent;
  std::set<const std::byte*> used;
  for (std::uint64_t sequence = 0; sequence < 200; ++sequence) {
    for (const std::byte* buffer : contribute_both(lane, lent, sequence)) used.insert(buffer);
    used.insert(lent.result_of.at(sequence));
    lane.sent(sequence);
    lane.sent(sequence);
  }
  EXPECT_EQ(used.size(), 3U);
}

TEST(Lane, SumsThatOtherCoresReadTakeTheirTurnsInAMebibyteOfBuffers) {
  constexpr std::uint32_t kSegment = 64U << 10, kBuffers = 16;
  LaneShape shape = root_of(2, 64);
  shape.segment_bytes = kSegment;
  Lane lane(shape, kEpoch);
  lane.sums_are_read_elsewhere();
  Lent lent;
  std::set<const std::byte*> received, sums;
  for (std::uint64_t sequence = 0; sequence < 200; ++sequence) {
    for (const std::byte* buffer : contribute_both(lane, lent, sequence)) received.insert(buffer);
    sums.insert(lent.result_of.at(sequence));
    lane.sent(sequence);
    lane.sent(sequence);
    if (sequence < kBuffers) continue;
    EXPECT_EQ(lent.result_of.at(sequence), lent.result_of.at(sequence - kBuffers)) << sequence;
  }
  EXPECT_EQ(sums.size(), kBuffers);
  EXPECT_LE(received.size(), 3U) << "contributions use the same buffers again";
}

TEST(Lane, SumsThatOtherCoresReadUseAllBuffersIfThereAreFew) {
  Lane lane(root_of(2, 1), kEpoch);
  lane.sums_are_read_elsewhere();
  Lent lent;
  for (std::uint64_t sequence = 0; sequence < 20; ++sequence) {
    std::ignore = contribute_both(lane, lent, sequence);
    if (sequence % 3 == 0) lane.sent(sequence);
    if (sequence % 2 == 0) lane.sent(sequence);
  }
}

TEST(Lane, DoesNotWriteIntoABufferFromWhichAResultIsStillSent) {
  Lane lane(root_of(2, 4), kEpoch);
  Lent lent;
  std::ignore = contribute_both(lane, lent, 0);
  lane.sent(0);  // the other child still reads result 0
  const std::byte* const lent_out = lent.result_of.at(0);
  for (std::uint64_t sequence = 1; sequence < 4; ++sequence) {
    for (const std::byte* buffer : contribute_both(lane, lent, sequence)) EXPECT_NE(buffer, lent_out);
    EXPECT_NE(lent.result_of.at(sequence), lent_out);
  }
}

TEST(Lane, ALateWordAboutAnEarlierResultOfTheSlotFreesNoBuffer) {
  Lane lane(root_of(2, 1), kEpoch);
  Lent lent;
  std::ignore = contribute_both(lane, lent, 0);
  std::ignore = contribute_both(lane, lent, 1);  // both children have result 0, although no sent() has said so
  lane.sent(0);
  lane.sent(0);
  for (const std::byte* buffer : contribute_both(lane, lent, 2)) EXPECT_NE(buffer, lent.result_of.at(1));
}

TEST(Lane, AResultStaysReadableUntilAllHaveContributedTheNextSegmentOfItsSlot) {
  // A slow child still reads result 0 while the other children are a window ahead. The test tries all patterns, because
  // buffers change places.
  constexpr std::uint32_t kWindow = 2;
  struct Keep final : LaneOutput {
    bool to_parent(const FrameHeader&, std::span<const std::byte>) override { return false; }
    bool to_child(std::uint32_t child, const FrameHeader& header, std::span<const std::byte> payload) override {
      if (child == 2 && header.sequence == 0) slow = payload;
      return !payload.empty();
    }
    void fault(std::uint32_t, std::uint32_t, MismatchReport) override { FAIL(); }
    std::span<const std::byte> slow;
  } keep;
  Lane lane(root_of(3, kWindow), kEpoch);
  const auto contribute = [&](std::uint32_t child, FrameHeader header, const Bytes& payload) {
    header.payload_bytes = static_cast<std::uint32_t>(payload.size());
    const auto place = lane.contribution_begins(child, header);
    ASSERT_TRUE(place);
    std::copy(payload.begin(), payload.end(), place->begin());
    ASSERT_TRUE(lane.contribution_landed(child, header, keep));
  };
  const Signature broadcast{Collective::broadcast, DType::uint8, ReduceOp::sum, 0, 64};
  const Bytes first(64, std::byte{1}), second(64, std::byte{2});
  contribute(0, contribution(0, broadcast, 0), first);
  contribute(1, contribution(0, broadcast, kBareAndWants), {});
  contribute(2, contribution(0, broadcast, kBareAndWants), {});
  const Signature sum{Collective::all_reduce, DType::uint8, ReduceOp::sum, 0, 64};
  contribute(0, contribution(kWindow, sum), second);
  contribute(1, contribution(kWindow, sum), second);
  ASSERT_EQ(keep.slow.size(), 64U);
  EXPECT_TRUE(std::equal(keep.slow.begin(), keep.slow.end(), first.begin())) << "child 2 has not read the result yet";
}

}  // namespace
}  // namespace tributary::engine::test
