// Fabrics other than fat-trees, as the topology file describes them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/manager/fabrics.h"
#include "tree-manager/planner/domains.h"

namespace tributary::manager {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

Topology topology_of(const std::string& yaml) {
  auto topology = parse_topology(yaml, "t.yaml");
  EXPECT_TRUE(topology.has_value()) << topology.error().message;
  return topology.value_or(Topology{});
}

std::string complaint_about(const std::string& yaml) {
  const auto topology = parse_topology(yaml, "t.yaml");
  return topology ? "no complaint" : topology.error().message;
}

constexpr const char* kDragonfly = R"(
fabric: dragonfly
switches: [{name: "a-[1-3]", group: a}, {name: "b-[1-3]", group: b}]
hosts: [one, two, three, far]
links:
  - {from: one, to: a-1, rate: 100Gbit/s}
  - {from: two, to: a-1, rate: 100Gbit/s}
  - {from: three, to: a-2, rate: 100Gbit/s}
  - {from: far, to: b-3, rate: 100Gbit/s}
  - {mesh: "a-[1-3]", rate: 40Gbit/s}
  - {mesh: "b-[1-3]", rate: 40Gbit/s}
  - {from: a-1, to: b-1, rate: 10Gbit/s}
  - {from: a-2, to: b-2, rate: 10Gbit/s}
)";

TEST(Dragonfly, SwitchesAreInGroupsAndGroupsInTheWhole) {
  const DomainTree tree(topology_of(kDragonfly));
  const auto& domains = tree.domains();
  ASSERT_THAT(domains, SizeIs(6 + 2 + 1));
  const std::uint32_t of_one = tree.place("one").domain, group_a = domains[of_one].parent;
  EXPECT_EQ(tree.place("two").domain, of_one);
  EXPECT_NE(tree.place("three").domain, of_one);
  EXPECT_EQ(domains[tree.place("three").domain].parent, group_a);
  EXPECT_NE(domains[tree.place("far").domain].parent, group_a);
  EXPECT_EQ(domains[group_a].parent, tree.root());
  EXPECT_EQ(domains[of_one].uplink_bits_per_second, 80 * kGbit)
      << "the switch has two links to the others of its group";
  EXPECT_EQ(domains[group_a].uplink_bits_per_second, 20 * kGbit) << "the group has two links to the other group";
}

TEST(Dragonfly, ADragonflyPlusHasFatTreesForGroups) {
  const DomainTree tree(topology_of(R"(
fabric: dragonfly+
switches:
  - {name: "a-leaf-[1-2]", level: 1, group: a}
  - {name: "a-spine-[1-2]", level: 2, group: a}
  - {name: b-leaf, level: 1, group: b}
  - {name: "b-spine-[1-2]", level: 2, group: b}
hosts: [one, two, far]
links:
  - {from: one, to: a-leaf-1, rate: 100Gbit/s}
  - {from: two, to: a-leaf-2, rate: 100Gbit/s}
  - {from: far, to: b-leaf, rate: 100Gbit/s}
  - {from: "a-leaf-[1-2]", to: "a-spine-[1-2]", rate: 40Gbit/s}
  - {from: b-leaf, to: "b-spine-[1-2]", rate: 40Gbit/s}
  - {from: "a-spine-[1-2]", to: "b-spine-[1-2]", rate: 10Gbit/s}
)"));
  const auto& domains = tree.domains();
  ASSERT_THAT(domains, SizeIs(3 + 2 + 1));
  const std::uint32_t group_a = domains[tree.place("one").domain].parent;
  EXPECT_EQ(domains[tree.place("two").domain].parent, group_a);
  EXPECT_EQ(domains[tree.place("one").domain].uplink_bits_per_second, 80 * kGbit);
  EXPECT_EQ(domains[group_a].uplink_bits_per_second, 40 * kGbit);
  EXPECT_EQ(domains[group_a].parent, tree.root());
}

TEST(Nested, PlacesAreDomains) {
  const Topology topology = topology_of(R"(
fabric: nested
places:
  - {name: cluster}
  - {name: "pod-[1-2]", in: cluster, uplink: 400Gbit/s}
  - {name: rack-1, in: pod-1, uplink: 200Gbit/s}
hosts:
  - {name: "node-[1-2]", in: rack-1, rate: 100Gbit/s}
  - {name: near, in: pod-1, rate: 10Gbit/s}
  - {name: far, in: pod-2, rate: 10Gbit/s}
)");
  const DomainTree tree(topology);
  const auto& domains = tree.domains();
  ASSERT_THAT(domains, SizeIs(4));
  const std::uint32_t rack = tree.place("node-1").domain, pod = tree.place("near").domain;
  EXPECT_EQ(tree.place("node-2").domain, rack);
  EXPECT_EQ(domains[rack].parent, pod);
  EXPECT_EQ(domains[rack].uplink_bits_per_second, 200 * kGbit);
  EXPECT_EQ(domains[pod].uplink_bits_per_second, 400 * kGbit);
  EXPECT_EQ(domains[pod].parent, tree.root());
  EXPECT_EQ(domains[tree.place("far").domain].parent, tree.root());
}

constexpr const char* kRailSwitches =
    "fabric: rail-optimised\nswitches: [{name: \"leaf-[1-2]\", level: 1, rail: \"r[1-2]\"}]\n";

TEST(Rails, NeedNotBeConnectedWithOneAnother) {
  const Topology topology = topology_of(std::string(kRailSwitches) +
                                        "hosts: [a, b]\nlinks: [{from: [a, b], to: leaf-1, rate: 100Gbit/s, interface: "
                                        "mlx5_0}, {from: b, to: leaf-2, rate: 50Gbit/s}]\n");
  EXPECT_THAT(topology.rails, ElementsAre("r1", "r2"));
  EXPECT_THAT(topology.interfaces, ElementsAre("mlx5_0"));
  const auto json = to_json(topology);
  EXPECT_EQ(json.at("rails").size(), 2U);
  EXPECT_EQ(json.at("switches").at(1).at("rail"), "r2");
  EXPECT_EQ(json.at("links").at(0).at("interface"), "mlx5_0");
  EXPECT_FALSE(json.at("links").at(2).contains("interface"));
  (void)DomainTree(topology);
}

TEST(FabricKinds, NameFileLineKeyAndWhatIsAccepted) {
  const std::string rails = kRailSwitches;
  const std::string fly = "fabric: dragonfly\nswitches: [{name: \"a-[1-2]\", group: a}]\nhosts: []\n";
  const std::string plus =
      "fabric: dragonfly+\nswitches: [{name: l, level: 1, group: a}, {name: s, level: 2, group: b}]\nhosts: []\n";
  const std::string nested = "fabric: nested\nplaces: [{name: all}, {name: rack, in: all, uplink: 1Gbit/s}]\n";
  const std::pair<std::string, const char*> cases[] = {
      {"fabric: rail-optimised\nswitches: [{name: s, level: 1}]\nhosts: []\nlinks: []\n",
       "t.yaml:2: switches[0].rail: the key is missing"},
      {"fabric: rail-optimised\nswitches: [{name: \"s-[1-3]\", level: 1, rail: \"r[1-2]\"}]\nhosts: []\nlinks: []\n",
       "t.yaml:2: switches[0].rail: 2 names for 3 switches; write one for all, or a range with one for each"},
      {"fabric: rail-optimised\nswitches: [{name: a, level: 1, rail: r1}, {name: b, level: 2, rail: r2}]\nhosts: []\n"
       "links: [{from: a, to: b, rate: 1Gbit/s}]\n",
       "t.yaml:4: links[0]: a link from rail 'r1' to rail 'r2'; rails meet only at switches without a rail"},
      {"fabric: rail-optimised\nswitches: [{name: \"s-[1-2]\", level: 1, rail: r1}]\nhosts: [a]\n"
       "links: [{from: a, to: \"s-[1-2]\", rate: 1Gbit/s}]\n",
       "switch 's-2' is not connected with switch 's-1' by any links of rail 'r1'"},
      {"fabric: rail-optimised\nswitches: [{name: s, level: 1, rail: r1}, {name: t, level: 2}]\nhosts: [a]\n"
       "links: [{from: a, to: s, rate: 1Gbit/s}]\n",
       "switch 't' is not connected with any rail"},
      {rails + "hosts: [a]\nlinks: [{from: a, to: leaf-1, rate: 1Gbit/s, interface: \"eth 0\"}]\n",
       "t.yaml:4: links[0].interface: 'eth 0' is no name"},
      {"switches: [{name: s, level: 1}, {name: t, level: 2}]\nhosts: []\nlinks: [{from: s, to: t, rate: 1Gbit/s, "
       "interface: x}]\n",
       "t.yaml:3: links[0]: 'interface' is for links of hosts"},
      {"switches: [{name: s, level: 1, rail: r}]\nhosts: []\nlinks: []\n",
       "switches[0].rail: there is no such key (allowed: name, level"},
      {"fabric: dragonfly\nswitches: [{name: s}]\nhosts: []\nlinks: []\n",
       "t.yaml:2: switches[0].group: the key is missing"},
      {fly + "links: [{from: a-1, to: a-1, rate: 1Gbit/s}]\n", "a link from switch 'a-1' to itself"},
      {fly + "links: [{mesh: \"a-[1-2]\", from: a-1, rate: 1Gbit/s}]\n", "links[0].from: there is no such key"},
      {fly + "links: []\n", "t.yaml:4: links: switch 'a-2' is not connected with switch 'a-1' by any links"},
      {plus + "links: [{from: l, to: s, rate: 1Gbit/s}]\n",
       "a link between groups; only switches of level 2 have such links"},
      {"fabric: dragonfly+\nswitches: [{name: s, level: 3, group: a}]\nhosts: []\nlinks: []\n",
       "'3': it is no whole number from 1 to 2"},
      {"fabric: nested\nplaces: [{name: all, uplink: 1Gbit/s}]\nhosts: []\n", "the first place is the outermost"},
      {"fabric: nested\nplaces: [{name: all}, {name: rack, uplink: 1Gbit/s}]\nhosts: []\n",
       "t.yaml:2: places[1]: a place has 'in'"},
      {"fabric: nested\nplaces: [{name: all}, {name: rack, in: pod, uplink: 1Gbit/s}]\nhosts: []\n",
       "places[1].in: no host or switch has the name 'pod'"},
      {"fabric: nested\nplaces: [{name: p1}, {name: p2, in: p1, uplink: 1Gbit/s}, {name: p3, in: p2, uplink: 1Gbit/s}, "
       "{name: p4, in: p3, uplink: 1Gbit/s}, {name: p5, in: p4, uplink: 1Gbit/s}, {name: p6, in: p5, uplink: 1Gbit/s}, "
       "{name: p7, in: p6, uplink: 1Gbit/s}]\nhosts: []\n",
       "t.yaml:2: places: more than 6 places within one another"},
      {nested + "hosts: [{name: a, in: [rack, all], rate: 1Gbit/s}]\n", "hosts[0].in: a host is in one place"},
      {nested + "hosts: [{name: a, in: rack}]\n", "t.yaml:3: hosts[0].rate: the key is missing"},
  };
  for (const auto& [text, complaint] : cases) EXPECT_THAT(complaint_about(text), HasSubstr(complaint)) << text;
}

}  // namespace
}  // namespace tributary::manager
