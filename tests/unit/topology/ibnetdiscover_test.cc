#include "tree-manager/topology/import/ibnetdiscover.h"

#include "tests/unit/topology/imports.h"
#include "tree-manager/topology/import/ib_names.h"

namespace tributary::manager {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// Two leaves and a spine, in the form that ibnetdiscover prints.
std::string fabric(const std::string& more = "") {
  return R"(vendid=0x2c9
switchguid=0xe0(e0)
Switch	36 "S-00000000000000e0"		# "MF0;spine:MQM8700/U1" enhanced port 0 lid 1 lmc 0
[1]	"S-00000000000000e1"[36]		# "MF0;leaf-1:MQM8700/U1" lid 2 4xHDR
[2]	"S-00000000000000e1"[35]		# "MF0;leaf-1:MQM8700/U1" lid 2 4xHDR
[3]	"S-00000000000000e2"[36]		# "MF0;leaf-2:MQM8700/U1" lid 3 4xHDR

Switch	36 "S-00000000000000e1"		# "MF0;leaf-1:MQM8700/U1" enhanced port 0 lid 2 lmc 0
[36]	"S-00000000000000e0"[1]		# "MF0;spine:MQM8700/U1" lid 1 4xHDR
[35]	"S-00000000000000e0"[2]		# "MF0;spine:MQM8700/U1" lid 1 4xHDR
[1]	"H-00000000000000a1"[1](a1) 		# "node-1 HCA-1" lid 4 2xHDR

Switch	36 "S-00000000000000e2"		# "MF0;leaf-2:MQM8700/U1" enhanced port 0 lid 3 lmc 0
[36]	"S-00000000000000e0"[3]		# "MF0;spine:MQM8700/U1" lid 1 4xHDR
[1]	"H-00000000000000a2"[1](a2) 		# "node-2 HCA-1" lid 5 4xEDR

Ca	1 "H-00000000000000a1"		# "node-1 HCA-1"
[1](a1) 	"S-00000000000000e1"[1]		# lid 4 lmc 0 "MF0;leaf-1:MQM8700/U1" lid 2 2xHDR

Ca	1 "H-00000000000000a2"		# "node-2 HCA-1"
[1](a2) 	"S-00000000000000e2"[1]		# lid 5 lmc 0 "MF0;leaf-2:MQM8700/U1" lid 3 4xEDR
)" + more;
}

TEST(Ibnetdiscover, AHostWithTwoAdaptersOnTwoRailsHasTwoInterfaces) {
  const auto [topology, warnings] = imported(recorded("ibnetdiscover.txt"));
  EXPECT_EQ(topology.fabric, FabricKind::rail_optimised);
  EXPECT_THAT(topology.hosts, ElementsAre("node-1", "node-2", "node-3", "node-4"));
  EXPECT_THAT(topology.switches, SizeIs(6));
  EXPECT_THAT(topology.rails, ElementsAre("mlx5_0", "mlx5_1"));
  EXPECT_EQ(level_of(topology, "spine-2"), 2U);
  EXPECT_EQ(rate_between(topology, "node-3", "leaf-b-2"), 8 * kGbit) << "4xSDR";
  EXPECT_EQ(rate_between(topology, "leaf-b-2", "spine-1"), 24 * kGbit) << "12xSDR";
  EXPECT_THAT(warnings, IsEmpty());
}

TEST(Ibnetdiscover, TheListOfPortsGivesTheSameTopology) {
  const auto whole = imported(recorded("ibnetdiscover.txt")).topology;
  auto ports = imported(recorded("ibnetdiscover-p.txt")).topology;
  EXPECT_EQ(ports.hosts, whole.hosts);
  EXPECT_THAT(ports.links, SizeIs(whole.links.size()));
  for (const Link& link : whole.links) {
    const bool host = link.from_kind == Link::End::host;
    const std::string from = host ? whole.hosts[link.from] : whole.switches[link.from].name;
    EXPECT_EQ(rate_between(ports, from, whole.switches[link.to].name), link.rate_bits_per_second) << from;
  }
}

TEST(Ibnetdiscover, CablesBetweenTheSameSwitchesAddUp) {
  const auto topology = imported(fabric()).topology;
  EXPECT_EQ(topology.fabric, FabricKind::fat_tree) << "each host has one interface";
  EXPECT_EQ(rate_between(topology, "leaf-1", "spine"), 400 * kGbit);
  EXPECT_EQ(rate_between(topology, "leaf-2", "spine"), 200 * kGbit);
  EXPECT_EQ(rate_between(topology, "node-1", "leaf-1"), 100 * kGbit) << "2xHDR";
  EXPECT_EQ(rate_between(topology, "node-2", "leaf-2"), 100 * kGbit) << "4xEDR";
}

TEST(Ibnetdiscover, LeavesOutRoutersAggregationNodesAndUnknownNodes) {
  const auto [topology, warnings] = imported(fabric(R"(
Ca	1 "H-00000000000000b1"		# "Mellanox Technologies Aggregation Node"
[1](b1) 	"S-00000000000000e1"[41]		# lid 9 lmc 0 "MF0;leaf-1:MQM8700/U1" lid 2 4xHDR

Rt	2 "R-00000000000000c1"		# "router"
[1](c1) 	"S-00000000000000e0"[9]		# lid 8 lmc 0 "MF0;spine:MQM8700/U1" lid 1 4xHDR

a line of another program
)"));
  EXPECT_THAT(topology.hosts, SizeIs(2));
  EXPECT_THAT(warnings,
              ElementsAre("t: lines that say nothing known were left out: line 29 'a line of another program'",
                          HasSubstr("1 routers"), HasSubstr("1 aggregation nodes")));
}

TEST(Ibnetdiscover, NamesLinesThatAreWrong) {
  EXPECT_THAT(complaint(fabric("[1]\tnothing\n")), HasSubstr("t:22: a port is expected"));
  EXPECT_THAT(complaint("vendid=0x1\n[1] \"S-1\"[1]\n"), HasSubstr("t:2: a port stands before the first node"));
  EXPECT_THAT(complaint("vendid=0x1\nSwitch 36 leaf\n"), HasSubstr("t:2: a node's identity in quotes"));
  EXPECT_THAT(complaint("vendid=0x1\n"), HasSubstr("no node of an InfiniBand fabric"));
  const ImportOptions ports{.format = ImportFormat::ibnetdiscover};
  EXPECT_THAT(complaint("CA 17 one 0x1 4x SDR - SW 7 13 0x2 ( 'a' - 'b' )\n", ports),
              HasSubstr("t:1: a port is expected"));
  EXPECT_THAT(complaint("CA 17 1 0x1 4x SDR - SW 7 13 0x2 ( 'a' )\n", ports), HasSubstr("t:1: the other end"));
}

TEST(Ibnetdiscover, AnAdapterWithoutAHostsNameIsAHostByItsGuid) {
  const auto [topology, warnings] = imported(fabric(R"(
Ca	1 "H-00000000000000a3"		# "MT4123 ConnectX6   Mellanox Technologies"
[1](a3) 	"S-00000000000000e1"[2]		# lid 9 lmc 0 "MF0;leaf-1:MQM8700/U1" lid 2 4xHDR
Ca	1 "H-00000000000000a4"		# "MT4123 ConnectX6   Mellanox Technologies"
[1](a4) 	"S-00000000000000e1"[3]		# lid 9 lmc 0 "MF0;leaf-1:MQM8700/U1" lid 2 4xHDR
)"));
  EXPECT_THAT(topology.hosts, ElementsAre("adapter-00000000000000a3", "adapter-00000000000000a4", "node-1", "node-2"));
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("2 adapters do not tell their host")));
}

TEST(IbNames, RatesFollowFromWidthAndSpeed) {
  EXPECT_EQ(ib_rate("4xEDR"), 100 * kGbit);
  EXPECT_EQ(ib_rate("4xHDR"), 200 * kGbit);
  EXPECT_EQ(ib_rate("4xNDR"), 400 * kGbit);
  EXPECT_EQ(ib_rate("4xXDR"), 800 * kGbit);
  EXPECT_EQ(ib_rate("12xQDR"), 96 * kGbit);
  EXPECT_EQ(ib_rate("4xFDR10"), 40 * kGbit);
  for (const char* text : {"", "x", "4x", "xEDR", "3xEDR", "4xZDR", "4 xEDR", "99999999999xEDR"})
    EXPECT_EQ(ib_rate(text), 0U) << text;
}

TEST(IbNames, SwitchesOfOneDirectorKeepTheirParts) {
  EXPECT_EQ(switch_in_description("MF0;leaf-1:MQM8700/U1"), "leaf-1");
  EXPECT_EQ(switch_in_description("MF0;director:CS8500/L01/U1"), "director/L01/U1");
  EXPECT_EQ(switch_in_description("leaf 7"), "leaf 7");
  EXPECT_EQ(switch_in_description("Quantum Mellanox Technologies"), "");
}

}  // namespace
}  // namespace tributary::manager
