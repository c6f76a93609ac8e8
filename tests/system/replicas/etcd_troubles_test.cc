// Managers over an etcd with problems: a member dies, the history is compacted, there is no room, users need
// passwords.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/system/replicas/manager_fleet.h"
#include "tree-manager/store/etcd/etcd_client.h"

namespace tributary::manager {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using ::testing::HasSubstr;

constexpr const char* kConfig = "group_lease: 1h\naggregator_lease: 1h\nleader_lease: 3s\nlog_level: warn\n";

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
json etcd_call(const EtcdProcesses& etcd, const std::string& path, const json& body) {
  const auto client = EtcdClient::create({.endpoints = etcd.endpoints()});
  const auto answer = (*client)->call(path, body, 10s);
  EXPECT_TRUE(answer.has_value()) << answer.error().message;
  return answer ? *answer : json::object();
}

TEST_F(EtcdTroubles, AMemberThatDiesCostsNothing) {
  const EtcdProcesses etcd(3);
  const ManagerFleet managers(etcd, 2, kConfig);
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
  ManagerFleet managers(etcd, 2, kConfig);
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
  const json key = {{"name", "root"}, {"password", "the-password"}};
  etcd_call(etcd, "/v3/auth/user/add", key);
  etcd_call(etcd, "/v3/auth/role/add", {{"name", "root"}});
  etcd_call(etcd, "/v3/auth/user/grant", {{"user", "root"}, {"role", "root"}});
  etcd_call(etcd, "/v3/auth/enable", json::object());
  const std::string password = folder_.write("password", "the-password\n");
  ::chmod(password.c_str(), 0600);
  ManagerFleet managers(etcd, 2, std::string(kConfig) + "store_user: root\nstore_password_file: " + password + "\n");
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

TEST_F(EtcdTroubles, AManagerWithAnotherSigningKeyDoesNotStart) {
  const EtcdProcesses etcd(1);
  const ManagerFleet managers(etcd, 1, kConfig);
  const Ended ended = run_manager({"--listen", "127.0.0.1:0", "--state-dir", folder_.file("foreign"), "--store",
                                   "etcd://" + etcd.endpoints()[0].substr(7)});
  EXPECT_EQ(ended.exit_code, 78);
  EXPECT_THAT(ended.standard_error, HasSubstr("another signing.key"));
}

TEST_F(EtcdTroubles, IdentityKeysThatTheLeaderReadsAnewReachAllManagers) {
  const EtcdProcesses etcd(1);
  ManagerFleet managers(etcd, 3, kConfig);
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
