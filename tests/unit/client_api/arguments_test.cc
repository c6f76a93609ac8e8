#include "client/api/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace tributary::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::uint32_t kRanks = 4, kRank = 2;
std::array<float, 256> memory;

CollectiveCall call(Collective collective, const void* send, void* recv, std::size_t count = 16) {
  return {.function = "tributary_call",
          .collective = collective,
          .send = send,
          .recv = recv,
          .count = count,
          .dtype = static_cast<int>(DType::float32)};
}

std::string error_of(const CollectiveCall& c, std::uint32_t rank = kRank) {
  const auto operation = check(c, rank, kRanks);
  if (operation) return "no error";
  EXPECT_EQ(operation.error().code, Errc::bad_argument);
  EXPECT_THAT(operation.error().message, ::testing::StartsWith("tributary_call: "));
  return operation.error().message;
}

/// Returns "apart", "in place", or the error.
std::string form(Collective collective, std::ptrdiff_t send_at, std::ptrdiff_t recv_at, std::uint32_t rank = kRank,
                 int root = 0) {
  CollectiveCall c = call(collective, memory.data() + send_at, memory.data() + recv_at);
  c.root = root;
  const auto operation = check(c, rank, kRanks);
  if (!operation) return operation.error().message;
  return operation->in_place ? "in place" : "apart";
}

TEST(Arguments, AreTakenOverIntoTheOperation) {
  CollectiveCall c = call(Collective::reduce, &memory[0], &memory[16]);
  c.op = static_cast<int>(ReduceOp::max);
  c.root = 2;
  const auto o = check(c, 2, kRanks);
  ASSERT_TRUE(o) << o.error().message;
  EXPECT_EQ(o->signature, (Signature{Collective::reduce, DType::float32, ReduceOp::max, 2, 16}));
  EXPECT_EQ(o->send, reinterpret_cast<const std::byte*>(&memory[0]));
  EXPECT_EQ(o->recv, reinterpret_cast<std::byte*>(&memory[16]));
  EXPECT_FALSE(o->in_place);
}

TEST(Arguments, ExactNumericsChangeSumsAveragesAndProductsOfFloats) {
  CollectiveCall c = call(Collective::all_reduce, &memory[0], &memory[0]);
  const auto op_of = [&](DType dtype, ReduceOp op) {
    c.dtype = static_cast<int>(dtype);
    c.op = static_cast<int>(op);
    return check(c, kRank, kRanks, Numerics::exact)->signature.op;
  };
  EXPECT_EQ(op_of(DType::float32, ReduceOp::sum), kExactSum);
  EXPECT_EQ(op_of(DType::float8_e4m3, ReduceOp::avg), kExactAverage);
  EXPECT_EQ(op_of(DType::bfloat16, ReduceOp::prod), kOrderedProduct);
  EXPECT_EQ(op_of(DType::float64, ReduceOp::max), ReduceOp::max);
  EXPECT_EQ(op_of(DType::int32, ReduceOp::sum), ReduceOp::sum);
  EXPECT_EQ(op_of(DType::int64, ReduceOp::prod), ReduceOp::prod);
  EXPECT_EQ(check(c, kRank, kRanks)->signature.op, ReduceOp::prod);
  c = call(Collective::broadcast, nullptr, &memory[0]);
  EXPECT_EQ(check(c, kRank, kRanks, Numerics::exact)->signature.op, ReduceOp::sum) << "a broadcast adds nothing";
}

TEST(Arguments, ACallHasNumericsOfItsOwn) {
  CollectiveCall c = call(Collective::all_reduce, &memory[0], &memory[0]);
  const auto op_of = [&](int op, Numerics of_communicator) {
    c.op = op;
    return check(c, kRank, kRanks, of_communicator)->signature.op;
  };
  for (const Numerics numerics : {Numerics::fast, Numerics::exact}) {
    EXPECT_EQ(op_of(TRIBUTARY_SUM | TRIBUTARY_OP_EXACT, numerics), kExactSum);
    EXPECT_EQ(op_of(TRIBUTARY_AVG | TRIBUTARY_OP_EXACT, numerics), kExactAverage);
    EXPECT_EQ(op_of(TRIBUTARY_PROD | TRIBUTARY_OP_EXACT, numerics), kOrderedProduct);
    EXPECT_EQ(op_of(TRIBUTARY_MAX | TRIBUTARY_OP_EXACT, numerics), ReduceOp::max);
    EXPECT_EQ(op_of(TRIBUTARY_SUM | TRIBUTARY_OP_FAST, numerics), ReduceOp::sum);
    EXPECT_EQ(op_of(TRIBUTARY_PROD | TRIBUTARY_OP_FAST, numerics), ReduceOp::prod);
  }
  c.dtype = static_cast<int>(DType::int32);
  EXPECT_EQ(op_of(TRIBUTARY_SUM | TRIBUTARY_OP_EXACT, Numerics::fast), ReduceOp::sum) << "integers are exact";
}

TEST(Arguments, OnlyIntegersHaveBitsAndTruthValues) {
  for (int op = TRIBUTARY_BAND; op <= TRIBUTARY_LXOR; ++op) {
    CollectiveCall c = call(Collective::all_reduce, &memory[0], &memory[0]);
    c.op = op;
    EXPECT_THAT(error_of(c), AllOf(HasSubstr("op is " + std::string(to_string(static_cast<ReduceOp>(op)))),
                                   HasSubstr("dtype is float32")));
    c.dtype = TRIBUTARY_UINT16;
    c.op = op | TRIBUTARY_OP_EXACT;
    EXPECT_EQ(check(c, kRank, kRanks)->signature.op, static_cast<ReduceOp>(op));
  }
}

TEST(Arguments, AnUnknownDtypeOrOpIsNamed) {
  for (const int bad : {-1, 14, 99, 1 << 30}) {
    CollectiveCall c = call(Collective::all_reduce, &memory[0], &memory[0]);
    c.dtype = bad;
    EXPECT_THAT(error_of(c), AllOf(HasSubstr("dtype is " + std::to_string(bad)), HasSubstr("0 to 13")));
  }
  for (const int bad : {-1, 11, 64, 69, 256 + 11, 256 + 64, 256 | 512, 1024}) {
    CollectiveCall c = call(Collective::all_reduce, &memory[0], &memory[0]);
    c.op = bad;
    EXPECT_THAT(error_of(c), AllOf(HasSubstr("op is " + std::to_string(bad)), HasSubstr("0 to 10")));
  }
}

TEST(Arguments, ARootThatIsNoRankIsNamedWithTheRanksThereAre) {
  for (const Collective collective :
       {Collective::reduce, Collective::broadcast, Collective::gather, Collective::scatter}) {
    for (const int bad : {-1, 4, 1000}) {
      CollectiveCall c = call(collective, &memory[0], &memory[128]);
      c.root = bad;
      EXPECT_THAT(error_of(c), AllOf(HasSubstr("root is " + std::to_string(bad)), HasSubstr("ranks 0 to 3")));
    }
  }
}

TEST(Arguments, ACountThatNoMemoryHoldsIsNamed) {
  for (std::uint8_t i = 0; i < kCollectiveCount; ++i) {
    EXPECT_THAT(error_of(call(static_cast<Collective>(i), &memory[0], &memory[0], SIZE_MAX)),
                HasSubstr("count is 18446744073709551615 of float32"));
    EXPECT_THAT(error_of(call(static_cast<Collective>(i), &memory[0], &memory[0], SIZE_MAX / 4)),
                HasSubstr("more than any memory holds"));
  }
}

TEST(Arguments, ANullBufferIsNamedWhereItHoldsElements) {
  EXPECT_THAT(error_of(call(Collective::all_reduce, nullptr, &memory[0])),
              AllOf(HasSubstr("send is NULL"), HasSubstr("16 float32")));
  EXPECT_THAT(error_of(call(Collective::all_reduce, &memory[0], nullptr)), HasSubstr("recv is NULL"));
  EXPECT_THAT(error_of(call(Collective::all_gather, &memory[0], nullptr)), HasSubstr("hold 64 float32"));
  EXPECT_THAT(error_of(call(Collective::reduce_scatter, nullptr, &memory[0])), HasSubstr("hold 64 float32"));
  EXPECT_THAT(error_of(call(Collective::reduce, &memory[0], nullptr), 0), HasSubstr("recv is NULL"));
  EXPECT_THAT(error_of(call(Collective::broadcast, nullptr, &memory[0]), 0), HasSubstr("send is NULL"));
}

TEST(Arguments, ANullBufferIsFineWhereNothingIsInIt) {
  for (std::uint8_t i = 0; i < kCollectiveCount; ++i) {
    for (std::uint32_t rank = 0; rank < kRanks; ++rank)
      EXPECT_TRUE(check(call(static_cast<Collective>(i), nullptr, nullptr, 0), rank, kRanks));
  }
  EXPECT_TRUE(check(call(Collective::reduce, &memory[0], nullptr), 1, kRanks));
  EXPECT_TRUE(check(call(Collective::gather, &memory[0], nullptr), 1, kRanks));
  EXPECT_TRUE(check(call(Collective::broadcast, nullptr, &memory[0]), 1, kRanks));
  EXPECT_TRUE(check(call(Collective::scatter, nullptr, &memory[0]), 1, kRanks));
}

TEST(Arguments, InPlaceIsKnownByNcclsRules) {
  EXPECT_EQ(form(Collective::all_reduce, 0, 0), "in place");
  EXPECT_EQ(form(Collective::reduce, 0, 0, 0), "in place");
  EXPECT_EQ(form(Collective::broadcast, 0, 0, 0), "in place");
  EXPECT_EQ(form(Collective::reduce_scatter, 0, 16 * kRank), "in place");
  EXPECT_EQ(form(Collective::all_gather, 16 * kRank, 0), "in place");
  EXPECT_EQ(form(Collective::gather, 16 * kRank, 0, kRank, kRank), "in place");
  EXPECT_EQ(form(Collective::scatter, 0, 16 * kRank, kRank, kRank), "in place");
}

TEST(Arguments, NeighboursAreApart) {
  EXPECT_EQ(form(Collective::all_reduce, 0, 16), "apart");
  EXPECT_EQ(form(Collective::all_reduce, 16, 0), "apart");
  EXPECT_EQ(form(Collective::reduce_scatter, 0, 64), "apart");
  EXPECT_EQ(form(Collective::all_gather, 64, 0), "apart");
  EXPECT_EQ(form(Collective::all_to_all, 0, 64), "apart");
  EXPECT_EQ(form(Collective::gather, 64, 0, 0), "apart");
  EXPECT_EQ(form(Collective::scatter, 0, 64, 0), "apart");
}

TEST(Arguments, EveryOtherOverlapIsAnError) {
  EXPECT_THAT(form(Collective::all_reduce, 0, 15),
              AllOf(HasSubstr("overlap"), HasSubstr("64 bytes at 0x"), HasSubstr("equal (in place) or disjoint")));
  EXPECT_THAT(form(Collective::all_reduce, 1, 0), HasSubstr("overlap"));
  EXPECT_THAT(form(Collective::reduce, 3, 0, 0), HasSubstr("overlap"));
  EXPECT_THAT(form(Collective::broadcast, 0, 8, 0), HasSubstr("overlap"));
  EXPECT_THAT(form(Collective::reduce_scatter, 0, 0), HasSubstr("recv == send + rank * count"));
  EXPECT_THAT(form(Collective::reduce_scatter, 0, 16), HasSubstr("overlap"));
  EXPECT_THAT(form(Collective::reduce_scatter, 0, 63), HasSubstr("overlap"));
  EXPECT_THAT(form(Collective::all_gather, 0, 0), HasSubstr("send == recv + rank * count"));
  EXPECT_THAT(form(Collective::all_gather, 31, 0), HasSubstr("overlap"));
  EXPECT_THAT(form(Collective::gather, 0, 0, kRank, kRank), HasSubstr("overlap"));
  EXPECT_THAT(form(Collective::scatter, 0, 0, kRank, kRank), HasSubstr("overlap"));
  EXPECT_THAT(form(Collective::all_to_all, 0, 0), HasSubstr("no in-place form"));
  EXPECT_THAT(form(Collective::all_to_all, 0, 63), HasSubstr("overlap"));
}

TEST(Arguments, AnOverlapWithAnUnusedBufferIsAllowed) {
  EXPECT_EQ(form(Collective::reduce, 0, 3, 1), "apart");
  EXPECT_EQ(form(Collective::broadcast, 0, 3, 1), "apart");
  EXPECT_EQ(form(Collective::gather, 0, 3, 1), "apart");
  EXPECT_EQ(form(Collective::scatter, 0, 3, 1), "apart");
}

TEST(Arguments, ArgumentsOfMessagesAreChecked) {
  const auto error = [](MessageCall c) {
    c.function = "tributary_call";
    const auto message = check(c, kRanks);
    return message ? "no error" : message.error().message;
  };
  const int f32 = static_cast<int>(DType::float32);
  EXPECT_EQ(error({.sends = true, .send = &memory[0], .count = 3, .dtype = f32, .peer = 3}), "no error");
  EXPECT_EQ(error({.sends = false, .recv = nullptr, .count = 0, .dtype = f32, .peer = 0}), "no error");
  EXPECT_THAT(error({.sends = true, .send = nullptr, .count = 3, .dtype = f32, .peer = 0}), HasSubstr("send is NULL"));
  EXPECT_THAT(error({.sends = false, .recv = nullptr, .count = 3, .dtype = f32, .peer = 0}), HasSubstr("recv is NULL"));
  EXPECT_THAT(error({.sends = true, .send = &memory[0], .count = 3, .dtype = f32, .peer = 4}), HasSubstr("peer is 4"));
  EXPECT_THAT(error({.sends = true, .send = &memory[0], .count = 3, .dtype = f32, .peer = -1}),
              HasSubstr("peer is -1"));
  EXPECT_EQ(error({.recv = &memory[0], .count = 3, .dtype = f32, .peer = TRIBUTARY_ANY_SOURCE}), "no error");
  EXPECT_THAT(error({.sends = true, .send = &memory[0], .count = 3, .dtype = f32, .peer = TRIBUTARY_ANY_SOURCE}),
              HasSubstr("peer is -2147483648"));
  EXPECT_THAT(error({.sends = true, .send = &memory[0], .count = SIZE_MAX, .dtype = f32, .peer = 0}),
              HasSubstr("count"));
  EXPECT_THAT(error({.sends = true, .send = &memory[0], .count = 3, .dtype = 14, .peer = 0}), HasSubstr("dtype"));
}

TEST(Arguments, ArgumentsOfAGroupAreChecked) {
  EXPECT_TRUE(check_group("f", 1, 0));
  EXPECT_TRUE(check_group("f", 1 << 20, (1 << 20) - 1));
  const auto error = [](int nranks, int rank) { return check_group("f", nranks, rank).error().message; };
  EXPECT_THAT(error(0, 0), HasSubstr("nranks is 0"));
  EXPECT_THAT(error(-5, 0), HasSubstr("nranks is -5"));
  EXPECT_THAT(error((1 << 20) + 1, 0), HasSubstr("1 to 1048576"));
  EXPECT_THAT(error(3, 3), AllOf(HasSubstr("rank is 3"), HasSubstr("0 to 2")));
  EXPECT_THAT(error(3, -1), HasSubstr("rank is -1"));
}

}  // namespace
}  // namespace tributary::client
