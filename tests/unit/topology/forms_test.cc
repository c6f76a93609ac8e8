// The forms of a topology: folded names, the file, JSON, and the differences between two topologies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tree-manager/topology/difference.h"
#include "tree-manager/topology/name_folding.h"
#include "tree-manager/topology/name_range.h"
#include "tree-manager/topology/topology_json.h"
#include "tree-manager/topology/topology_yaml.h"

namespace tributary::manager {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Folding, MakesRangesThatStandForTheSameNames) {
  const std::vector<std::vector<std::string>> lists = {{"n1", "n2", "n3", "n9", "n10", "n11"},
                                                       {"n08", "n09", "n10", "n11"},
                                                       {"n098", "n099", "n100", "n101"},
                                                       {"n8", "n9", "n10"},
                                                       {"n0", "n00", "n01", "n1"},
                                                       {"r1n1.ib", "r1n2.ib", "r2n1.ib", "x"},
                                                       {"n0999999999", "n1000000000"},
                                                       {"", "7", "8"}};
  for (const auto& names : lists) {
    std::vector<std::string> again;
    for (const std::string& range : fold_names(names)) {
      if (range.empty()) again.push_back(range);
      for (std::string& name : expand_names(range).value_or(std::vector<std::string>()))
        again.push_back(std::move(name));
    }
    EXPECT_THAT(again, ::testing::UnorderedElementsAreArray(names));
  }
  EXPECT_THAT(fold_names({"n10", "n9", "n8", "n9"}), ElementsAre("n[8-10]"));
  EXPECT_THAT(fold_names({"node-1", "node-2", "node-3", "b"}), ElementsAre("b", "node-[1-3]"));
  EXPECT_THAT(fold_names({"a01", "a02", "a3"}), ElementsAre("a[01-02]", "a3"));
}

TEST(Folding, OrdersNamesAsPeopleDo) {
  EXPECT_TRUE(natural_less("node-2", "node-10"));
  EXPECT_FALSE(natural_less("node-10", "node-2"));
  EXPECT_TRUE(natural_less("a", "a1"));
  EXPECT_TRUE(natural_less("a01", "a1"));
  EXPECT_FALSE(natural_less("a1", "a1"));
}

std::vector<std::string> samples() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(TRIBUTARY_CONFIG_FOLDER)) {
    if (entry.path().filename().string().starts_with("topology")) files.push_back(entry.path());
  }
  EXPECT_GE(files.size(), 5U);
  return files;
}

TEST(TopologyYaml, EverySampleIsReadBackTheSame) {
  for (const std::string& file : samples()) {
    const auto topology = load_topology(file);
    ASSERT_TRUE(topology.has_value()) << topology.error().message;
    const auto again = parse_topology(topology_yaml(*topology), "written");
    ASSERT_TRUE(again.has_value()) << again.error().message;
    EXPECT_THAT(compare(*topology, *again).lines, IsEmpty()) << file;
    EXPECT_EQ(again->rails, topology->rails);
    EXPECT_EQ(again->hosts, topology->hosts);
  }
}

TEST(TopologyYaml, NamesThatLookLikeSomethingElseStayNames) {
  Topology topology{
      .fabric = FabricKind::fat_tree, .hosts = {"null", "true", "12", "02:00", "-x"}, .switches = {{"Null", 1}}};
  for (std::uint32_t i = 0; i < topology.hosts.size(); ++i) topology.links.push_back({Link::End::host, i, 0, 1'000});
  const auto again = parse_topology(topology_yaml(topology), "written");
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_THAT(compare(topology, *again).lines, IsEmpty());
}

TEST(TopologyJson, GivesBackWhatTheManagerShows) {
  for (const std::string& file : samples()) {
    const auto topology = load_topology(file);
    const auto again = topology_from_json(to_json(*topology));
    ASSERT_TRUE(again.has_value()) << again.error().message;
    EXPECT_THAT(compare(*topology, *again).lines, IsEmpty()) << file;
  }
  EXPECT_EQ(topology_from_json({{"fabric", "torus"}}).error().code, Errc::corrupt);
  EXPECT_EQ(topology_from_json(nlohmann::json::array()).error().code, Errc::corrupt);
  const nlohmann::json stray = {{"fabric", "fat-tree"},
                                {"hosts", {"a"}},
                                {"switches", nlohmann::json::array()},
                                {"links", {{{"from", "a"}, {"to", "s"}, {"rate_bits_per_second", 1}}}}};
  EXPECT_THAT(topology_from_json(stray).error().message, HasSubstr("an end of link 0"));
}

Topology racks(const std::string& hosts, const std::string& rate, const std::string& level = "1") {
  auto topology = parse_topology("switches: [{name: s, level: " + level + "}]\nhosts: [\"" + hosts +
                                     "\"]\nlinks: [{from: \"" + hosts + "\", to: s, rate: " + rate + "}]\n",
                                 "t");
  EXPECT_TRUE(topology.has_value());
  return topology.value_or(Topology{});
}

TEST(Difference, FoldsPartsThatOnlyOneTopologyHas) {
  const auto found = compare(racks("n[1-4]", "100Gbit/s"), racks("n[3-5]", "100Gbit/s"));
  EXPECT_THAT(found.lines,
              ElementsAre("- host n[1-2]", "+ host n5", "- link n[1-2] to s, 100Gbit/s", "+ link n5 to s, 100Gbit/s"));
  EXPECT_EQ(found.summary(), "2 hosts removed, 1 host added, 2 links removed, 1 link added");
}

TEST(Difference, AChangedRateHasBothLines) {
  const auto found = compare(racks("n[1-4]", "100Gbit/s"), racks("n[1-4]", "40Gbit/s"));
  EXPECT_THAT(found.lines, ElementsAre("- link n[1-4] to s, 100Gbit/s", "+ link n[1-4] to s, 40Gbit/s"));
  EXPECT_EQ(found.summary(), "4 links with another rate");
  EXPECT_EQ(compare(racks("n1", "1Gbit/s"), racks("n1", "1Gbit/s", "2")).summary(), "1 switch changed");
  EXPECT_EQ(compare(racks("n1", "1Gbit/s"), Topology{}).other_fabric, true);
  EXPECT_EQ(compare(Topology{}, Topology{}).summary(), "nothing changed");
}

}  // namespace
}  // namespace tributary::manager
