// Managers over an etcd with problems: a member dies, the history is compacted, there is no room, users need
// passwords.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "tests/system/replicas/manager_fleet.h"
#include "tests/unit/service_kit/test_ca.h"
#include "tree-manager/store/etcd/etcd_client.h"

namespace tributary::manager {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using ::testing::HasSubstr;

class EtcdTroubles : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_etcd()) GTEST_SKIP() << "no etcd here: scripts/setup --etcd";
  }
  static std::uint64_t make_group(const ManagerFleet& managers) {
    const auto made = managers.for_jobs().request_group({.job = "j", .hosts = {"x", "y"}, .lanes = 1});
    EXPECT_TRUE(made.has_value()) << made.error().message;
    return made ? made->descriptor.group : 0;
  }
  static bool knows(const ManagerFleet& managers, std::uint64_t group) {
    return managers.client(managers.urls(), "").get("/v1/groups/" + std::to_string(group)).has_value();
  }
  const Folder folder_;
};

/// One call that the test makes directly to etcd.
json etcd_call(const EtcdProcesses& etcd, const std::string& path, const json& body,
               const service::TlsFiles& tls = {}) {
  const auto client = EtcdClient::create({.endpoints = etcd.endpoints(), .tls = tls});
  const auto answer = (*client)->call(path, body, 10s);
  EXPECT_TRUE(answer.has_value()) << answer.error().message;
  return answer ? *answer : json::object();
}

/// etcd then asks for the user root with the password "the-password".
void ask_for_passwords(const EtcdProcesses& etcd, const service::TlsFiles& tls) {
  etcd_call(etcd, "/v3/auth/user/add", {{"name", "root"}, {"password", "the-password"}}, tls);
  etcd_call(etcd, "/v3/auth/role/add", {{"name", "root"}}, tls);
  etcd_call(etcd, "/v3/auth/user/grant", {{"user", "root"}, {"role", "root"}}, tls);
  etcd_call(etcd, "/v3/auth/enable", json::object(), tls);
}

TEST_F(EtcdTroubles, AMemberThatDiesCostsNothing) {
  const EtcdProcesses etcd(3);
  const ManagerFleet managers(etcd, 2, kLongLeases);
  const std::uint64_t first = make_group(managers);
  const json status = etcd_call(etcd, "/v3/maintenance/status", json::object());
  std::size_t raft_leader = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto one = EtcdClient::create({.endpoints = {etcd.endpoints()[i]}});
    const auto answer = (*one)->call("/v3/maintenance/status", json::object(), 10s);
    ASSERT_TRUE(answer.has_value());
    if ((*answer)["header"]["member_id"] == status["leader"]) raft_leader = i;
  }
  etcd.signal(raft_leader, SIGKILL);
  const std::uint64_t second = make_group(managers);
  EXPECT_TRUE(knows(managers, first));
  EXPECT_TRUE(knows(managers, second));
}

TEST_F(EtcdTroubles, ACompactedHistoryHoldsNobodyUp) {
  const EtcdProcesses etcd(1);
  ManagerFleet managers(etcd, 2, kLongLeases);
  const std::uint64_t first = make_group(managers);
  const std::string revision = etcd_call(etcd, "/v3/kv/range", {{"key", "AA=="}})["header"]["revision"];
  etcd_call(etcd, "/v3/kv/compaction", {{"revision", revision}, {"physical", true}});
  const std::uint64_t second = make_group(managers);
  const std::size_t old = managers.wait_leader();
  managers.kill(old);
  static_cast<void>(managers.wait_leader(old));
  EXPECT_TRUE(knows(managers, first));
  EXPECT_TRUE(knows(managers, second));
  EXPECT_NE(make_group(managers), 0U);
}

TEST_F(EtcdTroubles, ManagersProveThemselvesToAnEtcdThatAsks) {
  const EtcdProcesses etcd(1);
  ask_for_passwords(etcd, {});
  const std::string password = folder_.write("password", "the-password\n");
  ::chmod(password.c_str(), 0600);
  ManagerFleet managers(etcd, 2,
                        std::string(kLongLeases) + "store_user: root\nstore_password_file: " + password + "\n");
  const std::uint64_t first = make_group(managers);
  const std::size_t old = managers.wait_leader();
  managers.kill(old);
  static_cast<void>(managers.wait_leader(old));
  EXPECT_TRUE(knows(managers, first));

  const std::string wrong = folder_.write("wrong", "another\n");
  ::chmod(wrong.c_str(), 0600);
  const auto refused = EtcdClient::create({.endpoints = etcd.endpoints(), .user = "root", .password = "another"});
  EXPECT_EQ((*refused)->call("/v3/kv/range", {{"key", "AA=="}}, 5s).error().code, Errc::denied);
}

TEST_F(EtcdTroubles, ManagersAndAnEtcdWithTlsProveThemselvesToEachOther) {
  const std::string files = folder_.file("tls");
  std::filesystem::create_directories(files);
  service::TestCa ca(files, "ca"), foreign(files, "foreign");
  // Where etcd asks for passwords, it refuses certificates with a common name on the interface that managers use.
  const service::TlsFiles mine = ca.issue("manager", {.common_name = "", .names = "DNS:manager"});
  const EtcdProcesses etcd(3, {.tls = ca.issue("etcd"), .client = mine});
  ask_for_passwords(etcd, mine);
  const std::string password = folder_.write("password", "the-password\n");
  ::chmod(password.c_str(), 0600);
  const std::string config = std::string(kLongLeases) + "store_user: root\nstore_password_file: " + password +
                             "\nstore_tls_ca: " + mine.ca + "\nstore_tls_cert: " + mine.cert +
                             "\nstore_tls_key: " + mine.key + "\n";
  ManagerFleet managers(etcd, 2, config);
  const std::uint64_t first = make_group(managers);
  const std::size_t old = managers.wait_leader();
  managers.kill(old);
  static_cast<void>(managers.wait_leader(old));
  EXPECT_TRUE(knows(managers, first));
  EXPECT_NE(make_group(managers), 0U);

  const auto sentence = [&](const service::TlsFiles& tls) {
    const auto client = EtcdClient::create({.endpoints = etcd.endpoints(), .tls = tls});
    return (*client)->call("/v3/kv/range", {{"key", "AA=="}}, 3s).error().message;
  };
  EXPECT_THAT(sentence({.ca = ca.path()}), HasSubstr("cannot be reached by TLS")) << "etcd asks for a certificate";
  EXPECT_THAT(sentence({.ca = foreign.path()}), HasSubstr("which is no CA in"));
  service::TlsFiles stranger = foreign.issue("stranger");
  stranger.ca = ca.path();
  EXPECT_THAT(sentence(stranger), HasSubstr("the other side"));
}

/// etcd's own limit of its database: it raises its alarm, and refuses writes until somebody clears the alarm.
TEST_F(EtcdTroubles, AnEtcdWithoutRoomRefusesWritesAndItsManagersSaySo) {
  const EtcdProcesses etcd(1, {.more = {"--quota-backend-bytes", "1048576"}});
  const ManagerFleet managers(etcd, 2, kLongLeases);
  const std::uint64_t first = make_group(managers);
  const auto filler = EtcdClient::create({.endpoints = etcd.endpoints(), .prefix = "/other/"});
  Result<json> put = json::object();
  for (int i = 0; put && i < 100; ++i) {
    put = (*filler)->call(
        "/v3/kv/put",
        {{"key", (*filler)->key(std::to_string(i))}, {"value", to_base64_text(std::string(128U << 10, 'x'))}}, 10s);
  }
  ASSERT_FALSE(put.has_value());
  EXPECT_EQ(put.error().code, Errc::exhausted) << put.error().message;
  const auto refused = managers.for_jobs().request_group({.job = "j", .hosts = {"x", "y"}, .lanes = 1});
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, ::testing::AnyOf(HasSubstr("space"), HasSubstr("lead")));
  EXPECT_TRUE(knows(managers, first)) << "reads need no room";

  const json range = {{"key", (*filler)->key("")}, {"range_end", (*filler)->end_of("")}};
  etcd_call(etcd, "/v3/kv/deleterange", range);
  const std::string revision = etcd_call(etcd, "/v3/kv/range", {{"key", "AA=="}})["header"]["revision"];
  etcd_call(etcd, "/v3/kv/compaction", {{"revision", revision}, {"physical", true}});
  etcd_call(etcd, "/v3/maintenance/defragment", json::object());
  const json alarms = etcd_call(etcd, "/v3/maintenance/alarm", {{"action", "GET"}});
  ASSERT_FALSE(alarms["alarms"].empty());
  etcd_call(etcd, "/v3/maintenance/alarm",
            {{"action", "DEACTIVATE"}, {"memberID", alarms["alarms"][0]["memberID"]}, {"alarm", "NOSPACE"}});
  static_cast<void>(managers.wait_leader());
  EXPECT_NE(make_group(managers), 0U);
  EXPECT_TRUE(knows(managers, first));
}

/// A small file system that ends with the object.
class SmallDisk {
 public:
  SmallDisk(std::string folder, const char* size) : folder_(std::move(folder)) {
    std::filesystem::create_directories(folder_);
    mounted_ = ::mount("none", folder_.c_str(), "tmpfs", 0, (std::string("size=") + size).c_str()) == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(folder_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  [[nodiscard]] bool mounted() const { return mounted_; }
  [[nodiscard]] const std::string& folder() const { return folder_; }
  /// Writes a file until no byte is left.
  void fill() const {
    std::ofstream file(ballast(), std::ios::binary);
    const std::string zeros(64U << 10, '\0');
    while (file.write(zeros.data(), static_cast<std::streamsize>(zeros.size())).flush()) {
    }
  }
  void clear() const { std::filesystem::remove(ballast()); }

 private:
  [[nodiscard]] std::string ballast() const { return folder_ + "/ballast"; }
  const std::string folder_;
  bool mounted_ = false;
};

/// etcd ends itself when it cannot write its file. It writes nothing in part, so nothing is lost.
TEST_F(EtcdTroubles, AnEtcdOnAFullDiskEndsAndLosesNothing) {
  const SmallDisk disk(folder_.file("disk"), "256m");
  if (!disk.mounted()) GTEST_SKIP() << "only root mounts a small file system";
  EtcdProcesses etcd(1, {.data = disk.folder()});
  ManagerFleet managers(etcd, 2, kLongLeases);
  const std::uint64_t first = make_group(managers);
  disk.fill();
  const auto filler = EtcdClient::create({.endpoints = etcd.endpoints(), .prefix = "/other/"});
  Result<json> put = json::object();
  for (int i = 0; put && i < 1000; ++i) {
    put = (*filler)->call(
        "/v3/kv/put",
        {{"key", (*filler)->key(std::to_string(i))}, {"value", to_base64_text(std::string(1U << 20, 'x'))}}, 5s);
  }
  ASSERT_FALSE(put.has_value());
  etcd.wait_end(0);
  const auto refused = managers.for_jobs().request_group({.job = "j", .hosts = {"x", "y"}, .lanes = 1});
  EXPECT_FALSE(refused.has_value());
  disk.clear();
  etcd.restart(0);
  static_cast<void>(managers.wait_leader());
  EXPECT_TRUE(knows(managers, first));
  EXPECT_NE(make_group(managers), 0U);
}

class ReloadOverEtcd : public EtcdTroubles, public ::testing::WithParamInterface<std::chrono::seconds> {};

/// After 10 s the manager no longer leads: the default lease is 5 s.
INSTANTIATE_TEST_SUITE_P(Blocked, ReloadOverEtcd, ::testing::Values(1s, 10s));

TEST_P(ReloadOverEtcd, WaitsUntilEtcdTakesChangesAgain) {
  const EtcdProcesses etcd(1);
  ManagerFleet managers(etcd, 1, "group_lease: 1h\naggregator_lease: 1h\nlog_level: info\n");
  const std::string before = managers.ask(0, "/v1/public-key")["public_key"];
  const auto public_key = [&] {
    const json answer = managers.ask(0, "/v1/public-key");
    return answer.is_object() ? answer["public_key"].get<std::string>() : before;
  };
  const auto eventually = [](const std::function<bool()>& what) {
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (!what() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(20ms);
    return what();
  };

  etcd.signal(0, SIGSTOP);
  std::thread blocked([&] { static_cast<void>(managers.for_jobs().request_group({.job = "j", .hosts = {"x", "y"}})); });
  std::this_thread::sleep_for(200ms);  // so that the group is the change that etcd blocks
  std::ofstream(managers.state_of(0) + "/signing.key") << std::string(63, '5') + "a\n";
  managers.at(0).signal(SIGHUP);
  EXPECT_TRUE(eventually([&] { return managers.at(0).log().contains("the reload waits for the store"); }));
  EXPECT_EQ(public_key(), before);
  std::this_thread::sleep_for(GetParam());
  EXPECT_FALSE(managers.at(0).log().contains("the reload has gone on"));
  etcd.signal(0, SIGCONT);
  blocked.join();

  EXPECT_TRUE(eventually([&] { return public_key() != before; })) << "without another SIGHUP";
  EXPECT_TRUE(eventually([&] { return managers.at(0).log().contains("the reload has gone on"); }));
  EXPECT_NE(make_group(managers), 0U);
}

TEST_F(EtcdTroubles, AManagerWithAnotherSigningKeyDoesNotStart) {
  const EtcdProcesses etcd(1);
  const ManagerFleet managers(etcd, 1, kLongLeases);
  const Ended ended = run_manager({"--listen", "127.0.0.1:0", "--state-dir", folder_.file("foreign"), "--store",
                                   "etcd://" + etcd.endpoints()[0].substr(7)});
  EXPECT_EQ(ended.exit_code, 78);
  EXPECT_THAT(ended.standard_error, HasSubstr("another signing.key"));
}

TEST_F(EtcdTroubles, IdentityKeysThatTheLeaderReadsAgainReachAllManagers) {
  const EtcdProcesses etcd(1);
  ManagerFleet managers(etcd, 3, kLongLeases);
  const std::size_t leader = managers.wait_leader();
  const std::string file = managers.state_of(leader) + "/identity.keys";
  const std::string before = read_file(file);
  std::ofstream(file) << "fresh " << std::string(64, 'a') << "\n" << before;
  managers.at(leader).signal(SIGHUP);
  const auto end = std::chrono::steady_clock::now() + 20s;
  const auto all_have = [&] {
    for (std::size_t i = 0; i < managers.size(); ++i) {
      if (!read_file(managers.state_of(i) + "/identity.keys").contains("fresh ")) return false;
    }
    return true;
  };
  while (!all_have() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(20ms);
  EXPECT_TRUE(all_have());
}

}  // namespace
}  // namespace tributary::manager
