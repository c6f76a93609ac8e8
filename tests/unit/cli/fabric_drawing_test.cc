#include <gtest/gtest.h>

#include "client/cli/topology/fabric_drawing.h"

namespace tributary::cli {
namespace {

std::string drawn(const std::string& yaml) {
  const auto topology = manager::parse_topology(yaml, "t");
  EXPECT_TRUE(topology.has_value()) << topology.error().message;
  return topology ? draw_fabric(*topology, "t") : std::string();
}

TEST(FabricDrawing, ShowsLevelsRatesAndHowMuchMoreHostsCanSend) {
  EXPECT_EQ(drawn(R"(
switches: [{name: "core-[1-2]", level: 3}, {name: "pod-[1-2]", level: 2}, {name: "leaf-[1-3]", level: 1}]
hosts: ["node-[01-48]", special, above]
links:
  - {from: "node-[01-16]", to: leaf-1, rate: 100Gbit/s}
  - {from: "node-[17-32]", to: leaf-2, rate: 100Gbit/s}
  - {from: ["node-[33-47]"], to: leaf-3, rate: 100Gbit/s}
  - {from: [node-48, special], to: leaf-3, rate: 25Gbit/s}
  - {from: above, to: core-1, rate: 1Gbit/s}
  - {from: "leaf-[1-2]", to: pod-1, rate: 400Gbit/s}
  - {from: leaf-3, to: pod-2, rate: 400Gbit/s}
  - {from: "pod-[1-2]", to: "core-[1-2]", rate: 800Gbit/s}
aggregators: [{name: agg, host: special}]
)"),
            R"(fabric fat-tree, t: 50 hosts, 7 switches, 57 links
core-[1-2]
├─ above at 1 Gbit/s
├─ pod-1  2 links, 1.6 Tbit/s up, 2:1
│  ├─ leaf-1  1 link, 400 Gbit/s up, 4:1: node-[01-16] at 100 Gbit/s
│  └─ leaf-2  1 link, 400 Gbit/s up, 4:1: node-[17-32] at 100 Gbit/s
└─ pod-2  2 links, 1.6 Tbit/s up, 0.969:1
   └─ leaf-3  1 link, 400 Gbit/s up, 3.88:1
      ├─ node-[33-47] at 100 Gbit/s
      ├─ node-48 at 25 Gbit/s
      └─ special at 25 Gbit/s, aggregator agg
)");
}

TEST(FabricDrawing, ALargeRatioIsAWholeNumber) {
  EXPECT_EQ(drawn(R"(
switches: [{name: top, level: 2}, {name: leaf, level: 1}]
hosts: [a, b]
links: [{from: [a, b], to: leaf, rate: 100Tbit/s}, {from: leaf, to: top, rate: 100Gbit/s}]
)"),
            "fabric fat-tree, t: 2 hosts, 2 switches, 3 links\ntop\n"
            "└─ leaf  1 link, 100 Gbit/s up, 2000:1: a, b at 100 Tbit/s\n");
}

TEST(FabricDrawing, AFlatFabricIsALine) {
  EXPECT_EQ(drawn("fabric: flat\nassumed_rate: 25Gbit/s\naggregators: [{name: a, host: h}]\n"),
            "fabric flat, t\nevery host has 25 Gbit/s\naggregator a on h\n");
}

TEST(FabricDrawing, RailsThatDoNotMeetStandSideBySide) {
  EXPECT_EQ(drawn(R"(
fabric: rail-optimised
switches: [{name: "r-[1-2]", level: 1, rail: "rail-[1-2]"}]
hosts: [a, b]
links: [{from: [a, b], to: "r-[1-2]", rate: 1Gbit/s}]
)"),
            "fabric rail-optimised, t: 2 hosts, 2 switches, 4 links\n"
            "r-1, rail rail-1\n└─ a, b at 1 Gbit/s\n"
            "r-2, rail rail-2\n└─ a, b at 1 Gbit/s\n");
}

}  // namespace
}  // namespace tributary::cli
