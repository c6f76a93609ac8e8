#include "client/plugins/tensorflow/collective.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "client/plugins/tensorflow/api.h"

namespace tributary::tensorflow {
namespace {

constexpr int kBool = 10;
constexpr int kRanks = 4;

Plan plan(Collective collective, int type, std::vector<std::int64_t> dims, std::size_t bytes,
          std::int32_t argument = TRIBUTARY_SUM) {
  return plan_of(
      {.collective = collective, .type = type, .dims = std::move(dims), .bytes = bytes, .argument = argument}, kRanks);
}

TEST(TensorFlowPlan, AReductionCountsElementsOfItsType) {
  const Plan found = plan(Collective::all_reduce, kFloat, {3, 5}, 60);

  EXPECT_EQ(found.refusal, "");
  EXPECT_EQ(found.dims, (std::vector<std::int64_t>{3, 5}));
  EXPECT_EQ(found.dtype, TRIBUTARY_FLOAT32);
  EXPECT_EQ(found.count, 15U);
  EXPECT_EQ(found.bytes, 60U);
}

TEST(TensorFlowPlan, IntegersOf16BitsAreReduced) {
  for (const auto& [type, dtype] : {std::pair{kInt16, TRIBUTARY_INT16}, std::pair{kUint16, TRIBUTARY_UINT16}}) {
    const Plan found = plan(Collective::all_reduce, type, {4}, 8);
    EXPECT_EQ(found.refusal, "");
    EXPECT_EQ(found.dtype, dtype);
    EXPECT_EQ(found.count, 4U);
  }
}

TEST(TensorFlowPlan, AGatherMovesBytesAndHasTheRowsOfAllRanks) {
  const Plan found = plan(Collective::all_gather, kInt16, {3, 5}, 30);

  EXPECT_EQ(found.dims, (std::vector<std::int64_t>{12, 5}));
  EXPECT_EQ(found.dtype, TRIBUTARY_UINT8);
  EXPECT_EQ(found.count, 30U);
  EXPECT_EQ(found.bytes, 120U);
}

TEST(TensorFlowPlan, AScatterHasItsShareOfTheRows) {
  const Plan found = plan(Collective::reduce_scatter, kInt64, {8, 2}, 128);

  EXPECT_EQ(found.dims, (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(found.count, 4U);
  EXPECT_EQ(found.bytes, 32U);
}

TEST(TensorFlowPlan, AnExchangeSendsEachRankItsShareOfTheBytes) {
  const Plan found = plan(Collective::all_to_all, kDouble, {8}, 64);

  EXPECT_EQ(found.dims, std::vector<std::int64_t>{8});
  EXPECT_EQ(found.count, 16U);
  EXPECT_EQ(found.bytes, 64U);
}

TEST(TensorFlowPlan, RowsThatCannotBeSharedAreRefused) {
  EXPECT_NE(plan(Collective::all_to_all, kFloat, {6}, 24).refusal, "");
  EXPECT_NE(plan(Collective::reduce_scatter, kFloat, {6}, 24).refusal, "");
  EXPECT_NE(plan(Collective::all_gather, kFloat, {}, 4).refusal, "");
  EXPECT_EQ(plan(Collective::all_gather, kFloat, {6}, 24).refusal, "");
  EXPECT_EQ(plan(Collective::all_reduce, kFloat, {}, 4).refusal, "");
}

TEST(TensorFlowPlan, ComplexNumbersAreAddedAsTwoNumbersAndNotMultiplied) {
  EXPECT_EQ(plan(Collective::all_reduce, kComplex64, {3}, 24).count, 6U);
  EXPECT_EQ(plan(Collective::all_reduce, kComplex64, {3}, 24, TRIBUTARY_AVG).refusal, "");
  EXPECT_NE(plan(Collective::all_reduce, kComplex64, {3}, 24, TRIBUTARY_PROD).refusal, "");
}

TEST(TensorFlowPlan, TypesWithoutAReductionMayBeMoved) {
  EXPECT_NE(plan(Collective::all_reduce, kBool, {8}, 8).refusal, "");
  EXPECT_EQ(plan(Collective::broadcast, kBool, {8}, 8).refusal, "");
  EXPECT_EQ(plan(Collective::broadcast, kBool, {8}, 8).count, 8U);
}

}  // namespace
}  // namespace tributary::tensorflow
