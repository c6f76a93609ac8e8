#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "tests/unit/manager/fabrics.h"
#include "tree-manager/planner/flight.h"
#include "tributary/protocol/lane_memory.h"

namespace tributary::manager {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::uint32_t kWindow = 32;
constexpr std::uint32_t kSegment = 64U << 10;

std::unique_ptr<const Fabric> fabric_of(const std::string& yaml) {
  auto topology = parse_topology(yaml, "test.yaml");
  EXPECT_TRUE(topology.has_value()) << topology.error().message;
  return make_fabric(*topology);
}

std::unique_ptr<const Fabric> flat_fabric() {
  return make_fabric(Topology{});
}

PlanRequest request_of(const std::vector<std::string>& hosts, const std::vector<PlanAggregator>& aggregators,
                       std::uint32_t lanes = 1) {
  return {.hosts = hosts, .aggregators = aggregators, .lanes = lanes, .window = kWindow, .segment_bytes = kSegment};
}

/// Checks the rules that every plan must obey; returns the first rule that the plan breaks.
std::string violation(const PlanRequest& request, const Plan& plan) {
  std::map<std::string, const PlanAggregator*> known;
  for (const PlanAggregator& it : request.aggregators) known[it.name] = &it;
  std::map<std::string, std::uint64_t> memory;
  if (plan.lanes.size() > (request.lanes == 0 ? kLanesMax : request.lanes)) return "more lanes than wanted";
  std::uint32_t weights = 0;
  bool equal = true;
  for (const LaneTree& lane : plan.lanes) {
    weights += lane.weight;
    equal = equal && lane.weight == 1;
  }
  if (!equal && !request.lane_weights) return "unequal weights were not asked for";
  const auto window_of = [&](const LaneTree& lane) { return lane.window != 0 ? lane.window : plan.window; };
  for (const LaneTree& lane : plan.lanes) {
    const std::uint32_t window =
        request.window_is_for_all ? window_of_lane(request.window, lane.weight, weights) : request.window;
    if (window_of(lane) > window || window_of(lane) > plan.window) return "a lane's window is too great";
    if (equal && window_of(lane) < window && plan.rates.trees >= plan.rates.links)
      return "a lane's window is too small";
  }
  for (const LaneTree& lane : plan.lanes) {
    std::set<std::string> used;
    std::vector<int> seen(request.hosts.size(), 0);
    std::vector<int> children_seen(lane.nodes.size(), 0);
    if (lane.leaf_of_rank.size() != request.hosts.size()) return "a rank has no leaf";
    for (std::uint32_t n = 0; n < lane.nodes.size(); ++n) {
      const TreeNode& node = lane.nodes[n];
      if (!used.insert(node.aggregator).second) return "an aggregator stands twice in a lane";
      const PlanAggregator& aggregator = *known.at(node.aggregator);
      if (!aggregator.unusable.empty()) return "an unusable aggregator is used";
      if (node.children.empty()) return "an aggregator without children";
      if (node.children.size() > std::min(aggregator.children_max, kChildrenMax)) return "too many children";
      memory[node.aggregator] += lane_reservation_bytes(static_cast<std::uint32_t>(node.children.size()),
                                                        window_of(lane), request.segment_bytes);
      std::uint32_t last = 0;
      for (std::uint32_t place = 0; place < node.children.size(); ++place) {
        const TreeChild& child = node.children[place];
        if (place > 0 && child.lowest_rank <= last) return "children are not in the order of their lowest rank";
        last = child.lowest_rank;
        if (child.kind == ChildKind::rank) {
          ++seen[child.index];
          if (lane.leaf_of_rank[child.index] != n || lane.child_of_rank[child.index] != place)
            return "a rank is misplaced";
        } else {
          ++children_seen[child.index];
          if (lane.nodes[child.index].parent != n || lane.nodes[child.index].child != place)
            return "a node is misplaced";
        }
      }
    }
    if (std::any_of(seen.begin(), seen.end(), [](int times) { return times != 1; })) return "a rank is not there once";
    if (std::count(children_seen.begin(), children_seen.end(), 1) + 1 != static_cast<int>(lane.nodes.size()))
      return "no single root";
    if (lane.levels > std::min(request.levels_max, kTreeLevelsMax)) return "too many levels";
    if (request.levels != 0 && lane.levels != request.levels) return "not the levels that were asked for";
  }
  for (const auto& [name, bytes] : memory) {
    if (bytes > known.at(name)->memory_free_bytes) return "more memory than " + name + " has";
  }
  if (plan.lanes.empty() && plan.reason.empty()) return "no tree and no reason";
  return "";
}

TEST(Planner, YieldsTwoLevelsForTwoLeavesAndASpine) {
  const auto fabric = fabric_of(leaf_spine_yaml(2, 2, 1));
  const auto hosts = nodes(4);
  const auto aggregators = leaf_spine_aggregators(2, 1);
  for (const std::uint32_t lanes : {1U, 2U}) {
    const Plan plan = fabric->plan(request_of(hosts, aggregators, lanes), {});
    ASSERT_THAT(plan.lanes, SizeIs(lanes)) << plan.reason;
    for (const LaneTree& lane : plan.lanes) {
      EXPECT_EQ(lane.levels, 2U);
      ASSERT_THAT(lane.nodes, SizeIs(3));
      EXPECT_EQ(lane.nodes[lane.root].aggregator, "on-agg-spine-0");
      EXPECT_EQ(lane.nodes[lane.leaf_of_rank[0]].aggregator, "on-agg-leaf-0");
      EXPECT_EQ(lane.nodes[lane.leaf_of_rank[1]].aggregator, "on-agg-leaf-0");
      EXPECT_EQ(lane.nodes[lane.leaf_of_rank[2]].aggregator, "on-agg-leaf-1");
      EXPECT_EQ(lane.nodes[lane.leaf_of_rank[3]].aggregator, "on-agg-leaf-1");
    }
  }
}

/// Hosts at one switch, with links of one rate; the last hosts are for aggregators.
std::string star_yaml(std::uint32_t ranks, std::uint32_t aggregators) {
  std::string yaml = "fabric: fat-tree\nswitches:\n  - {name: tor, level: 1}\nhosts:\n";
  std::string links = "links:\n";
  const auto add = [&](const std::string& name) {
    yaml += "  - " + name + "\n";
    links += "  - {from: " + name + ", to: tor, rate: 1Gbit/s}\n";
  };
  for (std::uint32_t r = 0; r < ranks; ++r) add("node-" + std::to_string(r));
  for (std::uint32_t a = 0; a < aggregators; ++a) add("agg-" + std::to_string(a));
  return yaml + links;
}

// Aggregators whose links are as wide as the ranks' links: each aggregator adds the rate of its own link.
TEST(Planner, TakesAsManyLanesAsPay) {
  const auto hosts = nodes(8);
  for (const std::uint32_t available : {1U, 2U, 4U, 8U}) {
    const auto fabric = fabric_of(star_yaml(8, available));
    std::vector<PlanAggregator> aggregators;
    for (std::uint32_t a = 0; a < available; ++a) aggregators.push_back(aggregator_on("agg-" + std::to_string(a)));
    PlanRequest request = request_of(hosts, aggregators, 0);
    request.window_is_for_all = true;
    const Plan plan = fabric->plan(request, {});
    EXPECT_EQ(violation(request, plan), "");
    ASSERT_THAT(plan.lanes, SizeIs(available)) << plan.reason;
    EXPECT_EQ(plan.window, available == 8 ? kWindow / 4 : kWindow / 2)
        << "eight children share an aggregator's link, or several lanes share a rank's link";
    const PathRates rates = plan.rates;
    EXPECT_EQ(rates.links, 1'000'000'000U);
    EXPECT_EQ(rates.ranks, 1'000'000'000U);
    EXPECT_NEAR(static_cast<double>(rates.trees), 1e9 * available / 8, 1e6) << available;
  }
}

// A few lanes of this cluster load only some of the wide aggregators; only many lanes load all of them.
TEST(Planner, TriesManyLanesWhereFewDoNotPay) {
  constexpr int kRacks = 8, kRanks = 128, kAggregators = 32;
  std::string yaml = "fabric: fat-tree\nswitches:\n  - {name: spine, level: 2}\n";
  std::string hosts_yaml = "hosts:\n", links = "links:\n";
  std::vector<PlanAggregator> aggregators;
  for (int rack = 0; rack < kRacks; ++rack) {
    const std::string leaf = "leaf-" + std::to_string(rack);
    yaml += "  - {name: " + leaf + ", level: 1}\n";
    links += "  - {from: " + leaf + ", to: spine, rate: 12800Gbit/s}\n";
    const std::string ranks =
        "\"node-[" + std::to_string(rack * kRanks) + "-" + std::to_string((rack + 1) * kRanks - 1) + "]\"";
    hosts_yaml += "  - " + ranks + "\n";
    links += "  - {from: " + ranks + ", to: " + leaf + ", rate: 100Gbit/s}\n";
    for (int i = 0; i < kAggregators; ++i) {
      const std::string host = "agg-" + std::to_string(rack * kAggregators + i);
      hosts_yaml += "  - " + host + "\n";
      links += "  - {from: " + host + ", to: " + leaf + ", rate: 400Gbit/s}\n";
      aggregators.push_back(aggregator_on(host, 8ULL << 30));
    }
  }
  const auto fabric = fabric_of(yaml + hosts_yaml + links);
  const auto hosts = nodes(kRacks * kRanks);
  PlanRequest request = request_of(hosts, aggregators, 0);
  request.window_is_for_all = true;
  const Plan plan = fabric->plan(request, {});
  EXPECT_THAT(plan.lanes, SizeIs(::testing::Ge(8U))) << plan.reason;
  request.lanes = 1;
  const Plan one = fabric->plan(request, {});
  EXPECT_LT(plan.estimated_seconds, one.estimated_seconds * 0.9) << plan.lanes.size();
}

/// Racks of `ranks` hosts and one aggregator with a link of `aggregator`, with uplinks of 400 Gbit/s.
std::string racks_yaml(int racks, int ranks, const std::string& aggregator) {
  std::string yaml = "fabric: nested\nplaces:\n  - {name: core}\n", hosts = "hosts:\n";
  for (int rack = 0; rack < racks; ++rack) {
    const std::string name = "rack-" + std::to_string(rack);
    yaml += "  - {name: " + name + ", in: core, uplink: 400Gbit/s}\n";
    hosts += "  - {name: \"node-[" + std::to_string(rack * ranks) + "-" + std::to_string((rack + 1) * ranks - 1) +
             "]\", in: " + name + ", rate: 100Gbit/s}\n";
    hosts += "  - {name: agg-" + std::to_string(rack) + ", in: " + name + ", rate: " + aggregator + "}\n";
  }
  return yaml + hosts;
}

std::vector<PlanAggregator> rack_aggregators(int racks) {
  std::vector<PlanAggregator> list;
  for (int rack = 0; rack < racks; ++rack) list.push_back(aggregator_on("agg-" + std::to_string(rack)));
  return list;
}

// Where each rack reduces first, one of the racks' aggregators is the parent of the other ones in each lane.
TEST(Planner, TheLanesOfRacksWithoutASpineHaveDifferentRoots) {
  const auto fabric = fabric_of(racks_yaml(4, 8, "400Gbit/s"));
  const auto hosts = nodes(32);
  const auto aggregators = rack_aggregators(4);
  PlanRequest request = request_of(hosts, aggregators, 4);
  request.levels = 2;
  const Plan plan = fabric->plan(request, {});
  ASSERT_THAT(plan.lanes, SizeIs(4)) << plan.reason;
  std::set<std::string> roots;
  for (const LaneTree& lane : plan.lanes) roots.insert(lane.nodes[lane.root].aggregator);
  EXPECT_THAT(roots, SizeIs(4));
}

// One level of eight children loads both aggregators with eight flows per lane, and two levels load them with ten.
TEST(Planner, AFixedNumberOfLanesIsNoSlowerThanTheSameNumberChosen) {
  const auto fabric = fabric_of(racks_yaml(2, 4, "100Gbit/s"));
  const auto hosts = nodes(8);
  const auto aggregators = rack_aggregators(2);
  const Plan chosen = fabric->plan(request_of(hosts, aggregators, 0), {});
  ASSERT_THAT(chosen.lanes, SizeIs(2)) << chosen.reason;
  EXPECT_EQ(chosen.lanes[0].levels, 1U);
  const Plan fixed = fabric->plan(request_of(hosts, aggregators, 2), {});
  EXPECT_EQ(fixed.lanes, chosen.lanes);
}

TEST(Planner, UsesAggregatorsOutsideThePlaceOfItsMembersWhereThatPays) {
  const auto fabric = fabric_of(racks_yaml(4, 4, "100Gbit/s"));
  const auto hosts = nodes(4);  // all in the first rack
  const auto all = rack_aggregators(4);
  const auto near = rack_aggregators(1);
  const Plan plan = fabric->plan(request_of(hosts, all, 0), {});
  EXPECT_EQ(violation(request_of(hosts, all, 0), plan), "");
  EXPECT_LT(plan.estimated_seconds, fabric->plan(request_of(hosts, near, 0), {}).estimated_seconds * 0.6);

  FabricLoad busy;
  for (int rack = 1; rack < 4; ++rack) busy.aggregators["on-agg-" + std::to_string(rack)] = 64 * kFullRate;
  const Plan kept = fabric->plan(request_of(hosts, all, 1), busy);
  ASSERT_THAT(kept.lanes, SizeIs(1)) << kept.reason;
  EXPECT_EQ(kept.lanes[0].nodes[kept.lanes[0].root].aggregator, "on-agg-0") << "the others have no room that helps";
}

TEST(Planner, ChoosesOneLaneWhereNoRateIsKnown) {
  const auto hosts = nodes(8);
  std::vector<PlanAggregator> aggregators;
  for (std::uint32_t a = 0; a < 4; ++a) aggregators.push_back(aggregator_on("agg-" + std::to_string(a)));
  const Plan plan = flat_fabric()->plan(request_of(hosts, aggregators, 0), {});
  ASSERT_THAT(plan.lanes, SizeIs(1));
  EXPECT_EQ(plan.rates, PathRates{});
}

TEST(Planner, GoesOnWithoutAnAggregatorThatMustNotBeUsed) {
  const auto fabric = fabric_of(leaf_spine_yaml(2, 2, 1));
  const auto hosts = nodes(4);
  auto aggregators = leaf_spine_aggregators(2, 1);
  aggregators[0].unusable = "avoided because this group saw it fail";
  const PlanRequest request = request_of(hosts, aggregators);
  const Plan plan = fabric->plan(request, {});
  ASSERT_THAT(plan.lanes, SizeIs(1)) << plan.reason;
  EXPECT_EQ(violation(request, plan), "");
}

TEST(Planner, ForcesTheNumberOfLevels) {
  const auto fabric = flat_fabric();
  const auto hosts = nodes(8);
  std::vector<PlanAggregator> aggregators;
  for (int i = 0; i < 9; ++i) aggregators.push_back(aggregator_on("h" + std::to_string(i)));
  for (std::uint32_t levels = 1; levels <= 4; ++levels) {
    PlanRequest request = request_of(hosts, aggregators);
    request.levels = levels;
    const Plan plan = fabric->plan(request, {});
    ASSERT_THAT(plan.lanes, SizeIs(1)) << levels << ": " << plan.reason;
    EXPECT_EQ(plan.lanes[0].levels, levels);
    EXPECT_EQ(violation(request, plan), "");
  }
}

TEST(Planner, BuildsTwoLevelsOfThreeAggregatorsInAFlatFabricWhenAsked) {
  const auto fabric = flat_fabric();
  const std::vector<std::string> hosts(4, "localhost");
  std::vector<PlanAggregator> aggregators;
  for (const char* name : {"a", "b", "c"}) {
    aggregators.push_back(aggregator_on("localhost"));
    aggregators.back().name = name;
  }
  PlanRequest request = request_of(hosts, aggregators, 2);
  request.levels = 2;
  const Plan plan = fabric->plan(request, {});
  ASSERT_THAT(plan.lanes, SizeIs(2)) << plan.reason;
  for (const LaneTree& lane : plan.lanes) {
    EXPECT_THAT(lane.nodes, SizeIs(3));
    for (const TreeNode& node : lane.nodes) EXPECT_THAT(node.children, SizeIs(2));
  }
}

TEST(Planner, LetsOneLeafsAggregatorAdoptTheOtherWhenThereIsNoneAbove) {
  const auto fabric = fabric_of(leaf_spine_yaml(2, 8, 1));
  const auto hosts = nodes(16);
  const auto aggregators = leaf_spine_aggregators(2, 0);
  const PlanRequest request = request_of(hosts, aggregators);
  const Plan plan = fabric->plan(request, {});
  ASSERT_THAT(plan.lanes, SizeIs(1)) << plan.reason;
  EXPECT_EQ(violation(request, plan), "");
  EXPECT_THAT(plan.lanes[0].nodes, SizeIs(2));
  EXPECT_EQ(plan.lanes[0].levels, 2U);
}

TEST(Planner, UsesDifferentAggregatorsForDifferentLanesWhereThatPays) {
  const auto fabric = flat_fabric();
  const auto hosts = nodes(4);
  std::vector<PlanAggregator> aggregators;
  for (int i = 0; i < 4; ++i) {
    aggregators.push_back(aggregator_on("h" + std::to_string(i)));
    aggregators.back().line_rate_bits_per_second = 1'000'000'000'000;
    aggregators.back().children_max = 4;
  }
  PlanRequest request = request_of(hosts, aggregators, 4);
  request.levels = 1;
  const Plan plan = fabric->plan(request, {});
  std::set<std::string> roots;
  for (const LaneTree& lane : plan.lanes) roots.insert(lane.nodes[lane.root].aggregator);
  EXPECT_THAT(roots, SizeIs(4));
}

TEST(Planner, AvoidsAnAggregatorThatOthersLoad) {
  const auto fabric = flat_fabric();
  const auto hosts = nodes(4);
  const std::vector aggregators{aggregator_on("busy"), aggregator_on("idle")};
  PlanRequest request = request_of(hosts, aggregators);
  request.levels = 1;
  FabricLoad load;
  load.aggregators["on-busy"] = 3 * kFullRate;
  const Plan plan = fabric->plan(request, load);
  ASSERT_THAT(plan.lanes, SizeIs(1));
  EXPECT_EQ(plan.lanes[0].nodes[0].aggregator, "on-idle");
}

TEST(Planner, ReducesOnTheHostFirstWhereItsAggregatorServesSeveralRanks) {
  const auto fabric = fabric_of(leaf_spine_yaml(2, 2, 1));
  std::vector<std::string> hosts;
  for (int rank = 0; rank < 32; ++rank) hosts.push_back("node-" + std::to_string(rank / 8));
  auto aggregators = leaf_spine_aggregators(2, 1);
  for (int node = 0; node < 4; ++node) aggregators.push_back(aggregator_on("node-" + std::to_string(node)));
  for (auto& it : aggregators) it.line_rate_bits_per_second = 1'000'000'000'000;
  const PlanRequest request = request_of(hosts, aggregators);
  const Plan plan = fabric->plan(request, {});
  ASSERT_THAT(plan.lanes, SizeIs(1)) << plan.reason;
  EXPECT_EQ(violation(request, plan), "");
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    EXPECT_EQ(plan.lanes[0].nodes[plan.lanes[0].leaf_of_rank[rank]].host, hosts[rank]);
  }
}

TEST(Planner, PlansFewerLanesWhereMemoryIsShort) {
  const auto fabric = flat_fabric();
  const auto hosts = nodes(4);
  const std::vector aggregators{aggregator_on("h", 2 * lane_reservation_bytes(4, kWindow, kSegment))};
  const PlanRequest request = request_of(hosts, aggregators, 4);
  const Plan plan = fabric->plan(request, {});
  EXPECT_THAT(plan.lanes, SizeIs(2));
  EXPECT_EQ(plan.reason, "only 2 of 4 lanes: the aggregators have no room for more");
  EXPECT_EQ(violation(request, plan), "");
}

TEST(Planner, SaysWhyThereIsNoTree) {
  const auto fabric = fabric_of(leaf_spine_yaml(2, 2, 1));
  const auto hosts = nodes(4);
  EXPECT_THAT(fabric->plan(request_of(hosts, {}), {}).reason, HasSubstr("no aggregator is registered"));
  EXPECT_THAT(fabric->plan(request_of(nodes(1), leaf_spine_aggregators(2, 1)), {}).reason, HasSubstr("one rank"));

  std::vector<PlanAggregator> aggregators{aggregator_on("agg-leaf-0"), aggregator_on("nowhere"),
                                          aggregator_on("agg-leaf-1", 1000)};
  aggregators[0].unusable = "draining";
  const std::string reason = fabric->plan(request_of(hosts, aggregators), {}).reason;
  EXPECT_THAT(reason, HasSubstr("of 3 registered aggregators"));
  EXPECT_THAT(reason, HasSubstr("1 is draining"));
  EXPECT_THAT(reason, HasSubstr("1 is on a host that the topology does not have"));
  EXPECT_THAT(reason, HasSubstr("1 is without room for two children"));

  auto strangers = nodes(4);
  strangers[2] = "stranger";
  EXPECT_THAT(fabric->plan(request_of(strangers, leaf_spine_aggregators(2, 1)), {}).reason,
              HasSubstr("host 'stranger' of rank 2 is not in the manager's topology"));
}

TEST(Planner, LooksFurtherUpWhenTheMembersOwnLeafHasNoAggregator) {
  const auto fabric = fabric_of(leaf_spine_yaml(2, 4, 1));
  const auto hosts = nodes(4);  // all of them below leaf-0
  const std::vector aggregators{aggregator_on("agg-leaf-1")};
  const PlanRequest request = request_of(hosts, aggregators);
  const Plan plan = fabric->plan(request, {});
  ASSERT_THAT(plan.lanes, SizeIs(1)) << plan.reason;
  EXPECT_EQ(violation(request, plan), "");
}

TEST(Planner, KeepsTrafficOffASlowUplink) {
  // Leaf 0's aggregator can take all 12 ranks of both leaves at full rate, but leaf 1's uplink is slow.
  const std::string yaml = R"(
switches: [{name: spine, level: 2}, {name: "leaf-[0-1]", level: 1}]
hosts: ["a-[0-5]", "b-[0-5]", agg-a, agg-b]
links:
  - {from: ["a-[0-5]"], to: leaf-0, rate: 100Gbit/s}
  - {from: ["b-[0-5]"], to: leaf-1, rate: 100Gbit/s}
  - {from: agg-a, to: leaf-0, rate: 10Tbit/s}
  - {from: agg-b, to: leaf-1, rate: 10Tbit/s}
  - {from: leaf-0, to: spine, rate: 1Tbit/s}
  - {from: leaf-1, to: spine, rate: 100Gbit/s}
)";
  const auto fabric = fabric_of(yaml);
  std::vector<std::string> hosts;
  for (const char* side : {"a-", "b-"}) {
    for (int i = 0; i < 6; ++i) hosts.push_back(side + std::to_string(i));
  }
  const std::vector aggregators{aggregator_on("agg-a"), aggregator_on("agg-b")};
  const Plan plan = fabric->plan(request_of(hosts, aggregators), {});
  ASSERT_THAT(plan.lanes, SizeIs(1)) << plan.reason;
  const LaneTree& lane = plan.lanes[0];
  for (std::size_t rank = 6; rank < 12; ++rank) EXPECT_EQ(lane.nodes[lane.leaf_of_rank[rank]].host, "agg-b");
}

TEST(Planner, AddingAndTakingAwayLoadLeavesNothing) {
  const auto fabric = fabric_of(leaf_spine_yaml(4, 4, 2));
  const auto hosts = nodes(16);
  const auto aggregators = leaf_spine_aggregators(4, 2);
  const Plan plan = fabric->plan(request_of(hosts, aggregators, 3), {});
  FabricLoad load;
  fabric->add(load, plan.lanes, hosts);
  EXPECT_EQ(load.hosts.at("node-0"), kFullRate);
  fabric->remove(load, plan.lanes, hosts);
  EXPECT_THAT(load.hosts, IsEmpty());
  EXPECT_THAT(load.aggregators, IsEmpty());
  EXPECT_EQ(std::count(load.uplinks.begin(), load.uplinks.end(), 0U), static_cast<std::ptrdiff_t>(load.uplinks.size()));
}

/// Makes a random three-level fat-tree with random aggregators and members.
class RandomCase {
 public:
  explicit RandomCase(unsigned seed) : random_(seed) {
    const int pods = pick(1, 3);
    const int leaves = pick(1, 3);
    const int per_leaf = pick(1, 5);
    yaml_ = "switches: [{name: core, level: 3}";
    for (int p = 0; p < pods; ++p) yaml_ += ", {name: pod-" + std::to_string(p) + ", level: 2}";
    for (int l = 0; l < pods * leaves; ++l) yaml_ += ", {name: leaf-" + std::to_string(l) + ", level: 1}";
    yaml_ += "]\nhosts: [";
    const int hosts = pods * leaves * per_leaf;
    for (int h = 0; h < hosts; ++h) yaml_ += "node-" + std::to_string(h) + ", ";
    for (int p = 0; p < pods; ++p) yaml_ += "agg-pod-" + std::to_string(p) + ", ";
    yaml_ += "agg-core]\nlinks:\n  - {from: agg-core, to: core, rate: 100Gbit/s}\n";
    for (int p = 0; p < pods; ++p) link("agg-pod-" + std::to_string(p), "pod-" + std::to_string(p));
    for (int p = 0; p < pods; ++p) link("pod-" + std::to_string(p), "core");
    for (int l = 0; l < pods * leaves; ++l) link("leaf-" + std::to_string(l), "pod-" + std::to_string(l / leaves));
    for (int h = 0; h < hosts; ++h) link("node-" + std::to_string(h), "leaf-" + std::to_string(h / per_leaf));
    const int ranks = pick(2, 60);
    for (int r = 0; r < ranks; ++r) members.push_back("node-" + std::to_string(pick(0, hosts - 1)));
    const int count = pick(0, 12);
    for (int a = 0; a < count; ++a) {
      const int where = pick(0, 3);
      const std::string host = where == 0   ? "agg-core"
                               : where == 1 ? "agg-pod-" + std::to_string(pick(0, pods - 1))
                                            : "node-" + std::to_string(pick(0, hosts - 1));
      PlanAggregator it = aggregator_on(host, static_cast<std::uint64_t>(pick(1, 60)) << 20);
      it.name = "agg-" + std::to_string(a);
      it.children_max = static_cast<std::uint32_t>(pick(1, 10));
      it.line_rate_bits_per_second = static_cast<std::uint64_t>(pick(0, 4)) * 100'000'000'000;
      if (pick(0, 5) == 0) it.unusable = "draining";
      aggregators.push_back(it);
    }
    lanes = static_cast<std::uint32_t>(pick(1, 4));
    levels = pick(0, 3) == 0 ? static_cast<std::uint32_t>(pick(1, 4)) : 0;
  }
  [[nodiscard]] const std::string& yaml() const { return yaml_; }
  void shuffle() { std::shuffle(aggregators.begin(), aggregators.end(), random_); }

  std::vector<std::string> members;
  std::vector<PlanAggregator> aggregators;
  std::uint32_t lanes = 1;
  std::uint32_t levels = 0;

 private:
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  void link(const std::string& from, const std::string& to) {
    yaml_ += "  - {from: " + from + ", to: " + to + ", rate: " + std::to_string(pick(1, 4) * 100) + "Gbit/s}\n";
  }
  std::mt19937 random_;
  std::string yaml_;
};

TEST(Planner, KeepsEveryLimitOnRandomFabrics) {
  int with_tree = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    RandomCase it(seed);
    const auto fabric = fabric_of(it.yaml());
    PlanRequest request = request_of(it.members, it.aggregators, it.lanes);
    request.levels = it.levels;
    const Plan plan = fabric->plan(request, {});
    ASSERT_EQ(violation(request, plan), "") << "seed " << seed;
    PlanRequest weighted = request;
    weighted.lane_weights = weighted.window_is_for_all = true;
    for (const std::uint32_t lanes : {request.lanes, 0U}) {
      weighted.lanes = lanes;
      ASSERT_EQ(violation(weighted, fabric->plan(weighted, {})), "") << "seed " << seed << ", weighted";
    }
    with_tree += plan.lanes.empty() ? 0 : 1;
    // The order of the list of aggregators must not matter.
    it.shuffle();
    PlanRequest again = request_of(it.members, it.aggregators, it.lanes);
    again.levels = it.levels;
    ASSERT_EQ(fabric->plan(again, {}).lanes, plan.lanes) << "seed " << seed;
  }
  EXPECT_GT(with_tree, 100);
  EXPECT_LT(with_tree, 400);
}

TEST(LaneTree, RefusesAGraphThatIsNoTree) {
  LaneTree lane;
  EXPECT_FALSE(lane.finish().has_value());  // the lane is empty
  lane.nodes = {{.aggregator = "a", .parent = 1}, {.aggregator = "b", .parent = 0}};
  lane.leaf_of_rank = {0, 1};
  EXPECT_FALSE(lane.finish().has_value());  // a cycle
  lane.nodes = {{.aggregator = "a"}, {.aggregator = "b"}};
  EXPECT_FALSE(lane.finish().has_value());  // two roots
  lane.nodes = {{.aggregator = "a"}, {.aggregator = "b", .parent = 0}};
  lane.leaf_of_rank = {0, 0};
  EXPECT_FALSE(lane.finish().has_value());  // no child below b
  lane.leaf_of_rank = {0, 7};
  EXPECT_FALSE(lane.finish().has_value());  // no such leaf
  lane.leaf_of_rank = {0, 1};
  EXPECT_TRUE(lane.finish().has_value());
  EXPECT_EQ(lane.levels, 2U);
}

/// Detects algorithms of quadratic cost, which would not end here. The benchmarks measure the time.
TEST(Planner, TakesAHundredThousandHosts) {
  constexpr int kLeaves = 2500;
  constexpr int kPerLeaf = 40;
  const auto fabric = fabric_of(leaf_spine_yaml(kLeaves, kPerLeaf, 64));
  const auto hosts = nodes(kLeaves * kPerLeaf);
  const auto aggregators = leaf_spine_aggregators(kLeaves, 64);
  const PlanRequest request = request_of(hosts, aggregators);
  const auto start = std::chrono::steady_clock::now();
  const Plan plan = fabric->plan(request, {});
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  RecordProperty("plan_milliseconds", static_cast<int>(seconds * 1000));
  std::printf("100,000 hosts, one lane: %.0f ms, %u levels\n", seconds * 1000,
              plan.lanes.empty() ? 0 : plan.lanes[0].levels);
  ASSERT_THAT(plan.lanes, SizeIs(1)) << plan.reason;
  EXPECT_EQ(violation(request, plan), "");
}

}  // namespace
}  // namespace tributary::manager
