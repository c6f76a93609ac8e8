#include <gtest/gtest.h>

#include <array>
#include <sstream>

#include "client/plugins/nccl/tuner/model.h"
#include "client/plugins/nccl/tuner/table.h"
#include "client/tuning/cost_model.h"
#include "client/tuning/policy.h"

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

constexpr std::uint64_t kGbit = 1'000'000'000;

// The times at 1 Gbit/s were measured: bench/results/archive/nccl-tuner-2026-11-22.md.
TEST(TunerModel, PrefersCollNetWhereItWasFaster) {
  const TunerModel model(kGbit);
  for (const std::size_t nodes : {3U, 4U, 8U}) {
    for (std::size_t bytes = 64 << 10; bytes <= std::size_t{1} << 34; bytes *= 4)
      EXPECT_TRUE(model.prefers_collnet(Function::all_reduce, bytes, nodes)) << nodes << " nodes, " << bytes;
    EXPECT_FALSE(model.prefers_collnet(Function::all_reduce, 4, nodes)) << "NCCL sends a chunk of 32 KiB";
  }
  EXPECT_FALSE(model.prefers_collnet(Function::all_gather, 1 << 20, 8)) << "NCCL decides";
}

TEST(TunerModel, NeverPrefersCollNetForTwoNodes) {
  for (const std::uint64_t rate : {std::uint64_t{0}, kGbit, 100 * kGbit}) {
    for (std::size_t bytes = 1; bytes <= std::size_t{1} << 34; bytes *= 2)
      EXPECT_FALSE(TunerModel(rate).prefers_collnet(Function::all_reduce, bytes, 2)) << bytes;
  }
}

// On fast links a core of the aggregator is slower than the ring's links.
TEST(TunerModel, NeverPrefersCollNetWhereTheModelSaysThatTheRingIsFaster) {
  for (const std::uint64_t rate : {kGbit, 10 * kGbit, 100 * kGbit, 400 * kGbit}) {
    for (const std::uint32_t nodes : {2U, 3U, 5U, 16U, 100U, 4096U}) {
      const auto figures = tuning::default_figures({.ranks = nodes, .link_rate = rate}, 2);
      for (std::uint64_t bytes = 1; bytes <= 1ULL << 34; bytes *= 2) {
        if (!TunerModel(rate).prefers_collnet(Function::all_reduce, bytes, nodes)) continue;
        const tuning::Call call{Collective::all_reduce, nodes, bytes};
        EXPECT_LT(tuning::estimate_tree(figures, call).time_us(),
                  tuning::estimate_ranks(figures, call, tuning::Algorithm::ring).time_us())
            << rate << " bit/s, " << nodes << " nodes, " << bytes;
      }
    }
  }
  EXPECT_FALSE(TunerModel(100 * kGbit).prefers_collnet(Function::all_reduce, 1 << 30, 4));
}

TEST(TunerModel, WhereNoRateIsKnownCollNetMustBeFasterAtEach) {
  for (const std::size_t nodes : {3U, 8U, 64U}) {
    for (std::size_t bytes = 1; bytes <= std::size_t{1} << 34; bytes *= 2) {
      if (!TunerModel(0).prefers_collnet(Function::all_reduce, bytes, nodes)) continue;
      for (const std::uint64_t rate : {kGbit, 10 * kGbit, 25 * kGbit, 100 * kGbit, 400 * kGbit})
        EXPECT_TRUE(TunerModel(rate).prefers_collnet(Function::all_reduce, bytes, nodes)) << nodes << ", " << bytes;
    }
  }
}

// NCCL gives CollNet a chunk of 32 KiB for 4 bytes: at 1 Gbit/s it took eight times as long as between the nodes.
TEST(TunerModel, AvoidsCollNetForSmallCalls) {
  for (const std::uint64_t rate : {std::uint64_t{0}, kGbit, 10 * kGbit}) {
    for (const std::size_t nodes : {2U, 4U, 8U}) {
      EXPECT_TRUE(TunerModel(rate).avoids_collnet(Function::all_reduce, 4, nodes)) << rate << ", " << nodes;
      EXPECT_FALSE(TunerModel(rate).avoids_collnet(Function::all_reduce, 64 << 20, std::max<std::size_t>(nodes, 3)))
          << rate << ", " << nodes;
      EXPECT_FALSE(TunerModel(rate).avoids_collnet(Function::broadcast, 4, nodes)) << "NCCL decides";
    }
  }
}

TEST(TunerModel, NeverPrefersCollNetAndAvoidsItToo) {
  for (const std::uint64_t rate : {std::uint64_t{0}, kGbit, 10 * kGbit, 400 * kGbit}) {
    for (const std::size_t nodes : {2U, 3U, 5U, 16U, 100U, 4096U}) {
      for (std::size_t bytes = 1; bytes <= std::size_t{1} << 34; bytes *= 2) {
        const TunerModel model(rate);
        EXPECT_FALSE(model.prefers_collnet(Function::all_reduce, bytes, nodes) &&
                     model.avoids_collnet(Function::all_reduce, bytes, nodes))
            << rate << " bit/s, " << nodes << " nodes, " << bytes;
      }
    }
  }
}

TEST(TunerTable, NamesTheWrongLine) {
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

TEST(TunerTable, MakesCollNetTheMostExpensiveAndKeepsItsKindsInOrder) {
  for (const float collnet : {0.0F, 5.0F, 50.0F}) {
    Costs costs = nothing_offered();
    cost(costs, abi::Algorithm::ring, abi::Protocol::simple) = 10;
    cost(costs, abi::Algorithm::tree, abi::Protocol::low_latency) = 8;
    cost(costs, abi::Algorithm::collnet_direct, abi::Protocol::simple) = 2 * collnet;
    cost(costs, abi::Algorithm::collnet_chain, abi::Protocol::simple) = collnet;
    avoid_collnet(costs.data(), kAlgorithms, kProtocols);
    EXPECT_GT(cost(costs, abi::Algorithm::collnet_chain, abi::Protocol::simple), 8) << collnet;
    EXPECT_GE(cost(costs, abi::Algorithm::collnet_direct, abi::Protocol::simple),
              cost(costs, abi::Algorithm::collnet_chain, abi::Protocol::simple));
    EXPECT_EQ(cost(costs, abi::Algorithm::ring, abi::Protocol::simple), 10);
    EXPECT_LT(cost(costs, abi::Algorithm::ring, abi::Protocol::low_latency), 0) << "NCCL does not offer it";
  }
}

TEST(TunerTable, LeavesAllAsItIsWhereOnlyCollNetIsOffered) {
  Costs costs = nothing_offered();
  cost(costs, abi::Algorithm::collnet_chain, abi::Protocol::simple) = 10;
  const Costs before = costs;
  avoid_collnet(costs.data(), kAlgorithms, kProtocols);
  EXPECT_EQ(costs, before);
}

TEST(TunerTable, LeavesAllAsItIsWhereNcclDoesNotOfferCollNet) {
  Costs costs = nothing_offered();
  cost(costs, abi::Algorithm::ring, abi::Protocol::simple) = 10;
  const Costs before = costs;
  prefer_collnet(costs.data(), kAlgorithms, kProtocols);
  EXPECT_EQ(costs, before);
  avoid_collnet(costs.data(), kAlgorithms, kProtocols);
  EXPECT_EQ(costs, before);
}

}  // namespace
}  // namespace tributary::nccl
