#include "tree-manager/topology/import/arrange.h"

#include "tests/unit/topology/imports.h"

namespace tributary::manager {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// Makes a fabric from lines such as "host-1 = leaf-1 = spine": each '=' is a cable of 100 Gbit/s. Names that begin
/// with 'h' are hosts.
FoundFabric fabric_of(const std::string& text) {
  FoundFabric fabric;
  NodeTable table(fabric);
  std::string_view rest = text;
  while (!rest.empty()) {
    std::string_view line = next_line(rest);
    const std::uint32_t* last = nullptr;
    while (true) {
      const std::string name(next_word(line));
      if (name.empty()) break;
      const std::string key = name;
      EXPECT_TRUE(table.add(key, {.name = name, .distinct = {}, .is_switch = name[0] != 'h', .level = 0}).has_value());
      if (last != nullptr) {
        EXPECT_TRUE(table.link(*last, *table.find(key), 100 * kGbit).has_value());
      }
      last = table.find(key);
      static_cast<void>(next_word(line));  // the '='
    }
  }
  return fabric;
}

Imported arranged(const std::string& text) {
  auto result = arrange(fabric_of(text), {});
  EXPECT_TRUE(result.has_value()) << result.error().message;
  if (!result) return {};
  const auto read = parse_topology(topology_yaml(result->topology), "written");
  EXPECT_TRUE(read.has_value()) << read.error().message;
  return std::move(*result);
}

std::string refused(const std::string& text) {
  const auto result = arrange(fabric_of(text), {});
  return result ? "accepted" : result.error().message;
}

TEST(Arrange, SwitchesGetLevelsByTheirDistanceFromHosts) {
  const auto [topology, warnings] = arranged(
      "h1 = edge-1 = pod-1 = core\n"
      "h2 = edge-2 = pod-1\n"
      "h3 = edge-3 = pod-2 = core\n");
  EXPECT_EQ(level_of(topology, "edge-3"), 1U);
  EXPECT_EQ(level_of(topology, "pod-2"), 2U);
  EXPECT_EQ(level_of(topology, "core"), 3U);
  EXPECT_THAT(warnings, IsEmpty());
}

TEST(Arrange, ASpineWithAHostOfItsOwnStaysAboveTheLeaves) {
  const auto [topology, warnings] = arranged(
      "h1 = leaf-1 = spine-1\n"
      "h2 = leaf-1 = spine-2\n"
      "h3 = leaf-2 = spine-1\n"
      "h4 = leaf-2 = spine-2\n"
      "h5 = leaf-3 = spine-1\n"
      "h6 = leaf-3 = spine-2\n"
      "h-agg = spine-1\n");
  EXPECT_EQ(level_of(topology, "spine-1"), 2U);
  EXPECT_EQ(level_of(topology, "leaf-3"), 1U);
  EXPECT_EQ(rate_between(topology, "h-agg", "spine-1"), 100 * kGbit);
  EXPECT_THAT(warnings, IsEmpty());
}

TEST(Arrange, LeavesOutLinksAcrossAndSaysSo) {
  const auto [topology, warnings] = arranged(
      "h1 = leaf-1 = spine\n"
      "h2 = leaf-1\n"
      "h3 = leaf-2 = spine\n"
      "h4 = leaf-2\n"
      "leaf-1 = leaf-2\n");
  EXPECT_THAT(topology.links, SizeIs(6));
  EXPECT_THAT(warnings, ElementsAre(AllOf(HasSubstr("1 links between switches of one level were left out"),
                                          HasSubstr("leaf-1 - leaf-2, level 1"), HasSubstr("cycles"))));
}

TEST(Arrange, KeepsTheLargestPartAndNamesWhatItLeavesOut) {
  const auto [topology, warnings] = arranged(
      "h1 = leaf-1\n"
      "h2 = leaf-1\n"
      "h3 = island\n"
      "h4\n"
      "h5 = h6\n"
      "dark = darker\n");
  EXPECT_THAT(topology.hosts, ElementsAre("h1", "h2"));
  EXPECT_THAT(warnings, AllOf(Contains("3 hosts without a link to a switch were left out: h[4-6]"),
                              Contains("1 hosts were left out that the largest part of the fabric does not reach: h3"),
                              Contains("1 links between two hosts were left out"),
                              Contains(HasSubstr("3 switches without a way to a host"))));
}

TEST(Arrange, RefusesAFabricThatIsNoTree) {
  EXPECT_THAT(refused("leaf = spine\n"), HasSubstr("no host is connected to a switch"));
  EXPECT_THAT(refused("h1 = a = b = c = d = e = f = g\n"), HasSubstr("7 levels above the hosts"));
}

TEST(Arrange, SwitchesThatMakeNoTreeAreAGroupOfADragonfly) {
  // Every switch has two hosts and a link to each of seven others. A tree of them would have only three leaves.
  std::string text;
  for (int i = 0; i < 8; ++i) {
    const std::string s = std::to_string(i);
    text += "h" + s + "a = s" + s + "\nh" + s + "b = s" + s + "\n";
    for (int k = 0; k < i; ++k) text += "s" + s + " = s" + std::to_string(k) + "\n";
  }
  const auto [topology, warnings] = arranged(text);
  EXPECT_EQ(topology.fabric, FabricKind::dragonfly);
  EXPECT_THAT(topology.hosts, SizeIs(16));
  EXPECT_THAT(topology.links, SizeIs(16 + 28));
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("form no tree")));
}

TEST(Arrange, NamesAreUniqueAndAccepted) {
  FoundFabric fabric;
  NodeTable table(fabric);
  const auto leaf = table.add("1", {.name = "leaf x/1", .distinct = "0000a1", .is_switch = true, .level = 0});
  const auto twin = table.add("2", {.name = "leaf x/1", .distinct = "0000a2", .is_switch = true, .level = 0});
  const auto host = table.add("3", {.name = "leaf-x-1", .distinct = {}, .is_switch = false, .level = 0});
  ASSERT_TRUE(table.link(*host, *leaf, kGbit) && table.link(*host, *twin, kGbit));
  const auto made = arrange(std::move(fabric), {});
  ASSERT_TRUE(made.has_value());
  EXPECT_THAT(made->topology.hosts, ElementsAre("leaf-x-1"));
  EXPECT_EQ(made->topology.switches[0].name, "leaf-x-1-0000a1");
  EXPECT_EQ(made->topology.switches[1].name, "leaf-x-1-0000a2");
  EXPECT_THAT(made->warnings, ElementsAre(HasSubstr("2 nodes share a name")));
}

}  // namespace
}  // namespace tributary::manager
