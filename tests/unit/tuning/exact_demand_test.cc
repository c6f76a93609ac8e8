// Exact sums in the cost model: the demand that it assumes is the demand of the schedule, and the choice follows it.
#include <gtest/gtest.h>

#include <algorithm>
#include <variant>

#include "client/schedule/schedule.h"
#include "client/tuning/cost_model.h"
#include "client/tuning/demand.h"
#include "client/tuning/policy.h"

namespace tributary::tuning {
namespace {

constexpr std::uint32_t kElementBytes = 4;

/// Adds what one rank does in all rounds of an exact sum.
void add_rank(Demand& all, const schedule::Parameters& parameters) {
  const schedule::Schedule schedule(parameters);
  schedule::Actions actions;
  double sent = 0, received = 0, reduced = 0;
  for (std::uint64_t round = 0; round < schedule.rounds(); ++round) {
    schedule.actions(round, actions);
    for (const schedule::Action& action : actions) {
      if (const auto* send = std::get_if<schedule::Send>(&action)) {
        sent += static_cast<double>(send->from.count * kElementBytes);
        all.messages += 1;
      } else if (const auto* receive = std::get_if<schedule::Receive>(&action)) {
        received += static_cast<double>(receive->into.count * kElementBytes);
      } else if (const auto* reduce = std::get_if<schedule::LocalReduce>(&action)) {
        reduced += static_cast<double>(reduce->first.count * reduce->operands * kElementBytes);
      }
    }
  }
  all.bytes = std::max({all.bytes, sent, received});
  all.all_bytes += sent;
  all.reduced = std::max(all.reduced, reduced);
  all.all_reduced += reduced;
}

Demand of_schedule(Collective collective, std::uint32_t ranks, std::uint64_t bytes) {
  const std::uint64_t count = bytes / kElementBytes / (collective == Collective::reduce_scatter ? ranks : 1);
  Demand all;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    add_rank(all, {.collective = collective,
                   .algorithm = Algorithm::direct,
                   .ranks = ranks,
                   .rank = rank,
                   .count = count,
                   .element_bytes = kElementBytes,
                   .exact = true});
  }
  return all;
}

TEST(ExactDemand, IsTheDemandOfTheSchedule) {
  for (const Collective collective : {Collective::all_reduce, Collective::reduce, Collective::reduce_scatter}) {
    for (const std::uint32_t ranks : {2U, 3U, 4U, 8U, 20U}) {
      for (const std::uint64_t elements : {16U, 256U, 4096U}) {
        const std::uint64_t bytes = ranks * elements * kElementBytes;
        const Demand real = of_schedule(collective, ranks, bytes);
        const Demand said = exact_demand(collective, ranks, static_cast<double>(bytes));
        SCOPED_TRACE(std::string(to_string(collective)) + " of " + std::to_string(bytes) + " bytes, " +
                     std::to_string(ranks) + " ranks");
        EXPECT_DOUBLE_EQ(said.messages, real.messages);
        EXPECT_DOUBLE_EQ(said.bytes, real.bytes);
        EXPECT_DOUBLE_EQ(said.all_bytes, real.all_bytes);
        EXPECT_DOUBLE_EQ(said.reduced, real.reduced);
        EXPECT_DOUBLE_EQ(said.all_reduced, real.all_reduced);
      }
    }
  }
}

Figures fabric(double gbits, bool exact) {
  return {.link_gbits = gbits, .trees_gbits = gbits, .levels = 1, .cores = 16, .exact = exact};
}

TEST(ExactDemand, CostsNothingWhereTheLinksAreTheBound) {
  const Call call{Collective::all_reduce, 8, 64 << 20};
  EXPECT_NEAR(estimate_tree(fabric(1, true), call).time_us(), estimate_tree(fabric(1, false), call).time_us(), 1);
  EXPECT_EQ(estimates(fabric(1, true), call).front().path, Path::tree);
}

TEST(ExactDemand, FormsAreLongerBetweenAggregators) {
  const Call call{Collective::all_reduce, 8, 64 << 20};
  Figures two_levels = fabric(1, false);
  two_levels.levels = 2;
  const double fast = estimate_tree(two_levels, call).time_us();
  two_levels.exact = true;
  EXPECT_NEAR(estimate_tree(two_levels, call).time_us() / fast, 1.25, 0.01);
}

TEST(ExactDemand, CostsMoreWhereAnAggregatorsCoreIsTheBound) {
  const Call call{Collective::all_reduce, 8, 64 << 20};
  const double fast = estimate_tree(fabric(100, false), call).time_us();
  const double exact = estimate_tree(fabric(100, true), call).time_us();
  EXPECT_GT(exact, 1.05 * fast);
  EXPECT_LT(exact, 1.25 * fast);
}

TEST(ExactDemand, HasOneWayBetweenTheRanksAndMovesTheOthersNot) {
  const auto of = [](Collective collective) { return algorithms_of(fabric(1, true), collective); };
  EXPECT_EQ(of(Collective::all_reduce).size(), 1);
  EXPECT_EQ(of(Collective::reduce_scatter).front(), Algorithm::direct);
  EXPECT_EQ(of(Collective::broadcast).size(), schedule::algorithms(Collective::broadcast).size());
  const Call broadcast{Collective::broadcast, 8, 1 << 20};
  EXPECT_EQ(estimates(fabric(1, true), broadcast).front().time_us(),
            estimates(fabric(1, false), broadcast).front().time_us());
}

// A policy of a group with exact sums also holds for its sums of integers, so it names algorithms that these have.
TEST(ExactDemand, APolicyHasAlgorithmsThatTheCollectivesHave) {
  const Policy exact = default_policy({.ranks = 8, .link_rate = 1'000'000'000, .exact = true}, 2);
  EXPECT_TRUE(decode_policy(encode(exact)).has_value());
  const Policy fast = default_policy({.ranks = 8, .link_rate = 1'000'000'000}, 2);
  for (const std::uint64_t bytes : {4ULL, 1ULL << 16, 1ULL << 24})
    EXPECT_EQ(exact.at(Collective::all_reduce, bytes).algorithm, fast.at(Collective::all_reduce, bytes).algorithm);
}

}  // namespace
}  // namespace tributary::tuning
