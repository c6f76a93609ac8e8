#include "tree-manager/topology/import/lldp.h"

#include "tests/unit/topology/imports.h"

namespace tributary::manager {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

LldpText answer(const std::string& machine, const std::string& file) {
  return {.file = file, .machine = machine, .text = recorded(file)};
}

Imported joined(const std::vector<LldpText>& texts, const ImportOptions& options = {}) {
  auto result = import_topology(texts, options);
  EXPECT_TRUE(result.has_value()) << result.error().message;
  return result ? std::move(*result) : Imported{};
}

TEST(Lldp, JoinsTheAnswersOfHostsAndSwitches) {
  const auto [topology, warnings] = joined({answer("node-1", "lldp-node-1.json"), answer("node-2", "lldp-node-2.json"),
                                            answer("sw-1", "lldp-sw-1.json"), answer("", "lldp-spine-1.json0")});
  EXPECT_THAT(topology.hosts, ElementsAre("node-1", "node-2"));
  EXPECT_EQ(level_of(topology, "sw-1"), 1U);
  EXPECT_EQ(level_of(topology, "spine-1"), 2U) << "the switch's own answer has its name";
  EXPECT_EQ(rate_between(topology, "node-2", "sw-1"), 10 * kGbit) << "both ends tell of one cable";
  EXPECT_EQ(rate_between(topology, "sw-1", "spine-1"), 10 * kGbit);
  EXPECT_THAT(warnings, IsEmpty());
}

TEST(Lldp, ReadsBothFormsAlike) {
  const auto one = joined({answer("node-1", "lldp-node-1.json")}).topology;
  const auto other = joined({answer("node-1", "lldp-node-1.json0")}).topology;
  EXPECT_EQ(topology_yaml(one), topology_yaml(other));
}

TEST(Lldp, AMachineThatForwardsIsAHostIfItIsNamedAsOne) {
  ImportOptions options;
  options.lldp.hosts = {"spine-1"};
  const auto topology = joined({answer("sw-1", "lldp-sw-1.json")}, options).topology;
  EXPECT_THAT(topology.hosts, ElementsAre("node-1", "node-2", "spine-1"));
}

std::string neighbour(const std::string& port, const std::string& name, const std::string& kind) {
  return R"({")" + port + R"(": {"via": "LLDP", "chassis": {")" + name +
         R"(": {"id": {"type": "mac", "value": "02:00"}, "capability": {"type": "Bridge", "enabled": true}}}, "port": {"auto-negotiation": {"current": ")" +
         kind + R"("}}}})";
}

LldpText host(const std::string& name, const std::string& interfaces) {
  return {.file = name, .machine = name, .text = R"({"lldp": {"interface": [)" + interfaces + "]}}"};
}

TEST(Lldp, ABondAddsUpAndRailsAreInterfaces) {
  const std::string two =
      neighbour("eth0", "leaf-a", "100GbaseCR4 - x") + "," + neighbour("eth1", "leaf-b", "100GbaseCR4 - x");
  const std::string twice =
      neighbour("eth0", "leaf-a", "25GbaseCR - x") + "," + neighbour("eth1", "leaf-a", "25GbaseCR - x");
  const std::vector<LldpText> texts{host("h1", two), host("h2", two), host("h3", twice)};
  const auto bond = joined(texts).topology;
  EXPECT_EQ(bond.fabric, FabricKind::fat_tree);
  EXPECT_THAT(bond.interfaces, IsEmpty());
  EXPECT_EQ(rate_between(bond, "h3", "leaf-a"), 50 * kGbit);
  ImportOptions rails;
  rails.lldp.rails = true;
  const auto apart = joined({texts[0], texts[1]}, rails).topology;
  EXPECT_EQ(apart.fabric, FabricKind::rail_optimised);
  EXPECT_THAT(apart.rails, ElementsAre("eth0", "eth1"));
}

TEST(Lldp, NamesFilesThatAreWrong) {
  const ImportOptions lldp{.format = ImportFormat::lldp};
  EXPECT_THAT(complaint("{\"lldp\":\n {]}", lldp), HasSubstr("t:2: this is no JSON"));
  EXPECT_THAT(complaint("{}", lldp), HasSubstr("neither \"lldp\" nor \"local-chassis\""));
  EXPECT_THAT(complaint("[1]", lldp), HasSubstr("no object of JSON"));
  EXPECT_THAT(complaint(R"({"lldp": {}})", lldp), HasSubstr("no neighbour is here"));
  EXPECT_THAT(complaint(R"({"lldp": {"interface": {"e": {"via": "LLDP"}}}})", lldp),
              HasSubstr("neither a name nor an identity"));
  const auto nameless = import_topology({{"standard input", "", recorded("lldp-sw-1.json")}}, lldp);
  ASSERT_FALSE(nameless.has_value());
  EXPECT_THAT(nameless.error().message, HasSubstr("nothing says whose neighbours these are"));
}

TEST(Lldp, RatesFollowFromKindsOfPorts) {
  EXPECT_EQ(ethernet_rate("10GigBaseLR - R fiber over 1310 nm optics"), 10 * kGbit);
  EXPECT_EQ(ethernet_rate("100GbaseCR4 - 4-lane"), 100 * kGbit);
  EXPECT_EQ(ethernet_rate("1000BaseTFD - Four-pair Category 5 UTP, full duplex mode"), kGbit);
  EXPECT_EQ(ethernet_rate("2.5GbaseT"), 5 * kGbit / 2);
  for (const char* text : {"", "unknown", "Gbase", "10", "-5Gbase", "1e9Gbase"})
    EXPECT_EQ(ethernet_rate(text), 0U) << text;
}

}  // namespace
}  // namespace tributary::manager
