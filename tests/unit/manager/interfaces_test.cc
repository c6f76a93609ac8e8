// Plans for hosts with several interfaces, with rails and without.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/manager/fabrics.h"
#include "tributary/protocol/lane_memory.h"

namespace tributary::manager {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

/// Two units of four hosts, each with an interface of 100 Gbit/s on each of `rails` rails; an aggregator at each switch
/// of level 1. `spine`: the rails meet.
std::string rails_yaml(int rails, bool spine) {
  std::string text = "fabric: rail-optimised\nswitches:\n", hosts = "hosts: [\"node-[0-7]\"", links = "links:\n";
  for (int r = 0; r < rails; ++r) {
    const std::string rail = std::to_string(r);
    text += "  - {name: \"leaf-" + rail + "-[0-1]\", level: 1, rail: rail-" + rail + "}\n";
    for (const char* unit : {"0", "1"}) {
      const std::string leaf = "leaf-" + rail + "-" + unit;
      hosts += ", agg-" + rail + "-" + unit;
      links += "  - {from: \"node-" + std::string(unit[0] == '0' ? "[0-3]" : "[4-7]") + "\", to: " + leaf +
               ", rate: 100Gbit/s, interface: nic" + rail + "}\n";
      links += "  - {from: agg-" + rail + "-" + unit + ", to: " + leaf + ", rate: 100Gbit/s}\n";
      if (spine) links += "  - {from: " + leaf + ", to: spine, rate: 400Gbit/s}\n";
    }
    if (!spine) {
      text += "  - {name: top-" + rail + ", level: 2, rail: rail-" + rail + "}\n";
      links += "  - {from: \"leaf-" + rail + "-[0-1]\", to: top-" + rail + ", rate: 400Gbit/s}\n";
    }
  }
  if (spine) text += "  - {name: spine, level: 2}\n";
  return text + hosts + "]\n" + links;
}

std::vector<PlanAggregator> rail_aggregators(int rails) {
  std::vector<PlanAggregator> list;
  for (int r = 0; r < rails; ++r) {
    for (const char* unit : {"0", "1"}) list.push_back(aggregator_on("agg-" + std::to_string(r) + "-" + unit));
  }
  return list;
}

std::unique_ptr<const Fabric> fabric_from(const std::string& yaml) {
  auto topology = parse_topology(yaml, "test.yaml");
  EXPECT_TRUE(topology.has_value()) << topology.error().message;
  return make_fabric(topology.value_or(Topology{}));
}

Plan plan_over(const Fabric& fabric, const std::vector<PlanAggregator>& aggregators, std::uint32_t lanes,
               const std::vector<std::string>& hosts = nodes(8), const FabricLoad& load = {}) {
  return fabric.plan(
      {.hosts = hosts, .aggregators = aggregators, .lanes = lanes, .window = 8, .segment_bytes = 64U << 10}, load);
}

std::vector<std::string> rails_of(const Plan& plan) {
  std::vector<std::string> rails;
  for (const LaneTree& lane : plan.lanes) rails.push_back(lane.rail);
  return rails;
}

TEST(RailPlans, EachLaneHasARailAndNoTreeCrossesRails) {
  for (const bool spine : {true, false}) {
    const auto fabric = fabric_from(rails_yaml(4, spine));
    const auto hosts = nodes(8);
    const auto aggregators = rail_aggregators(4);
    const Plan plan = fabric->plan(
        {.hosts = hosts, .aggregators = aggregators, .lanes = 8, .window = 8, .segment_bytes = 64U << 10, .levels = 2},
        {});
    EXPECT_THAT(rails_of(plan),
                ElementsAre("rail-0", "rail-1", "rail-2", "rail-3", "rail-0", "rail-1", "rail-2", "rail-3"));
    for (const LaneTree& lane : plan.lanes) {
      EXPECT_THAT(lane.nodes, SizeIs(2)) << "one aggregator stands at each of the rail's switches";
      for (const TreeNode& node : lane.nodes)
        EXPECT_EQ(node.host.substr(0, 6), "agg-" + lane.rail.substr(5) + "-")
            << "the aggregator is on the lane's own rail";
      for (std::size_t rank = 0; rank < 8; ++rank)
        EXPECT_EQ(lane.nodes[lane.leaf_of_rank[rank]].host.back(), rank < 4 ? '0' : '1')
            << "the rank's leaf is at the rank's own switch";
    }
  }
}

TEST(RailPlans, AutoTakesEveryRailAndCountsTheirLinksTogether) {
  const auto fabric = fabric_from(rails_yaml(3, true));
  const Plan plan = plan_over(*fabric, rail_aggregators(3), 0);
  EXPECT_EQ(plan.lanes.size() % 3, 0U);
  EXPECT_EQ(plan.rates.links, 300 * kGbit);
  EXPECT_EQ(plan.rates.ranks, 100 * kGbit) << "ranks talk to one another by their first interfaces";
  EXPECT_EQ(fabric->host_rate("node-0"), 300 * kGbit);
}

TEST(RailPlans, ALaneWhoseRailHasNoAggregatorTakesTheNextWhereRailsMeet) {
  auto aggregators = rail_aggregators(3);
  aggregators[2].unusable = aggregators[3].unusable = "draining";  // both aggregators of rail 1
  EXPECT_THAT(rails_of(plan_over(*fabric_from(rails_yaml(3, true)), aggregators, 4)),
              ElementsAre("rail-0", "rail-2", "rail-0", "rail-2"));
  const Plan apart = plan_over(*fabric_from(rails_yaml(3, false)), aggregators, 4);
  EXPECT_THAT(rails_of(apart), ElementsAre("rail-0")) << "the ranks' second interfaces reach no other rail";
  EXPECT_THAT(apart.reason, HasSubstr("only 1 of 4 lanes: the aggregators of rail 'rail-1' have no room for more"));
}

Plan plan_on_rail(const Fabric& fabric, const std::vector<PlanAggregator>& aggregators, std::string_view rail,
                  std::uint32_t lanes, const FabricLoad& load = {}) {
  const auto hosts = nodes(8);
  return fabric.plan({.hosts = hosts,
                      .aggregators = aggregators,
                      .lanes = lanes,
                      .rail = rail,
                      .window = 8,
                      .segment_bytes = 64U << 10},
                     load);
}

TEST(RailPlans, AGroupWhoseRanksNameOneRailHasOnlyTreesOnIt) {
  for (const bool spine : {true, false}) {
    const auto fabric = fabric_from(rails_yaml(4, spine));
    for (const std::uint32_t lanes : {1U, 2U, 0U}) {
      const Plan plan = plan_on_rail(*fabric, rail_aggregators(4), "rail-2", lanes);
      EXPECT_THAT(plan.lanes, SizeIs(lanes == 0 ? 2 : lanes)) << "two aggregators are on the rail";
      EXPECT_THAT(rails_of(plan), Each("rail-2"));
      EXPECT_EQ(plan.reason, "");
      for (const LaneTree& lane : plan.lanes) {
        for (const TreeNode& node : lane.nodes) EXPECT_EQ(node.host.substr(0, 6), "agg-2-");
      }
      EXPECT_EQ(plan.rates.links, 100 * kGbit) << "the ranks use one link";
    }
  }
}

TEST(RailPlans, OfOneRailCountTheLoadOnIt) {
  const auto fabric = fabric_from(rails_yaml(4, true));
  const auto hosts = nodes(8);
  FabricLoad load;
  const Plan first = plan_on_rail(*fabric, rail_aggregators(4), "rail-2", 1, load);
  fabric->add(load, first.lanes, hosts);
  EXPECT_EQ(load.hosts.at("node-0/2"), kFullRate);
  EXPECT_EQ(plan_on_rail(*fabric, rail_aggregators(4), "rail-2", 1, load).rates.ranks, 50 * kGbit);
  EXPECT_EQ(plan_on_rail(*fabric, rail_aggregators(4), "rail-1", 1, load).rates.ranks, 100 * kGbit);
  const auto present = [&](std::string_view rail) {
    return fabric->rates(
        {.lanes = first.lanes, .hosts = hosts, .rail = rail, .line_rate_of = [](const std::string&) { return 0; }},
        load);
  };
  EXPECT_EQ(present("rail-2"), first.rates);
  load.hosts["node-0/2"] += kFullRate;
  EXPECT_EQ(present("rail-2").ranks, 50 * kGbit);
  EXPECT_EQ(present("").ranks, 100 * kGbit) << "ranks that name no rail talk by their first interfaces";
}

TEST(RailPlans, OfARailWithoutTreesTakeOtherRailsWhereRailsMeet) {
  auto aggregators = rail_aggregators(3);
  aggregators[2].unusable = aggregators[3].unusable = "draining";  // both aggregators of rail 1
  const Plan plan = plan_on_rail(*fabric_from(rails_yaml(3, true)), aggregators, "rail-1", 3);
  EXPECT_THAT(rails_of(plan), Not(IsEmpty()));
  EXPECT_THAT(rails_of(plan), Each(Not("rail-1")));
  EXPECT_THAT(plan.reason, HasSubstr("no tree is possible on the ranks' own rail 'rail-1'"));
  const Plan apart = plan_on_rail(*fabric_from(rails_yaml(3, false)), aggregators, "rail-1", 2);
  EXPECT_THAT(apart.lanes, IsEmpty()) << "the ranks' only device reaches no other rail";
}

TEST(RailPlans, ARailThatTheTopologyDoesNotHaveIsNamed) {
  const Plan plan = plan_on_rail(*fabric_from(rails_yaml(2, true)), rail_aggregators(2), "mlx5_9", 2);
  EXPECT_THAT(rails_of(plan), ElementsAre("rail-0", "rail-1"));
  EXPECT_THAT(plan.reason, HasSubstr("the topology has no rail 'mlx5_9'"));
}

TEST(RailPlans, TheReasonForNoTreeNamesTheRailsWithoutAggregators) {
  auto aggregators = rail_aggregators(3);
  for (const std::size_t i : {2U, 3U, 4U, 5U}) aggregators[i].unusable = "draining";  // all of rails 1 and 2
  for (const std::size_t i : {0U, 1U}) aggregators[i].memory_free_bytes = 1;
  EXPECT_THAT(plan_over(*fabric_from(rails_yaml(3, false)), aggregators, 1).reason,
              HasSubstr("; no usable aggregator has a link to the rails 'rail-1', 'rail-2'"));
  for (PlanAggregator& it : aggregators) it = {.name = it.name, .host = it.host, .data = it.data};
  EXPECT_THAT(plan_over(*fabric_from(rails_yaml(3, false)), aggregators, 1).reason, Not(HasSubstr("rails")));
}

TEST(RailPlans, AMemberOffARailKeepsTheGroupOffIt) {
  std::string yaml = rails_yaml(2, true);
  yaml.replace(yaml.find("hosts: ["), 8, "hosts: [lame, ");
  yaml += "  - {from: lame, to: leaf-1-0, rate: 100Gbit/s}\n";
  const auto fabric = fabric_from(yaml);
  const std::vector<std::string> hosts{"node-0", "lame", "node-5"};
  const Plan plan = plan_over(*fabric, rail_aggregators(2), 2, hosts);
  EXPECT_THAT(rails_of(plan), ElementsAre("rail-1", "rail-1"));

  std::string worse = yaml;
  worse.replace(worse.find("hosts: ["), 8, "hosts: [lamer, ");
  worse += "  - {from: lamer, to: leaf-0-0, rate: 100Gbit/s}\n";
  const std::vector<std::string> apart{"lamer", "lame"};
  EXPECT_THAT(plan_over(*fabric_from(worse), rail_aggregators(2), 2, apart).reason,
              HasSubstr("host 'lame' of rank 1 has no link to a rail on which all other hosts have one"));
}

TEST(RailPlans, AnAggregatorOnSeveralRailsHasAnAddressOnEach) {
  auto aggregators = rail_aggregators(2);
  std::string yaml = rails_yaml(2, true);
  yaml.replace(yaml.find("hosts: ["), 8, "hosts: [both, ");
  yaml += "  - {from: both, to: [leaf-1-0, leaf-0-0], rate: 800Gbit/s}\n";  // this host names rail 1 first
  aggregators.assign(1, aggregator_on("both"));
  aggregators[0].data = {{.at = {"10.1.0.1", 7471}}, {.at = {"10.0.0.1", 7471}}};
  const auto fabric = fabric_from(yaml);
  const Plan plan = plan_over(*fabric, aggregators, 2);
  ASSERT_THAT(rails_of(plan), ElementsAre("rail-0", "rail-1"));
  EXPECT_EQ(plan.lanes[0].nodes[0].data.host, "10.0.0.1");
  EXPECT_EQ(plan.lanes[1].nodes[0].data.host, "10.1.0.1");
  EXPECT_EQ(fabric->address_number("both", 0), 1U);
  EXPECT_EQ(fabric->address_number("node-0", 5), 1U) << "lane 5 goes by rail 1";
  EXPECT_EQ(fabric->address_number("agg-0-0", 5), 5U) << "one interface: its addresses take turns";
}

TEST(RailPlans, TheMemoryOfAnAggregatorOnSeveralRailsCountsOnce) {
  std::string yaml = rails_yaml(2, true);
  yaml.replace(yaml.find("hosts: ["), 8, "hosts: [both, ");
  yaml += "  - {from: both, to: [leaf-0-0, leaf-1-0], rate: 800Gbit/s}\n";
  std::vector<PlanAggregator> aggregators{aggregator_on("both", lane_reservation_bytes(8, 8, 64U << 10))};
  const Plan plan = plan_over(*fabric_from(yaml), aggregators, 2);
  EXPECT_THAT(plan.lanes, SizeIs(1));
}

TEST(RailPlans, LoadIsOnTheInterfaceOfTheLane) {
  const auto fabric = fabric_from(rails_yaml(2, true));
  const auto hosts = nodes(8);
  const Plan plan = plan_over(*fabric, rail_aggregators(2), 2);
  ASSERT_THAT(plan.lanes, SizeIs(2));
  FabricLoad load;
  fabric->add(load, std::span(plan.lanes).first(1), hosts);
  EXPECT_EQ(load.hosts.at("node-0"), kFullRate);
  EXPECT_FALSE(load.hosts.contains("node-0/1"));
  const Plan next = plan_over(*fabric, rail_aggregators(2), 2, hosts, load);
  EXPECT_EQ(next.rates.ranks, 50 * kGbit);
  fabric->remove(load, std::span(plan.lanes).first(1), hosts);
  EXPECT_THAT(load.hosts, IsEmpty());
  fabric->add(load, plan.lanes, hosts);
  EXPECT_EQ(load.hosts.at("node-0"), kFullRate / 2);
  EXPECT_EQ(load.hosts.at("node-0/1"), kFullRate / 2);
}

TEST(Interfaces, EachInterfaceOfAHostCarriesItsOwnLanes) {
  // Hosts with a wide interface and a narrow one, on one switch.
  const auto fabric = fabric_from(R"(
switches: [{name: s, level: 1}]
hosts: ["node-[0-3]", "agg-[0-3]"]
links:
  - {from: "node-[0-3]", to: s, rate: 100Gbit/s, interface: eth0}
  - {from: "node-[0-3]", to: s, rate: 25Gbit/s, interface: eth1}
  - {from: "agg-[0-3]", to: s, rate: 1Tbit/s}
)");
  std::vector<PlanAggregator> aggregators;
  for (int a = 0; a < 4; ++a) aggregators.push_back(aggregator_on("agg-" + std::to_string(a)));
  const auto hosts = nodes(4);
  const Plan one = plan_over(*fabric, aggregators, 1, hosts);
  EXPECT_EQ(one.rates.links, 100 * kGbit) << "lane 0 leaves by the first interface";
  const Plan two = plan_over(*fabric, aggregators, 2, hosts);
  EXPECT_EQ(two.rates.links, 50 * kGbit) << "half of the bytes leave by the narrow one";
  EXPECT_THAT(rails_of(two), Each(""));
  EXPECT_THAT(plan_over(*fabric, aggregators, 0, hosts).lanes, SizeIs(1)) << "equal parts on unequal links do not pay";
  const Plan three = plan_over(*fabric, aggregators, 3, hosts);
  EXPECT_EQ(three.rates.links, 75 * kGbit) << "lanes 0 and 2 share the wide one, and lane 1 has the narrow one";
}

}  // namespace
}  // namespace tributary::manager
