#include "client/api/call_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "client/api/rank_figures.h"

namespace tributary::client {
namespace {

using testing::HasSubstr;
using Floats = std::vector<float>;

CheckedCall call_with(const Floats& send, Floats& recv, ReduceOp op = ReduceOp::sum) {
  return {.signature = {.collective = Collective::all_reduce,
                        .dtype = DType::float32,
                        .op = op,
                        .root = 0,
                        .count = send.size()},
          .send = reinterpret_cast<const std::byte*>(send.data()),
          .recv = reinterpret_cast<std::byte*>(recv.data()),
          .send_bytes = send.size() * sizeof(float),
          .recv_bytes = recv.size() * sizeof(float)};
}

TEST(CallValues, CountTheInputAtOnceAndTheResultWhenItIsThere) {
  const Floats send{1, std::numeric_limits<float>::quiet_NaN(), 1e-40F, 0};
  Floats recv(4);
  const auto record = std::make_shared<FlightRecord>(FlightOrigin{.job = "j", .host = "h", .group = "g"});
  CallValues values(call_with(send, recv), 2, record);
  EXPECT_EQ(values.numbers().input.elements, 4U);
  EXPECT_EQ(values.numbers().input.found, (kernels::ValueCounts{.nans = 1, .subnormals = 1}));
  EXPECT_EQ(values.numbers().result.elements, 0U);
  recv = {std::numeric_limits<float>::infinity(), 0, 0, 0};
  values.see_result();
  EXPECT_EQ(values.numbers().result.found, kernels::ValueCounts{.infinities = 1});
  EXPECT_THAT(values.nan_in_input(7), HasSubstr("the input of rank 7 to all_reduce of 4 float32 (sum) has 1 NaN, the "
                                                "first at element 1"));
  EXPECT_EQ(record->numbers().values.input.found.nans, 1U);
  EXPECT_EQ(record->numbers().values.result.elements, 4U);
  RankFigures figures;
  figures.began(*record);
  EXPECT_THAT(figures.json({record}),
              HasSubstr(R"("values":{"input":{"elements":4,"nan":1,"infinity":0,"subnormal":1},)"
                        R"("result":{"elements":4,"nan":0,"infinity":1,"subnormal":0}})"));
  figures.ended(*record);
  EXPECT_THAT(figures.json({}), HasSubstr(R"("nan":1)")) << "counters never go back";
}

TEST(CallValues, KnowABoundOfTheErrorOnlyWhereItHolds) {
  const auto bound = [](Collective collective, DType dtype, ReduceOp op, std::uint32_t nranks = 4) {
    return relative_error_bound({.collective = collective, .dtype = dtype, .op = op}, nranks).value_or(-1);
  };
  using enum Collective;
  EXPECT_EQ(bound(all_reduce, DType::float32, kExactSum), 0x1p-24);
  EXPECT_EQ(bound(reduce_scatter, DType::float64, kExactAverageOfHosts), 0x1p-53);
  EXPECT_EQ(bound(reduce, DType::float16, kExactSum), 0x1p-11);
  EXPECT_EQ(bound(reduce, DType::bfloat16, kExactSum), 0x1p-8);
  EXPECT_EQ(bound(reduce, DType::float8_e4m3, kExactSum), 0x1p-4);
  EXPECT_EQ(bound(reduce, DType::float8_e5m2, kExactSum), 0x1p-3);
  EXPECT_EQ(bound(all_reduce, DType::float32, ReduceOp::sum), -1) << "values may cancel";
  EXPECT_EQ(bound(all_reduce, DType::float32, ReduceOp::prod), -1);
  EXPECT_EQ(bound(all_reduce, DType::int32, ReduceOp::avg), -1) << "it is truncated";
  EXPECT_EQ(bound(all_reduce, DType::int32, ReduceOp::sum), 0);
  EXPECT_EQ(bound(all_reduce, DType::float32, ReduceOp::max), 0);
  EXPECT_EQ(bound(all_gather, DType::float32, ReduceOp::sum), 0);
  EXPECT_EQ(bound(all_reduce, DType::float32, ReduceOp::sum, 1), 0) << "one rank copies";
}

}  // namespace
}  // namespace tributary::client
