// All text that the manager reads: quantities, names, topologies, settings; and its errors about wrong text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/unit/manager/fabrics.h"
#include "tree-manager/planner/domains.h"
#include "tree-manager/settings/settings.h"
#include "tree-manager/topology/name_range.h"

namespace tributary::manager {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

template <class T>
std::string complaint(const Result<T>& result) {
  return result ? "no complaint" : result.error().message;
}

TEST(Names, AreExpandedFromRanges) {
  EXPECT_THAT(*expand_names("node-[1-3]"), ElementsAre("node-1", "node-2", "node-3"));
  EXPECT_THAT(*expand_names("n[08-10].rack"), ElementsAre("n08.rack", "n09.rack", "n10.rack"));
  EXPECT_THAT(*expand_names("plain"), ElementsAre("plain"));
  for (const char* text :
       {"", "a b", "a[", "a[]", "a[1]", "a[3-1]", "a[x-y]", "a[1-9999999]", "a[-1-2]", "a[1-2][1-2]", "a\x01"}) {
    EXPECT_FALSE(expand_names(text).has_value()) << text;
  }
  EXPECT_FALSE(check_name(std::string(64, 'x')).has_value());
  EXPECT_TRUE(check_name(std::string(63, 'x')).has_value());
}

struct Wrong {
  const char* text;
  const char* complaint;
};

TEST(Topology, NamesFileLineKeyAndWhatIsAccepted) {
  const std::string good = "switches: [{name: s, level: 1}]\nhosts: [a, b]\n";
  const Wrong cases[] = {
      {"switches: [{name: s, level: 1}]\nhosts: [a]\nlinks:\n  - {from: a, to: s, rate: 100}\n",
       "t.yaml:4: links[0].rate: '100': it has no unit"},
      {"switches: [{name: s, level: 1}]\nhosts: [a]\nlinks:\n  - {from: a, to: s, rate: 1Gbit/s, colour: red}\n",
       "t.yaml:4: links[0].colour: there is no such key (allowed: from, to, rate, interface)"},
      {"switches: [{name: s, level: 1}]\nhosts: [a]\nlink: []\nlinks: [{from: a, to: s, rate: 1Gbit/s}]\n",
       "t.yaml:3: link: there is no such key; is 'links' meant? (allowed: fabric, switches, hosts, links, "
       "aggregators)"},
      {"switches: [{name: s, level: 1}]\nhosts: [a]\nlinks: [{from: b, to: s, rate: 1Gbit/s}]\n",
       "t.yaml:3: links[0].from: no host or switch has the name 'b'"},
      {"switches: [{name: s, level: 1}]\nhosts: [a, a]\nlinks: []\n", "t.yaml:2: hosts[1]: the name 'a' is used twice"},
      {"switches: [{name: s, level: 1}]\nhosts: [a, b]\nlinks: [{from: a, to: s, rate: 1Gbit/s}]\n",
       "t.yaml:2: hosts: host 'b' has no link"},
      {"switches: [{name: s, level: 1}]\nhosts: [a, b]\nlinks: [{from: a, to: b, rate: 1Gbit/s}]\n",
       "t.yaml:3: links[0]: a link between two hosts"},
      {"switches: [{name: s, level: 1}, {name: t, level: 1}]\nhosts: []\nlinks: [{from: s, to: t, rate: 1Gbit/s}]\n",
       "t.yaml:3: links[0]: a link between two switches of level 1"},
      {"switches: [{name: s, level: 1}, {name: t, level: 1}]\nhosts: [a]\nlinks: [{from: a, to: s, rate: 1Gbit/s}]\n",
       "t.yaml:3: links: switch 't' is not connected with switch 's'"},
      {"switches: [{name: s, level: 9}]\nhosts: []\nlinks: []\n",
       "t.yaml:1: switches[0].level: '9': it is no whole number from 1 to 6"},
      {"switches: [{name: s}]\nhosts: []\nlinks: []\n",
       "t.yaml:1: switches[0].level: the key is missing (allowed: 1 where"},
      {"switches: [{name: s, level: 1}]\nhosts: [a]\nlinks: [{from: a, to: s}]\n",
       "t.yaml:3: links[0].rate: the key is missing (allowed: a rate"},
      {"switches: [{name: s, level: 1}]\nhosts: [a]\nlinks: [{from: a, to: s, rate: 0bit/s}]\n",
       "t.yaml:3: links[0].rate: '0bit/s': a rate of 0"},
      {"switches: [{name: s, level: 1}]\nhosts: [a]\nlinks: [{from: a, to: s, rate: 1Gbit/s}]\naggregators: [{name: x, "
       "host: y}]\n",
       "t.yaml:4: aggregators[0].host: no host has the name 'y'"},
      {"switches: []\nhosts: []\nlinks: []\n", "a fat-tree has at least one switch"},
      {"fabric: torus\n",
       "t.yaml:1: fabric: 'torus': there is no such fabric (allowed: flat, fat-tree, nested, "
       "rail-optimised, dragonfly, dragonfly+)"},
      {"fabric: flat\nswitches: []\n",
       "t.yaml:2: switches: there is no such key (allowed: fabric, assumed_rate, aggregators)"},
      {"fabric: flat\nassumed_rate: 10\n", "t.yaml:2: assumed_rate: '10': it has no unit"},
      {"- a\n", "t.yaml:1: it has another form (allowed: a mapping"},
      {"hosts: [a\n", "this is no YAML"},
      {"hosts: 3\nswitches: x\nlinks: y\n", "t.yaml:2: switches: it has another form (allowed: a list"},
      {"fabric: flat\nfabric: flat\n", "this key stands here twice"},
  };
  for (const Wrong& it : cases)
    EXPECT_THAT(complaint(parse_topology(it.text, "t.yaml")), HasSubstr(it.complaint)) << it.text;
  EXPECT_TRUE(parse_topology(good + "links: [{from: [a, b], to: s, rate: 1Gbit/s}]\n", "t.yaml").has_value());
  EXPECT_THAT(complaint(load_topology("/nonexistent.yaml")),
              HasSubstr("topology file: '/nonexistent.yaml': it cannot be read"));
}

TEST(Topology, SurvivesAnyText) {
  std::mt19937 random(7);
  const std::string seed = leaf_spine_yaml(2, 2, 1);
  for (int round = 0; round < 3000; ++round) {
    std::string text = seed;
    for (int edits = static_cast<int>(random() % 6) + 1; edits > 0; --edits) {
      const std::size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, random() % 8);
          break;
        default:
          text.insert(at, 1, "[]{}:,-&*!|>'\"%@\n"[random() % 17]);
      }
      if (text.empty()) text = "x";
    }
    const auto topology = parse_topology(text, "t.yaml");
    if (topology) (void)make_fabric(*topology);
  }
}

TEST(Domains, AreLeavesPodsAndTheWhole) {
  const auto topology = parse_topology(leaf_spine_yaml(3, 2, 2), "t.yaml");
  ASSERT_TRUE(topology.has_value());
  const DomainTree tree(*topology);
  ASSERT_THAT(tree.domains(), SizeIs(4));
  for (std::uint32_t leaf = 0; leaf < 3; ++leaf) {
    EXPECT_EQ(tree.domains()[leaf].level, 1U);
    EXPECT_EQ(tree.domains()[leaf].parent, tree.root());
    EXPECT_EQ(tree.domains()[leaf].uplink_bits_per_second, 2 * 400'000'000'000U) << "the leaf has links to both spines";
  }
  EXPECT_EQ(tree.domains()[tree.root()].level, 2U);
  EXPECT_EQ(tree.place("agg-spine-1").domain, tree.root());
  EXPECT_EQ(tree.place("node-0").domain, tree.place("agg-leaf-0").domain);
  EXPECT_NE(tree.place("node-0").domain, tree.place("node-2").domain);
  EXPECT_EQ(tree.place("stranger").domain, kNoDomain);
}

TEST(Domains, JoinTheLeavesOfAHostWithSeveralRails) {
  const auto topology = parse_topology(
      "switches: [{name: rail-1, level: 1}, {name: rail-2, level: 1}, {name: other, level: 1}, {name: top, level: 2}]\n"
      "hosts: [a, b, c]\nlinks:\n  - {from: [a, b], to: [rail-1, rail-2], rate: 100Gbit/s}\n  - {from: c, to: other, "
      "rate: 100Gbit/s}\n"
      "  - {from: [rail-1, rail-2, other], to: top, rate: 400Gbit/s}\n",
      "t.yaml");
  ASSERT_TRUE(topology.has_value()) << topology.error().message;
  const DomainTree tree(*topology);
  EXPECT_THAT(tree.domains(), SizeIs(3));
  EXPECT_EQ(tree.place("a").domain, tree.place("b").domain);
  EXPECT_EQ(tree.place("a").rate_bits_per_second, 200'000'000'000U);
  EXPECT_EQ(tree.domains()[tree.place("a").domain].uplink_bits_per_second, 800'000'000'000U);
}

TEST(Domains, PutEveryHostOfAFlatFabricInOnePlace) {
  const DomainTree tree{Topology{}};
  EXPECT_EQ(tree.place("anybody").domain, tree.root());
}

TEST(Settings, ReadWhatTheyPrint) {
  Settings settings;
  settings.listen = {"::1", 1234};
  settings.group_lease = 33s;
  settings.segment_bytes = 128U << 10;
  settings.reads_need_token = true;
  const std::string text = print(settings);
  const auto again = parse_settings(text, "s.yaml");
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ(print(*again), text);
  EXPECT_THAT(text,
              AllOf(HasSubstr("group_lease: 33s"), HasSubstr("# Allowed: 1s to 1h, in whole seconds. Default: 15s"),
                    HasSubstr("listen: '[::1]:1234'")));
}

TEST(Settings, AllowPlainHttpOnlyOnLoopbackUnlessASettingAllowsMore) {
  const auto complaint_of = [](const std::string& yaml) {
    const auto ok = check_http(*parse_settings(yaml, "s.yaml"));
    return ok ? "" : ok.error().message;
  };
  for (const char* host : {"127.0.0.1", "127.8.9.1", "localhost", "'[::1]"}) {
    const std::string quote = host[0] == '\'' ? "'" : "";
    EXPECT_EQ(complaint_of("listen: " + std::string(host) + ":7470" + quote + "\n"), "") << host;
  }
  for (const char* host : {"0.0.0.0", "'[::]", "10.1.2.3", "manager", "'[::ffff:127.0.0.1]"}) {
    const std::string listen = "listen: " + std::string(host) + ":7470" + (host[0] == '\'' ? "'" : "") + "\n";
    EXPECT_THAT(complaint_of(listen), HasSubstr("allow_plain_http: true")) << host;
    EXPECT_EQ(complaint_of(listen + "allow_plain_http: true\n"), "") << host;
    EXPECT_EQ(complaint_of(listen + "tls_cert: /c\ntls_key: /k\n"), "") << host;
  }
  EXPECT_THAT(complaint_of("tls_ca: /ca\n"), HasSubstr("tls_cert: it is missing"));
  EXPECT_THAT(complaint_of("tls_cert: /c\ntls_key: /k\ncertificate_file: /f\n"),
              HasSubstr("no certificate without tls_ca"));
}

TEST(Settings, TakeFilesOfTlsOnlyForAnEtcdThatSpeaksTls) {
  const auto complaint_of = [](const std::string& yaml) {
    const auto read = parse_settings(yaml, "s.yaml");
    return read ? "" : read.error().message;
  };
  EXPECT_THAT(complaint_of("store: etcds://e1\n"), HasSubstr("etcds:// needs the CA of etcd's certificates"));
  EXPECT_THAT(complaint_of("store: etcd://e1\nstore_tls_ca: /ca\n"), HasSubstr("for an etcd without TLS"));
  EXPECT_EQ(complaint_of("store: etcds://e1\nstore_tls_ca: /ca\nstore_tls_cert: /c\nstore_tls_key: /k\n"), "");
}

TEST(Settings, TakeAnEmptyFileAsAllDefaults) {
  const auto settings = parse_settings("# nothing\n", "s.yaml");
  ASSERT_TRUE(settings.has_value());
  EXPECT_EQ(print(*settings), print(Settings{}));
}

TEST(Settings, NameFileLineKeyAndWhatIsAccepted) {
  const Wrong cases[] = {
      {"listen: 1.2.3.4:80\ngroup_leas: 3s\n",
       "s.yaml:2: group_leas: there is no such setting; is 'group_lease' meant? (allowed: listen,"},
      {"\ngroup_lease: 3\n",
       "s.yaml:2: group_lease: '3': it has no unit; write a number with us, ms, s, min or h, for example 10s"},
      {"group_lease: 3KiB\n", "s.yaml:1: group_lease: '3KiB': 'KiB' is no unit for it"},
      {"group_lease: 5h\n", "s.yaml:1: group_lease: '5h': it is above 1h (allowed: 1s to 1h, in whole seconds)"},
      {"group_lease: 1500ms\n",
       "s.yaml:1: group_lease: '1500ms': it has a part of a second (allowed: 1s to 1h, in whole seconds)"},
      {"segment_bytes: 100100B\n",
       "s.yaml:1: segment_bytes: '100100B': it is no multiple of 64B (allowed: 0B, or a multiple of 64B from "},
      {"window: 257\n", "s.yaml:1: window: '257': it is above 256 (allowed: 0 to 256)"},
      {"listen: 7470\n", "s.yaml:1: listen: '7470': '7470' is no address: the port is missing"},
      {"log_level: loud\n",
       "s.yaml:1: log_level: 'loud': it is none of these (allowed: trace, debug, info, warn or error)"},
      {"reads_need_token: yes\n", "'yes': it is neither true nor false (allowed: true or false)"},
      {"threads: [1]\n", "s.yaml:1: threads: a single value is needed (allowed: 1 to 64)"},
      {"threads: 1\nthreads: 2\n", "s.yaml:2: threads: it is set twice"},
      {"just text\n", "s.yaml:1: it has another form (allowed: lines 'key: value')"},
      {"threads: 0\nwindow: 257\n",
       "s.yaml:1: threads: '0': it is below 1 (allowed: 1 to 64)\ns.yaml:2: window: '257'"},
      {"a: [\n", "this is no YAML"},
  };
  for (const Wrong& it : cases) {
    EXPECT_THAT(complaint(parse_settings(it.text, "s.yaml")), HasSubstr(it.complaint)) << it.text;
  }
  EXPECT_THAT(complaint(load_settings("/nonexistent.yaml")),
              StartsWith("--config: '/nonexistent.yaml': it cannot be read: No such file"));
}

TEST(SampleFiles, AreValid) {
  const std::string folder = TRIBUTARY_CONFIG_FOLDER;
  EXPECT_EQ(complaint(load_settings(folder + "/manager.yaml")), "no complaint");
  for (const char* name : {"topology.yaml", "topology-nested.yaml", "topology-rails.yaml", "topology-dragonfly.yaml"})
    EXPECT_EQ(complaint(load_topology(folder + "/" + name)), "no complaint") << name;
  const auto demo = load_topology(folder + "/topology-demo.yaml");
  ASSERT_TRUE(demo.has_value()) << demo.error().message;
  const auto hosts = std::vector<std::string>{"node-1", "node-2", "node-3", "node-4"};
  std::vector<PlanAggregator> aggregators;
  for (const AggregatorSite& site : demo->aggregators) {
    aggregators.push_back(aggregator_on(site.host));
    aggregators.back().name = site.name;
  }
  const Plan plan = make_fabric(*demo)->plan(
      {.hosts = hosts, .aggregators = aggregators, .lanes = 2, .window = 32, .segment_bytes = 65536}, {});
  ASSERT_THAT(plan.lanes, SizeIs(2)) << plan.reason;
  for (const LaneTree& lane : plan.lanes) {
    EXPECT_EQ(lane.levels, 2U);
    EXPECT_EQ(lane.nodes[lane.root].aggregator, "spine-agg");
    EXPECT_THAT(lane.nodes, SizeIs(3));
  }
}

}  // namespace
}  // namespace tributary::manager
