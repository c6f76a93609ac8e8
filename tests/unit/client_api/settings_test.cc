#include "client/api/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>

#include "service-kit/variables.h"

namespace tributary::client {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

Result<ClientSettings> load(const Variables& variables, const tributary_config* config = nullptr) {
  return load_settings(config, [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

std::string error_of(const Result<ClientSettings>& settings) {
  if (settings) return "no error";
  EXPECT_EQ(settings.error().code, Errc::bad_config) << settings.error().message;
  return settings.error().message;
}

/// A configuration file; its destructor removes the file.
class File {
 public:
  explicit File(const std::string& content) : name_(::testing::TempDir() + "/tributary-settings-test.yaml") {
    std::ofstream(name_) << content;
  }
  ~File() { std::remove(name_.c_str()); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] Result<ClientSettings> load() const { return client::load({{"TRIBUTARY_CONFIG", name_}}); }

 private:
  std::string name_;
};

TEST(Settings, SettingsOfPacketsOverUdpAreRead) {
  const auto usual = load({});
  ASSERT_TRUE(usual);
  EXPECT_TRUE(usual->udp.ecn);
  EXPECT_EQ(usual->udp.dscp, 0);
  EXPECT_EQ(usual->udp.datagram_bytes_max, 16384U);
  EXPECT_EQ(usual->udp.busy_poll, std::chrono::microseconds(0));
  EXPECT_EQ(usual->udp.delay_target, std::chrono::microseconds(500));
  const auto s = load({{"TRIBUTARY_UDP_BUSY_POLL", "70"},
                       {"TRIBUTARY_UDP_DATAGRAM_BYTES_MAX", "1472"},
                       {"TRIBUTARY_UDP_ECN", "off"},
                       {"TRIBUTARY_UDP_DSCP", "46"},
                       {"TRIBUTARY_UDP_DELAY_TARGET", "2000"}});
  ASSERT_TRUE(s) << s.error().message;
  EXPECT_FALSE(s->udp.ecn);
  EXPECT_EQ(s->udp.dscp, 46);
  EXPECT_EQ(s->udp.datagram_bytes_max, 1472U);
  EXPECT_EQ(s->udp.busy_poll, std::chrono::microseconds(70));
  EXPECT_EQ(s->udp.delay_target, std::chrono::microseconds(2000));
  for (const auto& [name, value] : {std::pair{"TRIBUTARY_UDP_BUSY_POLL", "1000001"},
                                    {"TRIBUTARY_UDP_DATAGRAM_BYTES_MAX", "1231"},
                                    {"TRIBUTARY_UDP_DATAGRAM_BYTES_MAX", "65001"},
                                    {"TRIBUTARY_UDP_ECN", "auto"},
                                    {"TRIBUTARY_UDP_DSCP", "64"},
                                    {"TRIBUTARY_UDP_DSCP", "-1"},
                                    {"TRIBUTARY_UDP_DELAY_TARGET", "9"},
                                    {"TRIBUTARY_UDP_DELAY_TARGET", "500us"}}) {
    EXPECT_THAT(error_of(load({{name, value}})), AllOf(HasSubstr(name), HasSubstr(value))) << name;
  }
}

TEST(Settings, HaveTheirDefaultsWhenNothingIsSet) {
  const auto s = load({});
  ASSERT_TRUE(s) << s.error().message;
  EXPECT_EQ(s->manager, "");
  EXPECT_EQ(s->path, PathMode::automatic);
  EXPECT_THAT(s->transports, ElementsAre());
  EXPECT_EQ(s->lanes, 0U) << "auto";
  EXPECT_EQ(s->timeout, std::chrono::seconds(300));
  EXPECT_EQ(s->log, LogLevel::info);
  EXPECT_EQ(s->job, "default");
  EXPECT_NE(s->host_id, "");
}

TEST(Settings, HaveVariablesThatTheTableOfNamesKnows) {
  const auto known = service::known_variables();
  for (const SettingHelp& help : setting_help())
    EXPECT_NE(std::ranges::find(known, help.variable), known.end()) << help.variable;
}

TEST(Settings, MayRequireTheNetwork) {
  EXPECT_FALSE(load({})->require_in_network);
  EXPECT_TRUE(load({{"TRIBUTARY_REQUIRE", "in-network"}})->require_in_network);
  EXPECT_FALSE(load({{"TRIBUTARY_REQUIRE", "none"}})->require_in_network);
  EXPECT_THAT(error_of(load({{"TRIBUTARY_REQUIRE", "yes"}})),
              AllOf(HasSubstr("TRIBUTARY_REQUIRE"), HasSubstr("'yes'")));
  tributary_config config = TRIBUTARY_CONFIG_INITIALIZER;
  config.require = "in-network";
  EXPECT_TRUE(load({{"TRIBUTARY_REQUIRE", "none"}}, &config)->require_in_network);
  EXPECT_THAT(error_of(load({{"TRIBUTARY_PATH", "fallback"}}, &config)),
              HasSubstr("tributary_config.require: 'in-network': it contradicts TRIBUTARY_PATH, whose 'fallback' "
                        "forbids trees (allowed: "));
}

TEST(Settings, NameTheNumerics) {
  EXPECT_EQ(load({})->numerics, Numerics::fast);
  EXPECT_EQ(load({{"TRIBUTARY_NUMERICS", "exact"}})->numerics, Numerics::exact);
  EXPECT_EQ(load({{"TRIBUTARY_NUMERICS", "wide"}})->numerics, Numerics::exact);
  EXPECT_THAT(error_of(load({{"TRIBUTARY_NUMERICS", "narrow"}})),
              AllOf(HasSubstr("TRIBUTARY_NUMERICS"), HasSubstr("'narrow'"), HasSubstr("fast, wide or exact")));
  tributary_config config = TRIBUTARY_CONFIG_INITIALIZER;
  EXPECT_EQ(load({{"TRIBUTARY_NUMERICS", "exact"}}, &config)->numerics, Numerics::exact);
  config.numerics = "fast";
  EXPECT_EQ(load({{"TRIBUTARY_NUMERICS", "exact"}}, &config)->numerics, Numerics::fast);
  config.numerics = "narrow";
  EXPECT_THAT(error_of(load({}, &config)), HasSubstr("tributary_config.numerics: 'narrow'"));
}

TEST(Settings, SayWhatIsDoneWithValues) {
  EXPECT_EQ(load({})->check_values, ValueCheck::off);
  EXPECT_EQ(load({{"TRIBUTARY_CHECK_VALUES", "count"}})->check_values, ValueCheck::count);
  EXPECT_THAT(error_of(load({{"TRIBUTARY_CHECK_VALUES", "nan"}})),
              AllOf(HasSubstr("TRIBUTARY_CHECK_VALUES"), HasSubstr("'nan'"), HasSubstr("off, count or nan-fails")));
  tributary_config config = TRIBUTARY_CONFIG_INITIALIZER;
  config.check_values = "nan-fails";
  EXPECT_EQ(load({{"TRIBUTARY_CHECK_VALUES", "off"}}, &config)->check_values, ValueCheck::nan_fails);
}

TEST(Settings, MayForbidSharedMemoryForOneCommunicator) {
  tributary_config config = TRIBUTARY_CONFIG_INITIALIZER;
  EXPECT_TRUE(load({}, &config)->local);
  config.local = "off";
  EXPECT_FALSE(load({{"TRIBUTARY_LOCAL", "auto"}}, &config)->local);
}

TEST(Settings, ComeFromTheEnvironment) {
  const auto s = load({{"TRIBUTARY_MANAGER", "http://[::1]:7470"},
                       {"TRIBUTARY_PATH", "in-network"},
                       {"TRIBUTARY_TRANSPORT", "verbs, tcp"},
                       {"TRIBUTARY_LANES", "16"},
                       {"TRIBUTARY_TIMEOUT", "2.5"},
                       {"TRIBUTARY_IFNAME", "eth0"},
                       {"TRIBUTARY_HOST_ID", "rack3-host7"},
                       {"TRIBUTARY_LOG", "trace"},
                       {"TRIBUTARY_TOKEN_FILE", "/run/token"},
                       {"TRIBUTARY_JOB", "train-1"}});
  ASSERT_TRUE(s) << s.error().message;
  EXPECT_EQ(s->manager, "http://[::1]:7470");
  EXPECT_EQ(s->path, PathMode::in_network);
  EXPECT_THAT(s->transports, ElementsAre("verbs", "tcp"));
  EXPECT_EQ(s->lanes, 16U);
  EXPECT_EQ(s->timeout, std::chrono::milliseconds(2500));
  EXPECT_EQ(s->interface_name, "eth0");
  EXPECT_EQ(s->host_id, "rack3-host7");
  EXPECT_EQ(s->log, LogLevel::trace);
  EXPECT_EQ(s->token_file, "/run/token");
  EXPECT_EQ(s->job, "train-1");
}

TEST(Settings, TheFirstOfSeveralInterfacesIsUsed) {
  const auto first = [](const std::string& list) {
    const auto s = load({{"TRIBUTARY_IFNAME", list}});
    return s ? s->interface_name : s.error().message;
  };
  EXPECT_EQ(first("ens1f0np0,ens1f1np1"), "ens1f0np0");
  EXPECT_EQ(first("enp129s0f0np0v1, enp129s0f1np1v1"), "enp129s0f0np0v1") << "15 bytes are the most";
  const auto file = File("ifname: [ens1f0np0, ens1f1np1]\n").load();
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->interface_name, "ens1f0np0");
}

TEST(Settings, AnEmptyVariableCountsAsNotSet) {
  const auto s = load({{"TRIBUTARY_MANAGER", ""}, {"TRIBUTARY_LANES", ""}, {"TRIBUTARY_CONFIG", ""}});
  ASSERT_TRUE(s) << s.error().message;
  EXPECT_EQ(s->lanes, 0U);
}

TEST(Settings, EveryBadVariableIsNamedWithItsValueAndWhatIsAllowed) {
  const std::string long_name(64, 'x');
  const std::vector<std::array<std::string, 3>> bad{{"TRIBUTARY_MANAGER", "manager:7470", "http://HOST"},
                                                    {"TRIBUTARY_MANAGER", "https://", "http://HOST"},
                                                    {"TRIBUTARY_MANAGER", "http://", "http://HOST"},
                                                    {"TRIBUTARY_MANAGER", "http://a b", "http://HOST"},
                                                    {"TRIBUTARY_PATH", "innetwork", "in-network"},
                                                    {"TRIBUTARY_PATH", "AUTO", "auto"},
                                                    {"TRIBUTARY_TRANSPORT", "tcp,rdma", "verbs"},
                                                    {"TRIBUTARY_TRANSPORT", "tcp,", "tcp"},
                                                    {"TRIBUTARY_LANES", "0", "1 to 16"},
                                                    {"TRIBUTARY_LANES", "17", "1 to 16"},
                                                    {"TRIBUTARY_LANES", "two", "1 to 16"},
                                                    {"TRIBUTARY_LANES", "-1", "1 to 16"},
                                                    {"TRIBUTARY_LANES", "4 ", "1 to 16"},
                                                    {"TRIBUTARY_TIMEOUT", "30s", "seconds, without a unit"},
                                                    {"TRIBUTARY_TIMEOUT", "0", "seconds"},
                                                    {"TRIBUTARY_TIMEOUT", "-3", "seconds"},
                                                    {"TRIBUTARY_TIMEOUT", "nan", "seconds"},
                                                    {"TRIBUTARY_TIMEOUT", "inf", "seconds"},
                                                    {"TRIBUTARY_TIMEOUT", "1e12", "seconds"},
                                                    {"TRIBUTARY_TRANSPORT", "shm", "tcp, udp, verbs and dpdk"},
                                                    {"TRIBUTARY_IFNAME", "an-interface-name-too-long", "15 bytes"},
                                                    {"TRIBUTARY_IFNAME", "eth0,an-interface-name-too-long", "15 bytes"},
                                                    {"TRIBUTARY_IFNAME", "sixteen-bytes-it", "15 bytes"},
                                                    {"TRIBUTARY_IFNAME", "eth0,,eth1", "separated by commas"},
                                                    {"TRIBUTARY_IFNAME", "eth0,", "separated by commas"},
                                                    {"TRIBUTARY_HOST_ID", "two words", "63 printable"},
                                                    {"TRIBUTARY_HOST_ID", long_name, "63 printable"},
                                                    {"TRIBUTARY_LOG", "verbose", "trace, debug"},
                                                    {"TRIBUTARY_JOB", long_name, "63 printable"}};
  for (const auto& [variable, value, allowed] : bad) {
    EXPECT_THAT(error_of(load({{variable, value}})),
                AllOf(HasSubstr(variable + ": '" + value + "'"), HasSubstr(allowed)));
  }
}

TEST(Settings, ComeFromTheFileAndTheEnvironmentWins) {
  const File file(
      "# a comment\nlanes: 4\ntimeout: 12.5\ntransport: [verbs, tcp]\nhost_id: from-file\njob: \"named\"\n");
  const auto s = load({{"TRIBUTARY_CONFIG", file.name()}, {"TRIBUTARY_LANES", "2"}});
  ASSERT_TRUE(s) << s.error().message;
  EXPECT_EQ(s->lanes, 2U);
  EXPECT_EQ(s->timeout, std::chrono::milliseconds(12500));
  EXPECT_THAT(s->transports, ElementsAre("verbs", "tcp"));
  EXPECT_EQ(s->host_id, "from-file");
  EXPECT_EQ(s->job, "named");
}

TEST(Settings, SecurityInTheFileOverridesItsOldNameInAnyOrder) {
  for (const char* text :
       {"packet_security: authenticate\nsecurity: encrypt\n", "security: encrypt\npacket_security: authenticate\n"}) {
    const auto s = File(text).load();
    ASSERT_TRUE(s) << s.error().message;
    EXPECT_EQ(s->security, PacketSecurity::encrypt) << text;
  }
  EXPECT_EQ(File("packet_security: authenticate\n").load()->security, PacketSecurity::authenticate);
  EXPECT_THAT(error_of(File("security: encrypt\npacket_security: encrpyt\n").load()), HasSubstr("packet_security"));
}

TEST(Settings, AnEmptyFileSetsNothing) {
  EXPECT_TRUE(File("").load());
  EXPECT_TRUE(File("# nothing yet\n").load());
}

TEST(Settings, EveryBadLineOfTheFileIsNamed) {
  const auto error = [](const std::string& content) { return error_of(File(content).load()); };
  EXPECT_THAT(error("lanes: 2\nlane: 3\n"),
              AllOf(HasSubstr(".yaml:2: lane: there is no such setting; is 'lanes' meant?"), HasSubstr("lanes"),
                    HasSubstr("token_file")));
  EXPECT_THAT(error("\n\ntimeout: 30s\n"), AllOf(HasSubstr(".yaml:3: timeout: '30s'"), HasSubstr("seconds")));
  EXPECT_THAT(error("lanes: [1, 2]\n"), AllOf(HasSubstr(".yaml:1: lanes"), HasSubstr("'1,2'")));
  EXPECT_THAT(error("lanes: {a: 1}\n"), HasSubstr(".yaml:1: lanes: a single value is needed"));
  EXPECT_THAT(error("transport: [[tcp]]\n"), HasSubstr("an entry of the list is no single value"));
  EXPECT_THAT(error("lanes:\n"), HasSubstr(".yaml:1: lanes"));
  EXPECT_THAT(error("lane: 3\ntimeout: 30s\n"),
              AllOf(HasSubstr(".yaml:1: lane: there is no such setting"), HasSubstr(".yaml:2: timeout: '30s'")));
  EXPECT_THAT(error("lanes: 1\njob: a\nlanes: 2\n"), HasSubstr(".yaml:3: lanes: it is set twice"));
  EXPECT_THAT(error("just words"), HasSubstr("key: value"));
  EXPECT_THAT(error("- lanes\n- job\n"), HasSubstr("key: value"));
  EXPECT_THAT(error("lanes: [1, 2\n"), HasSubstr("no YAML"));
  EXPECT_THAT(error("? [a, b]\n: c\n"), HasSubstr("a key is a plain word"));
  EXPECT_THAT(error(std::string(2 << 20, '#')), HasSubstr("longer than 1048576 bytes"));
}

TEST(Settings, AFileThatIsNotThereIsAnError) {
  EXPECT_THAT(error_of(load({{"TRIBUTARY_CONFIG", "/nowhere/tributary.yaml"}})),
              HasSubstr("TRIBUTARY_CONFIG: '/nowhere/tributary.yaml': it cannot be read: No such file"));
  EXPECT_THAT(error_of(load({{"TRIBUTARY_CONFIG", ::testing::TempDir()}})), HasSubstr("cannot be read"));
}

TEST(Settings, TheStructWinsOverTheEnvironment) {
  tributary_config config = TRIBUTARY_CONFIG_INITIALIZER;
  config.manager = "http://explicit";
  config.path = "fallback";
  config.host_id = "explicit";
  config.lanes = 3;
  config.timeout_ms = 1;
  const auto s =
      load({{"TRIBUTARY_MANAGER", "http://environment"}, {"TRIBUTARY_LANES", "2"}, {"TRIBUTARY_JOB", "environment"}},
           &config);
  ASSERT_TRUE(s) << s.error().message;
  EXPECT_EQ(s->manager, "http://explicit");
  EXPECT_EQ(s->path, PathMode::fallback);
  EXPECT_EQ(s->lanes, 3U);
  EXPECT_EQ(s->timeout, std::chrono::milliseconds(1));
  EXPECT_EQ(s->job, "environment");
}

TEST(Settings, EveryBadMemberOfTheStructIsNamed) {
  const auto error = [](auto change) {
    tributary_config config = TRIBUTARY_CONFIG_INITIALIZER;
    change(config);
    return error_of(load({}, &config));
  };
  EXPECT_THAT(error([](auto& c) { c.manager = "nonsense"; }), HasSubstr("tributary_config.manager: 'nonsense'"));
  EXPECT_THAT(error([](auto& c) { c.path = ""; }), HasSubstr("tributary_config.path: ''"));
  EXPECT_THAT(error([](auto& c) { c.transport = "pigeon"; }), HasSubstr("tributary_config.transport: 'pigeon'"));
  EXPECT_THAT(error([](auto& c) { c.interface_name = "a name with spaces"; }),
              HasSubstr("tributary_config.interface_name"));
  EXPECT_THAT(error([](auto& c) { c.lanes = -1; }), HasSubstr("tributary_config.lanes: '-1'"));
  EXPECT_THAT(error([](auto& c) { c.lanes = 17; }), HasSubstr("tributary_config.lanes: '17'"));
  EXPECT_THAT(error([](auto& c) { c.timeout_ms = -1; }), HasSubstr("tributary_config.timeout_ms: '-1'"));
  EXPECT_THAT(error([](auto& c) { c.timeout_ms = INT64_MAX; }), HasSubstr("milliseconds"));
}

TEST(Settings, TheStructMayBeOfAnotherVersion) {
  struct Newer {
    tributary_config known = TRIBUTARY_CONFIG_INITIALIZER;
    const void* unknown = nullptr;
  } newer;
  newer.known.struct_bytes = sizeof newer;
  newer.known.lanes = 5;
  const auto fine = load({}, &newer.known);
  ASSERT_TRUE(fine) << fine.error().message;
  EXPECT_EQ(fine->lanes, 5U);
  newer.unknown = &newer;
  const auto unknown = load({}, &newer.known);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Errc::unsupported);

  tributary_config older = TRIBUTARY_CONFIG_INITIALIZER;
  older.lanes = 5;  // this member lies beyond the end of an older struct
  older.struct_bytes = offsetof(tributary_config, lanes);
  const auto cut = load({}, &older);
  ASSERT_TRUE(cut) << cut.error().message;
  EXPECT_EQ(cut->lanes, 0U);

  tributary_config zero{};
  const auto bad = load({}, &zero);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, Errc::bad_argument);
  EXPECT_THAT(bad.error().message, HasSubstr("TRIBUTARY_CONFIG_INITIALIZER"));
}

TEST(Settings, EachHasAHelpText) {
  for (const SettingHelp& help : setting_help()) {
    EXPECT_TRUE(help.variable.starts_with("TRIBUTARY_"));
    EXPECT_FALSE(help.allowed.empty());
    EXPECT_TRUE(help.help.ends_with('.')) << help.key;
  }
}

}  // namespace
}  // namespace tributary::client
