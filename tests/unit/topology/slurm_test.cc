#include "tests/unit/topology/imports.h"
#include "tree-manager/topology/import/slurm_tree.h"

namespace tributary::manager {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<std::string> expanded(std::string_view text, std::size_t most = 1000) {
  std::vector<std::string> names;
  const auto ok = expand_hostlist(text, most, names);
  return ok ? names : std::vector{ok.error().message};
}

TEST(SlurmHostlist, ExpandsRangesListsAndSeveralBrackets) {
  EXPECT_THAT(expanded("tux[0-2,12],login"), ElementsAre("tux0", "tux1", "tux2", "tux12", "login"));
  EXPECT_THAT(expanded("n[008-010]"), ElementsAre("n008", "n009", "n010"));
  EXPECT_THAT(expanded("r[0-1]n[1-2]x"), ElementsAre("r0n1x", "r0n2x", "r1n1x", "r1n2x"));
  EXPECT_THAT(expanded(" a , ,b "), ElementsAre("a", "b"));
  EXPECT_THAT(expanded(""), IsEmpty());
}

TEST(SlurmHostlist, RefusesATextThatIsNoListOrTooLong) {
  EXPECT_THAT(expanded("n[1-"), ElementsAre(HasSubstr("'[' without its ']'")));
  EXPECT_THAT(expanded("n]1"), ElementsAre(HasSubstr("']' without its '['")));
  EXPECT_THAT(expanded("n[3-1]"), ElementsAre(HasSubstr("ascending numbers")));
  EXPECT_THAT(expanded("n[x]"), ElementsAre(HasSubstr("neither a number")));
  EXPECT_THAT(expanded("n[0-1000]"), ElementsAre(HasSubstr("too many names")));
  EXPECT_THAT(expanded("n[0-99]m[0-99]"), ElementsAre(HasSubstr("too many names")));
  EXPECT_THAT(expanded("n[0-4294967295]"), ElementsAre(HasSubstr("ascending numbers")));
  EXPECT_THAT(expanded("a[1-2]b[1-2]c[1-2]d[1-2]e[1-2]"), ElementsAre(HasSubstr("more than 4 brackets")));
}

constexpr const char* kTree = R"(# Two leaves and a spine.
switchname=leaf0 NODES=n[0-3] LinkSpeed=200Gbit/s
SwitchName=leaf1 \
  Nodes="n[4-5],n[6-7]"   # the second one
SwitchName=spine Switches=leaf[0-1]
)";

TEST(SlurmConf, MakesATreeOfSwitchesAndNodes) {
  const auto [topology, warnings] = imported(kTree, {.rates = {.host_bits_per_second = 100 * kGbit}});
  EXPECT_EQ(topology.fabric, FabricKind::fat_tree);
  EXPECT_THAT(topology.hosts, ElementsAre("n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7"));
  EXPECT_EQ(level_of(topology, "spine"), 2U);
  EXPECT_EQ(rate_between(topology, "n3", "leaf0"), 200 * kGbit);
  EXPECT_EQ(rate_between(topology, "n4", "leaf1"), 100 * kGbit);
  EXPECT_EQ(rate_between(topology, "leaf0", "spine"), 800 * kGbit) << "the link carries what the hosts below can send";
  EXPECT_EQ(rate_between(topology, "leaf1", "spine"), 400 * kGbit);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("2 links between switches have no rate")));
}

TEST(SlurmConf, SaysThatItAssumesRates) {
  const auto [topology, warnings] = imported("SwitchName=s Nodes=a,b LinkSpeed=100\n");
  EXPECT_EQ(rate_between(topology, "a", "s"), kAssumedRateDefault);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("LinkSpeed were left out"), HasSubstr("2 links have no rate")));
}

TEST(SlurmConf, TakesIncludedFiles) {
  const ImportOptions options{.included = [](const std::string& name) -> Result<std::string> {
    if (name == "leaves.conf") return std::string("SwitchName=leaf0 Nodes=a\nSwitchName=leaf1 Nodes=b\n");
    if (name == "itself.conf") return std::string("Include itself.conf\n");
    return fail(Errc::io, "no such file");
  }};
  EXPECT_THAT(imported("include leaves.conf\nSwitchName=s Switches=leaf[0-1]\n", options).topology.hosts, SizeIs(2));
  EXPECT_THAT(complaint("SwitchName=x Nodes=c\nInclude none.conf\n", options),
              HasSubstr("t:2: the included file 'none.conf': no such"));
  EXPECT_THAT(complaint("SwitchName=x Nodes=c\nInclude itself.conf\n", options),
              HasSubstr("t:2: files include each other 8 deep"));
  EXPECT_THAT(complaint("SwitchName=x Nodes=c\nInclude a\n"), HasSubstr("it is not at hand"));
}

TEST(SlurmConf, BlocksAreSwitchesBelowOneOfTheirOwn) {
  const auto [topology, warnings] = imported("BlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=n[3-4]\nBlockSizes=2,4\n");
  EXPECT_EQ(level_of(topology, "b2"), 1U);
  EXPECT_EQ(rate_between(topology, "b2", "between-blocks"), 2 * kAssumedRateDefault);
  EXPECT_THAT(warnings, Contains(HasSubstr("'between-blocks' stands for all of these")));
}

TEST(SlurmConf, NamesLinesThatAreWrong) {
  struct Case {
    std::string text;
    std::string complaint;
  };
  const Case cases[] = {
      {"SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2\n", "t:2: the switch 'a' stands here twice"},
      {"SwitchName=a Switches=b\n", "t:1: the switch 'b' below 'a' has no line of its own"},
      {"SwitchName=a Switches=b\nSwitchName=b Switches=a\n", "or it lies below itself"},
      {"SwitchName=a Nodes=n[2-1]\n", "t:1: '2-1' is neither a number nor a range"},
      {"SwitchName=a Nodes=n1\nBlockName=b Nodes=n2\n", "t:2: switches and blocks stand in one file"},
      {"RingName=a Nodes=n1\n", "t:1: topology/ring is no fabric known here"},
      {"SwitchName=a\n", "no host is connected to a switch"},
  };
  for (const Case& it : cases) EXPECT_THAT(complaint(it.text), HasSubstr(it.complaint)) << it.text;
  const ImportOptions conf{.format = ImportFormat::slurm_conf};
  EXPECT_THAT(complaint("# nothing\n", conf), HasSubstr("t:1: no SwitchName= or BlockName= is here"));
}

constexpr const char* kYaml = R"(---
- topology: racks
  cluster_default: false
  block:
    block_sizes: [2, 4]
    blocks:
      - block: b1
        nodes: node[01-02]
      - {block: b2, nodes: "node[03-04]"}
- topology: fabric
  cluster_default: true
  tree:
    switches:
      - switch: root
        children: s[1-2]
      - switch: s1
        nodes: node[01-02]
      - switch: s2
        nodes: node[03-04]
- topology: none
  cluster_default: false
  flat: true
)";

TEST(SlurmYaml, TakesTheClustersDefaultOrTheOneThatIsNamed) {
  const auto tree = imported(kYaml).topology;
  EXPECT_EQ(level_of(tree, "root"), 2U);
  EXPECT_GT(rate_between(tree, "node03", "s2"), 0U);
  const auto blocks = imported(kYaml, {.slurm_topology = "racks"}).topology;
  EXPECT_GT(rate_between(blocks, "node03", "b2"), 0U);
  const auto flat = imported(kYaml, {.rates = {.host_bits_per_second = 25 * kGbit}, .slurm_topology = "none"}).topology;
  EXPECT_EQ(flat.fabric, FabricKind::flat);
  EXPECT_EQ(flat.assumed_rate_bits_per_second, 25 * kGbit);
  EXPECT_THAT(complaint(kYaml, {.slurm_topology = "other"}), HasSubstr("no topology has the name 'other'"));
}

TEST(SlurmYaml, NamesLinesThatAreWrong) {
  const ImportOptions yaml{.format = ImportFormat::slurm_yaml};
  EXPECT_THAT(complaint("- topology: a\n  tree:\n    switches: 5\n", yaml),
              HasSubstr("t:3: a list 'switches' is expected"));
  EXPECT_THAT(complaint("- topology: a\n  tree:\n    switches:\n      - nodes: a\n", yaml),
              HasSubstr("t:4: 'switch: NAME' is missing"));
  EXPECT_THAT(complaint("- topology: a\n  ring: x\n", yaml), HasSubstr("no other fabric is known"));
  EXPECT_THAT(complaint("{", yaml), HasSubstr("t:"));
  EXPECT_THAT(complaint("5", yaml), HasSubstr("t:1: a list of topologies is expected"));
}

}  // namespace
}  // namespace tributary::manager
