#include "aggregator/daemon/settings.h"

#include <gmock/gmock.h>

#include <fstream>

namespace tributary::aggregator {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string mistakes_in(std::string_view yaml, const std::vector<Override>& overrides = {}) {
  const auto settings = read_settings(yaml, "aggregator.yaml", overrides);
  if (settings) return "(taken)";
  EXPECT_EQ(settings.error().code, Errc::bad_config);
  return settings.error().message;
}

TEST(Settings, AnEmptyFileGivesTheDocumentedDefaults) {
  for (const char* const yaml : {"", "# nothing\n", "{}"}) {
    const auto settings = read_settings(yaml, "a.yaml", {});
    ASSERT_TRUE(settings);
    EXPECT_EQ(settings->listen, (std::vector<Endpoint>{{"0.0.0.0", 7471}}));
    EXPECT_EQ(settings->http_listen.port, 7472);
    EXPECT_EQ(settings->memory, 4ULL << 30);
    EXPECT_EQ(settings->children_max, 64U);
  }
}

TEST(Settings, ReadsEveryKind) {
  const auto settings = read_settings(
      "name: leaf-1\nmanager: http://m:7470\nlisten: '[::]:0'\nmemory: 8GiB\nline_rate: 200Gbit/s\n"
      "join_limit: 2s\nworkers: 3\nlog_level: debug\nkeepalive: 0s\n",
      "a.yaml", {});
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->name, "leaf-1");
  EXPECT_EQ(settings->manager, "http://m:7470");
  EXPECT_EQ(settings->listen, (std::vector<Endpoint>{{"::", 0}}));
  EXPECT_EQ(settings->memory, 8ULL << 30);
  EXPECT_EQ(settings->line_rate, 200'000'000'000U);
  EXPECT_EQ(settings->join_limit, 2s);
  EXPECT_EQ(settings->workers, 3U);
  EXPECT_EQ(settings->log_level, LogLevel::debug);
  EXPECT_EQ(settings->keepalive, 0s);
}

TEST(Settings, FlagsGoBeforeTheFile) {
  const auto settings = read_settings("workers: 3\nname: a\n", "a.yaml", {{"workers", "5", "--workers"}});
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->workers, 5U);
  EXPECT_EQ(settings->name, "a");
}

TEST(Settings, SharesOfLinksAreOffUnlessAskedFor) {
  EXPECT_EQ(read_settings("", "a.yaml", {})->link_shares, "off");
  const auto settings = read_settings("link_shares: kernel\nlink_shares_parent: '1:10'\n", "a.yaml", {});
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->link_shares, "kernel");
  EXPECT_EQ(settings->link_shares_parent, "1:10");
  EXPECT_THAT(mistakes_in("link_shares: on\n"), HasSubstr("(allowed: off or kernel)"));
  EXPECT_THAT(mistakes_in("link_shares_parent: root\n"), HasSubstr("it is no handle of a class, such as 1:10"));
}

TEST(Settings, AnUnknownKeyIsNamedWithFileAndLineAndWhatThereIs) {
  EXPECT_THAT(mistakes_in("name: a\nmemroy: 4GiB\n"),
              AllOf(HasSubstr("aggregator.yaml:2: memroy: there is no such setting; is 'memory' meant? (allowed: name, "
                              "host_id, manager"),
                    HasSubstr("log_level")));
}

TEST(Settings, AWrongUnitIsNamedWithFileLineKeyValueAndWhatIsAllowed) {
  EXPECT_EQ(
      mistakes_in("name: a\n\nmemory: 4 gigs\n"),
      "aggregator.yaml:3: memory: '4 gigs': 'gigs' is no unit for it; write a number with B, kB, KiB, MB, MiB, GB, "
      "GiB, TB or TiB, for example 4GiB (allowed: 1MiB to 16TiB)");
  EXPECT_THAT(mistakes_in("memory: 4096\n"), HasSubstr("memory: '4096': it has no unit"));
  EXPECT_THAT(mistakes_in("line_rate: 100\n"), HasSubstr("line_rate: '100': it has no unit"));
  EXPECT_THAT(mistakes_in("join_limit: 5\n"), HasSubstr("join_limit: '5': it has no unit"));
  EXPECT_THAT(mistakes_in("join_limit: 5GiB\n"), HasSubstr("'GiB' is no unit"));
}

TEST(Settings, EveryBoundIsChecked) {
  EXPECT_THAT(mistakes_in("memory: 1KiB\n"), HasSubstr("it is below 1MiB"));
  EXPECT_THAT(mistakes_in("memory: 17TiB\n"), HasSubstr("it is above 16TiB"));
  EXPECT_THAT(mistakes_in("workers: 257\n"), HasSubstr("it is above 256"));
  EXPECT_THAT(mistakes_in("children_max: 0\n"), HasSubstr("it is below 1"));
  EXPECT_THAT(mistakes_in("children_max: 65\n"), HasSubstr("it is above 64"));
  EXPECT_THAT(mistakes_in("workers: -1\n"), HasSubstr("no whole number"));
  EXPECT_THAT(mistakes_in("workers: 2.5\n"), HasSubstr("no whole number"));
  EXPECT_THAT(mistakes_in("workers: 99999999999999999999\n"), HasSubstr("no whole number"));
  EXPECT_THAT(mistakes_in("join_limit: 1ms\n"), HasSubstr("it is below 100ms"));
  EXPECT_THAT(mistakes_in("packet_dscp: 64\n"), HasSubstr("it is above 63"));
  EXPECT_THAT(mistakes_in("packet_datagram_bytes_max: 1231\n"), HasSubstr("it is below 1232"));
  const auto packets = read_settings("packet_dscp: 46\npacket_datagram_bytes_max: 1472\n", "a.yaml", {});
  ASSERT_TRUE(packets);
  EXPECT_EQ(packets->packet_dscp, 46U);
  EXPECT_EQ(packets->packet_datagram_bytes_max, 1472U);
}

TEST(Settings, NamesAddressesUrlsAndLevelsAreChecked) {
  EXPECT_THAT(mistakes_in("name: 'two words'\n"), HasSubstr("other characters than letters, digits"));
  EXPECT_THAT(mistakes_in("name: " + std::string(64, 'x') + "\n"), HasSubstr("longer than 63 bytes"));
  EXPECT_THAT(mistakes_in("listen: 7471\n"), HasSubstr("the port is missing"));
  EXPECT_THAT(mistakes_in("listen: here:99999\n"), HasSubstr("not a number from 0 to 65535"));
  EXPECT_THAT(mistakes_in("listen: '::1:7471'\n"), HasSubstr("needs brackets"));
  EXPECT_THAT(mistakes_in("manager: m:7470\n"), HasSubstr("does not begin with http://"));
  EXPECT_THAT(mistakes_in("manager: https://\n"), HasSubstr("does not begin with http:// or https://"));
  EXPECT_THAT(mistakes_in("advertise: 'a b'\n"), HasSubstr("no host name or address"));
  EXPECT_THAT(mistakes_in("log_level: loud\n"), HasSubstr("(allowed: trace, debug, info, warn or error)"));
}

TEST(Settings, SeveralAddressesAreAListOrSeparatedByCommas) {
  const std::vector<Endpoint> wanted{{"10.0.0.1", 7471}, {"10.1.0.1", 7471}, {"::1", 7471}};
  for (const char* const yaml : {"listen: [10.0.0.1:7471, 10.1.0.1:7471, '[::1]:7471']\n",
                                 "listen:\n  - 10.0.0.1:7471\n  - 10.1.0.1:7471\n  - '[::1]:7471'\n",
                                 "listen: '10.0.0.1:7471, 10.1.0.1:7471,[::1]:7471'\n"}) {
    const auto settings = read_settings(yaml, "a.yaml", {});
    ASSERT_TRUE(settings) << settings.error().message;
    EXPECT_EQ(settings->listen, wanted);
    const auto again = read_settings(print_settings(*settings), "printed", {});
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->listen, wanted);
  }
  const auto flag = read_settings("", "a.yaml", {{"listen", "a:1,b:1", "--listen"}});
  EXPECT_EQ(flag->listen, (std::vector<Endpoint>{{"a", 1}, {"b", 1}}));
  EXPECT_TRUE(read_settings("listen: [a:0, b:0]\nadvertise: [x, y]\n", "a.yaml", {}));
  EXPECT_EQ(read_settings("advertise: x\n", "a.yaml", {})->advertise, std::vector<std::string>{"x"});
}

TEST(Settings, AWrongAddressOfSeveralIsNamedWithWhatToDo) {
  EXPECT_THAT(mistakes_in("listen: [a:1, b]\n"),
              AllOf(HasSubstr("aggregator.yaml:1: listen: 'a:1,b': entry 2, 'b': "), HasSubstr("the port is missing")));
  EXPECT_THAT(mistakes_in("listen: [a:1, b:1, a:1]\n"), HasSubstr("entry 3, 'a:1': the address is in the list twice"));
  EXPECT_THAT(mistakes_in("listen: [a:1, b:2]\n"),
              HasSubstr("entry 2, 'b:2': its port differs from the port of 'a:1'"));
  EXPECT_THAT(mistakes_in("listen: [a:0, b:2]\n"), HasSubstr("give all the same port, or port 0"));
  EXPECT_THAT(mistakes_in("listen: [a:1, '[::]:1']\n"), HasSubstr("means all addresses of this host"));
  EXPECT_THAT(mistakes_in("listen: [0.0.0.0:1, b:1]\n"), HasSubstr("means all addresses of this host"));
  EXPECT_THAT(mistakes_in("listen: [a:1, [b:1]]\n"), HasSubstr("listen: an entry of the list is no single value"));
  EXPECT_THAT(mistakes_in("listen: []\n"), HasSubstr("the port is missing"));
  EXPECT_THAT(mistakes_in("listen: 'a:1,,b:1'\n"), HasSubstr("entry 2, ''"));
  std::string many = "h0:1";
  for (int i = 1; i < 17; ++i) many += ",h" + std::to_string(i) + ":1";
  EXPECT_THAT(mistakes_in("listen: '" + many + "'\n"), HasSubstr("it has 17 entries; there are at most 16"));
  EXPECT_THAT(
      mistakes_in("listen: [a:1, b:1]\nadvertise: x\n"),
      HasSubstr(
          "aggregator.yaml:2: advertise: 'x': it contradicts listen, which has 2, while it names 1 (allowed: one"));
  EXPECT_THAT(mistakes_in("advertise: [x, 'y z']\n"), HasSubstr("entry 2, 'y z': it is no host name"));
  EXPECT_THAT(mistakes_in("listen: [a:1, b:1]\ntransport: dpdk\n"), HasSubstr("dpdk_addresses gives"));
  EXPECT_THAT(mistakes_in("listen: [a:1, b:1]\ntransport: udp\n"), HasSubstr("one port for each worker"));
  EXPECT_TRUE(read_settings("listen: [a:1, b:1]\ntransport: verbs\n", "a.yaml", {}));
}

TEST(Settings, AStructureWhereAValueBelongsIsAMistake) {
  EXPECT_THAT(mistakes_in("name: [a, b]\n"), HasSubstr("aggregator.yaml:1: name: a single value is needed"));
  EXPECT_THAT(mistakes_in("manager:\n  url: x\n"), HasSubstr("manager: a single value is needed"));
  EXPECT_THAT(mistakes_in("name: a\nmemory:\n"), HasSubstr("aggregator.yaml:2: memory: a single value is needed"));
  EXPECT_THAT(mistakes_in("- name\n"), HasSubstr("it has another form"));
  EXPECT_THAT(mistakes_in("just words"), HasSubstr("it has another form"));
  EXPECT_THAT(mistakes_in("? [a]\n: b\n"), HasSubstr("a key is a plain word"));
}

TEST(Settings, AKeyThatIsSetTwiceIsAMistake) {
  EXPECT_THAT(mistakes_in("name: a\nname: b\n"), HasSubstr("aggregator.yaml:2: name: it is set twice"));
}

TEST(Settings, TextThatIsNoYamlIsAMistakeWithItsLine) {
  EXPECT_THAT(mistakes_in("name: a\nlisten: [::]:7471\n"), HasSubstr("aggregator.yaml:2: this is no YAML"));
  EXPECT_THAT(mistakes_in("\tname: a\n"), HasSubstr("this is no YAML"));
}

TEST(Settings, AllMistakesAreToldAtOnceAndFlagsByTheirName) {
  const std::string all = mistakes_in("memroy: 1GiB\nworkers: many\n", {{"listen", "x", "--listen"}});
  EXPECT_THAT(all, AllOf(HasSubstr("aggregator.yaml:1: memroy: there is"),
                         HasSubstr("aggregator.yaml:2: workers: 'many'"), HasSubstr("--listen: 'x'")));
}

TEST(Settings, AMissingFileIsToldWithWhatToDo) {
  const auto settings = load_settings("/nowhere/aggregator.yaml", {});
  ASSERT_FALSE(settings);
  EXPECT_EQ(settings.error().code, Errc::bad_config);
  EXPECT_THAT(settings.error().message,
              HasSubstr("--config: '/nowhere/aggregator.yaml': it cannot be read: No such file"));
  EXPECT_THAT(load_settings("/", {}).error().message, HasSubstr("Is a directory"));
  EXPECT_TRUE(load_settings("", {})) << "no file is asked for: the defaults";
}

TEST(Settings, PrintedSettingsReadBackAsTheSame) {
  auto settings = read_settings(
      "name: a\nlisten: '[::]:0'\nmemory: 3MiB\nbusy_poll: 50us\ntoken_file: '/a b/it''s #1'\nlog_level: error\n",
      "a.yaml", {});
  ASSERT_TRUE(settings) << settings.error().message;
  resolve_host_defaults(*settings);
  const std::string printed = print_settings(*settings);
  const auto again = read_settings(printed, "printed", {});
  ASSERT_TRUE(again) << again.error().message << printed;
  for (const Field& field : fields()) EXPECT_EQ(field.write(*again), field.write(*settings)) << field.key;
}

TEST(Settings, PrintedSettingsTellEveryMeaningBoundAndDefault) {
  const std::string printed = print_settings({});
  for (const Field& field : fields()) {
    EXPECT_FALSE(field.help.empty()) << field.key;
    EXPECT_THAT(printed, HasSubstr("# " + std::string(field.help) + "\n# Allowed: " + field.allowed + ". Default: "));
  }
}

TEST(Settings, TheHostFillsInWhatWasLeftOut) {
  Settings settings;
  resolve_host_defaults(settings);
  EXPECT_FALSE(settings.name.empty());
  EXPECT_FALSE(settings.host_id.empty());
  EXPECT_GE(settings.workers, 1U);
  EXPECT_LE(settings.workers, 4U);
  Settings chosen{.name = "a", .host_id = "b", .workers = 9};
  resolve_host_defaults(chosen);
  EXPECT_EQ(chosen.name, "a");
  EXPECT_EQ(chosen.host_id, "b");
  EXPECT_EQ(chosen.workers, 9U);
}

TEST(Settings, TheSampleConfigurationIsGood) {
  const auto settings = load_settings(TRIBUTARY_SAMPLE_CONFIG, {});
  EXPECT_TRUE(settings) << settings.error().message;
}

}  // namespace
}  // namespace tributary::aggregator
