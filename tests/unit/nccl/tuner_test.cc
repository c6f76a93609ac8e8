#include <gtest/gtest.h>

#include <array>
#include <sstream>

#include "client/plugins/nccl/tuner/table.h"

namespace tributary::nccl {
namespace {

using abi::Function;

constexpr int kAlgorithms = 7, kProtocols = 3;
using Costs = std::array<float, kAlgorithms * kProtocols>;

float& cost(Costs& costs, abi::Algorithm algorithm, abi::Protocol protocol) {
  return costs[static_cast<std::size_t>(algorithm) * kProtocols + static_cast<std::size_t>(protocol)];
}

Costs nothing_offered() {
  Costs costs;
  costs.fill(abi::kIgnored);
  return costs;
}

TEST(TunerTable, TheFirstRowThatFitsDecides) {
  std::istringstream text(
      "# sizes where the tree was slower\n"
      "allreduce 1M 4M - - default\n"
      "allreduce 64K - 3 - collnet  # all others\n\n");
  const auto table = TunerTable::parse(text);
  ASSERT_TRUE(table) << table.error();
  EXPECT_TRUE(table->prefers_collnet(Function::all_reduce, 64 << 10, 3));
  EXPECT_TRUE(table->prefers_collnet(Function::all_reduce, (4 << 20) + 1, 1000));
  EXPECT_FALSE(table->prefers_collnet(Function::all_reduce, 2 << 20, 3));
  EXPECT_FALSE(table->prefers_collnet(Function::all_reduce, (64 << 10) - 1, 3));
  EXPECT_FALSE(table->prefers_collnet(Function::all_reduce, 64 << 10, 2));
  EXPECT_FALSE(table->prefers_collnet(Function::broadcast, 64 << 10, 3));
}

TEST(TunerTable, BuiltInPrefersCollNetFromThreeNodesOnButForFewBytes) {
  const auto table = TunerTable::built_in();
  for (const std::size_t nodes : {3U, 4U, 1000U}) {
    EXPECT_FALSE(table.prefers_collnet(Function::all_reduce, 4, nodes));
    EXPECT_FALSE(table.prefers_collnet(Function::all_reduce, 16 << 10, nodes));
    EXPECT_TRUE(table.prefers_collnet(Function::all_reduce, (16 << 10) + 1, nodes));
    EXPECT_TRUE(table.prefers_collnet(Function::all_reduce, std::size_t{1} << 34, nodes));
    EXPECT_FALSE(table.prefers_collnet(Function::all_gather, 1 << 20, nodes));
  }
  EXPECT_FALSE(table.prefers_collnet(Function::all_reduce, 1 << 20, 2));
}

TEST(TunerTable, NamesTheLineThatMakesNoSense) {
  for (const char* bad : {"allreduce 0 1 2 3", "sum 0 1 2 3 collnet", "allreduce x 1 2 3 collnet",
                          "allreduce 0 1T 2 3 collnet", "allreduce 0 1 2 3 ring"}) {
    std::istringstream text(std::string("\n") + bad + "\n");
    const auto table = TunerTable::parse(text);
    ASSERT_FALSE(table) << bad;
    EXPECT_NE(table.error().find("line 2"), std::string::npos) << table.error();
  }
}

TEST(TunerTable, MakesCollNetTheCheapestAndKeepsItsKindsInOrder) {
  Costs costs = nothing_offered();
  cost(costs, abi::Algorithm::ring, abi::Protocol::simple) = 10;
  cost(costs, abi::Algorithm::tree, abi::Protocol::low_latency) = 8;
  cost(costs, abi::Algorithm::collnet_direct, abi::Protocol::simple) = 40;
  cost(costs, abi::Algorithm::collnet_chain, abi::Protocol::simple) = 20;
  prefer_collnet(costs.data(), kAlgorithms, kProtocols);
  EXPECT_LT(cost(costs, abi::Algorithm::collnet_chain, abi::Protocol::simple), 8);
  EXPECT_LT(cost(costs, abi::Algorithm::collnet_chain, abi::Protocol::simple),
            cost(costs, abi::Algorithm::collnet_direct, abi::Protocol::simple));
  EXPECT_EQ(cost(costs, abi::Algorithm::ring, abi::Protocol::simple), 10);
}

TEST(TunerTable, LeavesAllAsItIsWhereNcclDoesNotOfferCollNet) {
  Costs costs = nothing_offered();
  cost(costs, abi::Algorithm::ring, abi::Protocol::simple) = 10;
  const Costs before = costs;
  prefer_collnet(costs.data(), kAlgorithms, kProtocols);
  EXPECT_EQ(costs, before);
}

}  // namespace
}  // namespace tributary::nccl
