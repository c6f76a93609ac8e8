// The rates that a plan gives with its trees.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/manager/fabrics.h"
#include "tributary/protocol/lane_memory.h"

namespace tributary::manager {
namespace {

using ::testing::SizeIs;

/// Two leaves with hosts "a" and "b" of 100 Gbit/s, aggregators "agg-a" and "agg-b" of 1 Tbit/s, and uplinks of
/// 400 Gbit/s.
Topology two_leaves() {
  auto topology = parse_topology(R"(
fabric: fat-tree
switches: [{name: spine, level: 2}, {name: leaf-a, level: 1}, {name: leaf-b, level: 1}]
hosts: [a, b, agg-a, agg-b]
links:
  - {from: a, to: leaf-a, rate: 100Gbit/s}
  - {from: b, to: leaf-b, rate: 100Gbit/s}
  - {from: agg-a, to: leaf-a, rate: 1Tbit/s}
  - {from: agg-b, to: leaf-b, rate: 1Tbit/s}
  - {from: leaf-a, to: spine, rate: 400Gbit/s}
  - {from: leaf-b, to: spine, rate: 400Gbit/s}
)",
                                 "test.yaml");
  EXPECT_TRUE(topology.has_value()) << topology.error().message;
  return topology.value_or(Topology{});
}

/// Sets the rate of the only link from this host or switch.
void set_rate(Topology& topology, const std::string& from, std::uint64_t rate) {
  for (Link& link : topology.links) {
    const bool host = link.from_kind == Link::End::host;
    if ((host ? topology.hosts[link.from] : topology.switches[link.from].name) == from)
      link.rate_bits_per_second = rate;
  }
}

Plan plan_of(const Topology& topology, const std::vector<std::string>& hosts, const std::vector<std::string>& on,
             const FabricLoad& load = {}) {
  std::vector<PlanAggregator> aggregators;
  for (const std::string& host : on) aggregators.push_back(aggregator_on(host));
  const Plan plan = make_fabric(topology)->plan(
      {.hosts = hosts, .aggregators = aggregators, .lanes = 1, .window = 32, .segment_bytes = 64U << 10}, load);
  EXPECT_THAT(plan.lanes, SizeIs(1)) << plan.reason;
  return plan;
}

PathRates rates_of(const Topology& topology, const std::vector<std::string>& hosts,
                   const std::vector<std::string>& on = {"agg-a", "agg-b"}, const FabricLoad& load = {}) {
  return plan_of(topology, hosts, on, load).rates;
}

const std::vector<std::string> kSideBySide{"a", "a", "a", "a", "b", "b", "b", "b"};
const std::vector<std::string> kInTurn{"a", "b", "a", "b", "a", "b", "a", "b"};

TEST(Rates, OnlyTheEdgesOfTheRingThatLeaveAHostLoadItsLink) {
  EXPECT_EQ(rates_of(two_leaves(), kSideBySide).links, 25 * kGbit) << "each rank sends its own vector to the tree";
  EXPECT_EQ(rates_of(two_leaves(), kSideBySide).ranks, 100 * kGbit);
  EXPECT_EQ(rates_of(two_leaves(), kInTurn).ranks, 25 * kGbit);
}

/// Four racks of four hosts with links of 100 Gbit/s. Each rack has an uplink of 100 Gbit/s: 4:1.
Topology four_racks() {
  auto topology = parse_topology(R"(
fabric: fat-tree
switches: [{name: spine, level: 2}, {name: "leaf-[0-3]", level: 1}]
hosts: ["node-[0-15]", agg]
links:
  - {from: "node-[0-3]", to: leaf-0, rate: 100Gbit/s}
  - {from: "node-[4-7]", to: leaf-1, rate: 100Gbit/s}
  - {from: "node-[8-11]", to: leaf-2, rate: 100Gbit/s}
  - {from: "node-[12-15]", to: leaf-3, rate: 100Gbit/s}
  - {from: agg, to: leaf-0, rate: 1Tbit/s}
  - {from: "leaf-[0-3]", to: spine, rate: 100Gbit/s}
)",
                                 "test.yaml");
  EXPECT_TRUE(topology.has_value()) << topology.error().message;
  return topology.value_or(Topology{});
}

/// Returns the rate of steps that each move a part of the vector at a rate of its own in Gbit/s.
std::uint64_t rate_of_steps(const std::vector<std::pair<double, double>>& part_and_gbits) {
  double parts = 0, seconds = 0;
  for (const auto& [part, gbits] : part_and_gbits) {
    parts += part;
    seconds += part / (gbits * kGbit);
  }
  return static_cast<std::uint64_t>(std::llround(parts / seconds));
}

TEST(Rates, AllRanksOfARackShareItsUplinkWithRanksFarAway) {
  const PathRates rates = rates_of(four_racks(), nodes(16), {"agg"});
  EXPECT_EQ(rates.ranks, 100 * kGbit) << "one edge of the ring leaves each rack";
  EXPECT_EQ(rates.doubling, rate_of_steps({{1, 100}, {1, 100}, {1, 25}, {1, 25}})) << "near, then far";
  EXPECT_EQ(rates.halving, rate_of_steps({{1, 100}, {0.5, 100}, {0.25, 25}, {0.125, 25}})) << "far steps are short";
  EXPECT_EQ(rates.spread, 31'250'000'000U) << "4 ranks send 12 of 15 parts out of their rack";
}

TEST(Rates, RatesBetweenTheRanksFollowTheirOrder) {
  std::vector<std::string> in_turn;
  for (const char* rack : {"0", "1", "2", "3"}) {
    for (int of_rack = 0; of_rack < 4; ++of_rack)
      in_turn.push_back("node-" + std::to_string(4 * of_rack + *rack - '0'));
  }
  const PathRates rates = rates_of(four_racks(), in_turn, {"agg"});
  EXPECT_EQ(rates.ranks, 25 * kGbit) << "every edge of the ring leaves its rack";
  EXPECT_EQ(rates.doubling, rate_of_steps({{1, 25}, {1, 25}, {1, 100}, {1, 100}}));
  EXPECT_EQ(rates.halving, rate_of_steps({{1, 25}, {0.5, 25}, {0.25, 100}, {0.125, 100}})) << "long steps are far";
  EXPECT_EQ(rates.spread, 31'250'000'000U);
}

TEST(Rates, StepsWithinAHostTakeNoTimeOfItsLink) {
  const PathRates rates = rates_of(two_leaves(), {"a", "a", "b"});
  EXPECT_EQ(rates.doubling, 300 * kGbit) << "rank 0 gives its vector to rank 1 and gets the result, both in their host";
  EXPECT_EQ(rates.halving, 300 * kGbit);
  EXPECT_EQ(rates.spread, 100 * kGbit);
  EXPECT_EQ(rates_of(two_leaves(), {"a", "a"}, {"a"}).doubling, 0U) << "no step leaves the host";
}

TEST(Rates, RatesBetweenTheRanksCountOtherGroups) {
  FabricLoad load;
  load.uplinks.assign(5, kFullRate);
  const PathRates rates = rates_of(four_racks(), nodes(16), {"agg"}, load);
  EXPECT_EQ(rates.doubling, rate_of_steps({{1, 100}, {1, 100}, {1, 20}, {1, 20}}));
  EXPECT_EQ(rates.spread, static_cast<std::uint64_t>(std::llround(100.0 * kGbit / 4.2)));
}

TEST(Rates, AnAggregatorOnTheRanksHostTakesNothingFromTheCountOfTheRing) {
  const std::vector<std::string> own{"a", "b"};
  EXPECT_EQ(rates_of(two_leaves(), kSideBySide, own).links, 100 * kGbit) << "one vector leaves the host";
  EXPECT_EQ(rates_of(two_leaves(), kSideBySide, own).ranks, 100 * kGbit);
  EXPECT_EQ(rates_of(two_leaves(), kInTurn, own).ranks, 25 * kGbit);
}

TEST(Rates, MembersThatLeaveTheHostOfAnIdleAggregatorLoadItsLink) {
  std::vector<PlanAggregator> aggregators{aggregator_on("agg-a"), aggregator_on("a")};
  aggregators[1].memory_free_bytes = lane_reservation_bytes(2, 32, 64U << 10);  // for the four ranks
                                                                                // of its own host
  const std::vector<std::string> hosts{"a", "a", "a", "a", "b"};
  const Plan plan = make_fabric(two_leaves())
                        ->plan({.hosts = hosts,
                                .aggregators = aggregators,
                                .lanes = 1,
                                .window = 32,
                                .segment_bytes = 64U << 10,
                                .levels = 1},
                               {});
  ASSERT_THAT(plan.lanes, SizeIs(1)) << plan.reason;
  EXPECT_EQ(plan.lanes[0].nodes[0].host, "agg-a");
  EXPECT_EQ(plan.rates.links, 25 * kGbit);
}

TEST(Rates, RanksOfOneHostHaveNoLinkBetweenThem) {
  const PathRates rates = rates_of(two_leaves(), {"a", "a"}, {"a"});
  EXPECT_EQ(rates.links, 100 * kGbit);
  EXPECT_EQ(rates.ranks, 0U);
}

TEST(Rates, OtherGroupsLoadCountsOnHostsAndUplinksAlike) {
  FabricLoad load;
  load.hosts["a"] = kFullRate;
  PathRates rates = rates_of(two_leaves(), {"a", "b"}, {"agg-a", "agg-b"}, load);
  EXPECT_EQ(rates.links, 50 * kGbit);
  EXPECT_EQ(rates.ranks, 50 * kGbit);

  load.hosts.clear();
  load.uplinks.assign(3, 7 * kFullRate);
  rates = rates_of(two_leaves(), {"a", "b"}, {"agg-a", "agg-b"}, load);
  EXPECT_EQ(rates.links, 100 * kGbit);
  EXPECT_EQ(rates.trees, 50 * kGbit);
  EXPECT_EQ(rates.ranks, 50 * kGbit);
}

TEST(Rates, ALinkOfUnknownRateMakesItsPathsUnknown) {
  Topology topology = two_leaves();
  set_rate(topology, "a", 0);
  PathRates rates = rates_of(topology, {"a", "b"});
  EXPECT_EQ(rates.links, 0U);
  EXPECT_EQ(rates.ranks, 0U);
  EXPECT_GT(rates.trees, 100 * kGbit);

  topology = two_leaves();
  set_rate(topology, "leaf-a", 0);
  rates = rates_of(topology, {"a", "b"});
  EXPECT_EQ(rates.links, 100 * kGbit);
  EXPECT_EQ(rates.ranks, 0U);
  EXPECT_EQ(rates.trees, 0U);

  topology = two_leaves();
  set_rate(topology, "agg-a", 0);
  rates = rates_of(topology, {"a", "b"}, {"agg-a"});
  EXPECT_EQ(rates.links, 100 * kGbit);
  EXPECT_EQ(rates.ranks, 100 * kGbit);
  EXPECT_EQ(rates.trees, 0U);
}

/// Four ranks and four aggregators on hosts of their own; each aggregator is registered with a link of `line_rate`.
Plan plan_without_topology(std::uint64_t link_rate, const std::vector<std::uint64_t>& line_rates,
                           const Topology& topology = {}) {
  const std::vector<std::string> hosts = nodes(4);
  std::vector<PlanAggregator> aggregators;
  for (const std::uint64_t line_rate : line_rates) {
    aggregators.push_back(aggregator_on("agg-" + std::to_string(aggregators.size())));
    aggregators.back().line_rate_bits_per_second = line_rate;
  }
  return make_fabric(topology)->plan({.hosts = hosts,
                                      .aggregators = aggregators,
                                      .lanes = 0,
                                      .window = 8,
                                      .segment_bytes = 16U << 10,
                                      .link_rate_bits_per_second = link_rate},
                                     {});
}

TEST(Rates, WithoutATopologyTheLinksOwnRatesHold) {
  const Plan plan = plan_without_topology(kGbit, {kGbit, kGbit, kGbit, kGbit});
  EXPECT_THAT(plan.lanes, SizeIs(4)) << plan.reason;
  EXPECT_EQ(plan.rates.links, kGbit);
  EXPECT_EQ(plan.rates.trees, kGbit);
  EXPECT_EQ(plan.rates.ranks, kGbit);
  EXPECT_EQ(plan_without_topology(kGbit, {kGbit}).rates.trees, kGbit / 4);
}

TEST(Rates, WithoutATopologyOneRateThatIsNotKnownMakesAllUnknown) {
  const auto expect_unknown = [](const Plan& plan, const char* what) {
    EXPECT_THAT(plan.lanes, SizeIs(1)) << what;
    EXPECT_EQ(plan.rates, PathRates{}) << what;
  };
  expect_unknown(plan_without_topology(0, {kGbit, kGbit}), "the ranks'");
  expect_unknown(plan_without_topology(kGbit, {kGbit, 0}), "an aggregator's");
}

// ---- trees in use

/// `line_rate`: the rate that every aggregator names; 0: no aggregator names a rate.
PathRates present(const Fabric& fabric, const Plan& plan, const std::vector<std::string>& hosts, const FabricLoad& load,
                  std::uint64_t link_rate = 0, std::uint64_t line_rate = 0) {
  return fabric.rates({.lanes = plan.lanes,
                       .hosts = hosts,
                       .link_rate_bits_per_second = link_rate,
                       .line_rate_of = [&](const std::string&) { return line_rate; }},
                      load);
}

TEST(Rates, RatesOfTreesInUseStayWhileNoGroupComesOrGoes) {
  struct Case {
    Topology topology;
    std::vector<std::string> hosts;
    std::vector<std::string> on;
  };
  const auto pods = parse_topology(leaf_spine_yaml(4, 8, 2), "test.yaml");
  ASSERT_TRUE(pods.has_value());
  std::vector<Case> cases;
  for (const auto& hosts : {kSideBySide, kInTurn}) {
    for (const auto& on : {std::vector<std::string>{"agg-a"}, {"agg-a", "agg-b"}, {"a", "b"}})
      cases.push_back({two_leaves(), hosts, on});
  }
  cases.push_back({*pods, nodes(32), {"agg-leaf-0", "agg-leaf-1", "agg-leaf-2", "agg-leaf-3", "agg-spine-0"}});
  cases.push_back({*pods, nodes(11), {"agg-leaf-0", "agg-leaf-1", "agg-spine-0"}});
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Case& it = cases[i];
    std::vector<PlanAggregator> aggregators;
    for (const std::string& host : it.on) aggregators.push_back(aggregator_on(host));
    const auto fabric = make_fabric(it.topology);
    FabricLoad load;
    for (const std::uint32_t lanes : {1U, 2U, 0U}) {
      const Plan plan = fabric->plan({.hosts = it.hosts,
                                      .aggregators = aggregators,
                                      .lanes = lanes,
                                      .lane_weights = true,
                                      .window = 32,
                                      .segment_bytes = 64U << 10},
                                     load);
      ASSERT_FALSE(plan.lanes.empty()) << plan.reason;
      fabric->add(load, plan.lanes, it.hosts);
      EXPECT_EQ(present(*fabric, plan, it.hosts, load), plan.rates) << "case " << i << ", " << lanes << " lanes";
    }
  }
}

TEST(Rates, RatesOfTreesInUseFallWithAnotherGroupAndRiseAgain) {
  const auto fabric = make_fabric(two_leaves());
  const std::vector<PlanAggregator> aggregators{aggregator_on("agg-a")};
  const std::vector<std::string> hosts{"a", "b"};
  const PlanRequest request{
      .hosts = hosts, .aggregators = aggregators, .lanes = 1, .window = 32, .segment_bytes = 64U << 10};
  FabricLoad load;
  const Plan first = fabric->plan(request, load);
  fabric->add(load, first.lanes, hosts);
  const Plan second = fabric->plan(request, load);
  fabric->add(load, second.lanes, hosts);
  const PathRates both = present(*fabric, first, hosts, load);
  EXPECT_EQ(both, second.rates);
  EXPECT_EQ(both.links, first.rates.links / 2);
  EXPECT_EQ(both.ranks, first.rates.ranks / 2);
  EXPECT_LT(both.trees, first.rates.trees);
  fabric->remove(load, second.lanes, hosts);
  EXPECT_EQ(present(*fabric, first, hosts, load), first.rates);
}

TEST(Rates, RatesOfTreesInUseAreUnknownIfTheirHostsLeftTheTopology) {
  const std::vector<std::string> hosts{"a", "b"};
  const Plan plan = plan_of(two_leaves(), hosts, {"agg-a"});
  const auto other = parse_topology(leaf_spine_yaml(2, 2, 1), "test.yaml");
  ASSERT_TRUE(other.has_value());
  EXPECT_EQ(present(*make_fabric(*other), plan, hosts, {}), PathRates{});
}

TEST(Rates, RatesOfTreesInUseFollowTheLinksOwnRatesWithoutATopology) {
  const Plan plan = plan_without_topology(kGbit, {kGbit, kGbit, kGbit, kGbit});
  const auto fabric = make_fabric({});
  FabricLoad load;
  fabric->add(load, plan.lanes, nodes(4));
  EXPECT_EQ(present(*fabric, plan, nodes(4), load, kGbit, kGbit), plan.rates);
  fabric->add(load, plan.lanes, nodes(4));
  EXPECT_EQ(present(*fabric, plan, nodes(4), load, kGbit, kGbit).links, kGbit / 2);
  EXPECT_EQ(present(*fabric, plan, nodes(4), load, kGbit, 0).trees, 0U) << "an aggregator's rate is not known";
  EXPECT_EQ(present(*fabric, plan, nodes(4), load), PathRates{});
}

TEST(Rates, RatesOfATopologyCountMoreThanThoseOfTheLinks) {
  const auto topology = parse_topology("fabric: flat\nassumed_rate: 10Gbit/s\n", "test.yaml");
  ASSERT_TRUE(topology.has_value());
  const Plan plan = plan_without_topology(kGbit, {10 * kGbit, 10 * kGbit, 10 * kGbit, 10 * kGbit}, *topology);
  EXPECT_EQ(plan.rates.links, 10 * kGbit);
}

TEST(Rates, ALinkOfUnknownRateIsEstimatedAsOneOfTheAssumedRate) {
  for (const char* from : {"a", "leaf-a", "agg-a"}) {
    Topology unknown = two_leaves(), assumed = two_leaves();
    set_rate(unknown, from, 0);
    set_rate(assumed, from, kAssumedRateDefault);
    const Plan here = plan_of(unknown, kSideBySide, {"agg-a", "agg-b"});
    const Plan there = plan_of(assumed, kSideBySide, {"agg-a", "agg-b"});
    EXPECT_EQ(here.lanes, there.lanes) << from;
    EXPECT_EQ(here.estimated_seconds, there.estimated_seconds) << from;
  }
}

TEST(Rates, AbsurdRatesStayWithinWhatADescriptorMaySay) {
  Topology topology = two_leaves();
  for (Link& link : topology.links) link.rate_bits_per_second = 1ULL << 60;
  const PathRates rates = rates_of(topology, {"a", "b"});
  EXPECT_EQ(rates.links, 1ULL << 53);
  EXPECT_EQ(rates.trees, 1ULL << 53);
  EXPECT_EQ(rates.ranks, 1ULL << 53);
  for (Link& link : topology.links) link.rate_bits_per_second = 1;
  EXPECT_EQ(rates_of(topology, {"a", "b"}).links, 1U);
  EXPECT_EQ(rates_of(topology, kSideBySide).links, 0U) << "less than 1 bit/s";
}

TEST(Rates, TheSlowestOfUnequalLinksBoundsEachPath) {
  Topology topology = two_leaves();
  set_rate(topology, "b", 40 * kGbit);
  set_rate(topology, "leaf-a", 30 * kGbit);
  set_rate(topology, "agg-a", 20 * kGbit);
  const PathRates rates = rates_of(topology, {"a", "b"}, {"agg-a"});
  EXPECT_EQ(rates.links, 40 * kGbit);
  EXPECT_EQ(rates.trees, 10 * kGbit) << "two children share the aggregator's link";
  EXPECT_EQ(rates.ranks, 30 * kGbit);
}

}  // namespace
}  // namespace tributary::manager
