// A job and an aggregator under several managers: the job works on while leaders are killed, and the aggregator refuses
// the tokens of a leader that no longer leads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <thread>

#include "tests/system/chaos/rank_fleet.h"
#include "tests/system/replicas/manager_fleet.h"
#include "tests/system/replicas/real_aggregator.h"
#include "tests/unit/aggregator/child.h"
#include "tributary/transport/tcp.h"

namespace tributary::manager {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr const char* kShortLeases = "group_lease: 6s\naggregator_lease: 3s\nleader_lease: 3s\nlog_level: warn\n";

class RunningJob : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_etcd()) GTEST_SKIP() << "no etcd here: scripts/setup --etcd";
    etcd_ = std::make_unique<EtcdProcesses>(3);
    managers_ = std::make_unique<ManagerFleet>(*etcd_, 3, kShortLeases);
    aggregator_ =
        std::make_unique<RealAggregator>(folder_, managers_->urls(), managers_->state_of(0) + "/aggregator.token");
  }
  void start_job() {
    auto fleet = chaos::RankFleet::start(
        {.ranks = 2,
         .command = {TRIBUTARY_CHAOS_RANK, "--stop-file", folder_.file("stop"), "--bytes-max", "65536", "--world-only"},
         .folder = folder_.path(),
         .cluster = nullptr,
         .environment = {{"TRIBUTARY_MANAGER", managers_->urls()},
                         {"TRIBUTARY_TOKEN_FILE", managers_->state_of(0) + "/job.token"},
                         {"TRIBUTARY_TIMEOUT", "60"},
                         {"TRIBUTARY_LOCAL", "off"}},
         .host_ids = {"r0", "r1"}});
    ASSERT_TRUE(fleet.has_value()) << fleet.error().message;
    job_ = std::move(*fleet);
    listen_until([&] { return job_->all_in_network(); });
    ASSERT_TRUE(job_->all_in_network()) << read_file(folder_.file("real.log"));
  }
  void listen_until(const std::function<bool()>& done) {
    const auto end = Clock::now() + 60s;
    while (!done() && Clock::now() < end && job_->trouble(45s).empty()) job_->listen(50ms, done);
  }
  [[nodiscard]] std::uint64_t rounds() const {
    return std::min(job_->ranks()[0].last.number, job_->ranks()[1].last.number);
  }
  /// Waits until the job's group has renewed its lease at this leader.
  void wait_until_renewed_at(std::size_t leader, const std::string& route) {
    const auto end = Clock::now() + 30s;
    while (Clock::now() < end) {
      Connection connection(managers_->at(leader).port());
      if (connection.send("GET /metrics HTTP/1.1\r\nHost: manager\r\n\r\n") &&
          connection.answer().contains("route=\"PUT /v1/" + route + "/lease\",status=\"200\""))
        return;
      job_ ? job_->listen(50ms) : std::this_thread::sleep_for(50ms);
    }
    FAIL() << "nobody renews " << route << " at the new leader";
  }
  /// Writes a file of a manager's state directory, and sends SIGHUP to the manager.
  void change_file(std::size_t which, const std::string& name, const std::string& text) {
    std::ofstream(managers_->state_of(which) + "/" + name) << text;
    managers_->at(which).signal(SIGHUP);
  }
  /// Returns the key of the manager that leads, as each manager that answers says; "" if they differ or none answers.
  [[nodiscard]] std::string public_key() const {
    std::string key;
    for (std::size_t i = 0; i < managers_->size(); ++i) {
      const nlohmann::json answer = managers_->ask(i, "/v1/public-key");
      if (!answer.is_object()) continue;
      const auto told = answer.value("public_key", std::string());
      if (!key.empty() && key != told) return "";
      key = told;
    }
    return key;
  }
  [[nodiscard]] bool makes_group(std::size_t which, const std::string& token) const {
    auto client = manager_client::ManagerClient::create({.url = managers_->at(which).url(), .token = token});
    return client && client->request_group({.job = "j", .hosts = {"x", "y"}, .lanes = 1}).has_value();
  }
  manager_client::GroupAnswer group_with_tree() {
    auto jobs = managers_->for_jobs();
    const auto end = Clock::now() + 30s;
    while (Clock::now() < end) {
      auto made = jobs.request_group({.job = "j", .hosts = {"x", "y"}, .lanes = 1});
      if (made && !made->descriptor.lanes.empty()) return std::move(*made);
      std::this_thread::sleep_for(50ms);
    }
    throw std::runtime_error("no group with a tree: " + read_file(folder_.file("real.log")));
  }
  /// Shows the first rank's token to the aggregator. Returns its refusal; "none" if it says nothing.
  static std::string refusal_of(const GroupDescriptor& group) {
    transport::TcpTransport transport;
    const LaneEntry& entry = group.lanes.at(0).entries.at(0);
    aggregator::test::Child child(transport, entry.aggregator, encode_join(entry.tokens, {}), group.epoch);
    const auto end = Clock::now() + 3s;
    while (!child.refused && !child.closed && Clock::now() < end) transport.poll(10ms);
    return child.refused.value_or("none");
  }

  const Folder folder_;
  std::unique_ptr<EtcdProcesses> etcd_;
  std::unique_ptr<ManagerFleet> managers_;
  std::unique_ptr<RealAggregator> aggregator_;
  std::unique_ptr<chaos::RankFleet> job_;
};

TEST_F(RunningJob, SeesNoErrorWhileLeadersAreKilled) {
  ASSERT_NO_FATAL_FAILURE(start_job());
  const std::uint32_t epoch = job_->ranks()[0].last.groups.at(0).epoch;
  for (int kill = 0; kill < 3; ++kill) {
    const std::size_t leader = managers_->wait_leader();
    const std::uint64_t before = rounds();
    managers_->kill(leader);
    listen_until([&] { return managers_->leader().has_value(); });
    const auto next = managers_->leader();
    ASSERT_TRUE(next.has_value());
    ASSERT_NO_FATAL_FAILURE(wait_until_renewed_at(*next, "groups/{id}"));
    listen_until([&] { return rounds() > before + 5; });
    EXPECT_GT(rounds(), before + 5);
    managers_->restart(leader);
  }
  EXPECT_EQ(job_->trouble(45s), "");
  EXPECT_TRUE(job_->all_in_network());
  EXPECT_EQ(job_->ranks()[0].last.groups.at(0).epoch, epoch) << "the group keeps its trees";
  std::ofstream(folder_.file("stop")) << "stop\n";
  listen_until([&] { return job_->all_ended(); });
  for (const auto& rank : job_->ranks()) EXPECT_TRUE(rank.done) << rank.trouble;
  std::printf("3 kills, and the job ended %llu operations\n",
              static_cast<unsigned long long>(job_->ranks()[0].operations));
}

TEST_F(RunningJob, ChangesOfTheKeysCostItNothing) {
  ASSERT_NO_FATAL_FAILURE(start_job());
  const std::uint32_t epoch = job_->ranks()[0].last.groups.at(0).epoch;
  const std::size_t leader = managers_->wait_leader();
  const std::string before = public_key();

  // The job token: the leader's file decides.
  change_file(leader, "job.token", std::string(64, 'j') + "\n");
  for (std::size_t i = 0; i < managers_->size(); ++i) {
    bool takes = false;
    listen_until([&] { return takes = takes || makes_group(i, std::string(64, 'j')); });
    EXPECT_TRUE(takes) << "manager " << i << " does not know the new token";
  }

  // The signing key: the file of each manager, and the leader's at last.
  const std::string key = std::string(63, '5') + "a\n";
  for (std::size_t i = 0; i < managers_->size(); ++i) {
    if (i != leader) change_file(i, "signing.key", key);
  }
  std::this_thread::sleep_for(1s);  // longer than managers need to take over what has changed; nothing may change
  EXPECT_EQ(public_key(), before);
  change_file(leader, "signing.key", key);
  listen_until([&] { return public_key() != before; });
  const std::string after = public_key();
  EXPECT_NE(after, before);
  ASSERT_NO_FATAL_FAILURE(wait_until_renewed_at(leader, "aggregators/{name}"));
  EXPECT_FALSE(group_with_tree().descriptor.lanes.empty()) << "the aggregator knows the new key";

  // Another manager leads with the new key, and the killed one, which starts with it, follows.
  managers_->kill(leader);
  listen_until([&] { return managers_->leader().has_value(); });
  const auto next = managers_->leader();
  ASSERT_TRUE(next.has_value()) << "no manager that has followed can lead";
  EXPECT_EQ(public_key(), after);
  managers_->restart(leader);
  ASSERT_NO_FATAL_FAILURE(wait_until_renewed_at(*next, "groups/{id}"));
  EXPECT_FALSE(group_with_tree().descriptor.lanes.empty());
  const std::uint64_t rounds_before = rounds();
  listen_until([&] { return rounds() > rounds_before + 5; });
  EXPECT_EQ(job_->trouble(45s), "");
  EXPECT_TRUE(job_->all_in_network());
  EXPECT_EQ(job_->ranks()[0].last.groups.at(0).epoch, epoch) << "the group keeps its trees";
  std::ofstream(folder_.file("stop")) << "stop\n";
  listen_until([&] { return job_->all_ended(); });
  for (const auto& rank : job_->ranks()) EXPECT_TRUE(rank.done) << rank.trouble;
}

TEST_F(RunningJob, TokensOfAFormerLeaderAreRefused) {
  const auto before = group_with_tree();
  const std::size_t old = managers_->wait_leader();
  managers_->at(old).signal(SIGSTOP);
  const std::size_t next = managers_->wait_leader(old);
  ASSERT_NO_FATAL_FAILURE(wait_until_renewed_at(next, "aggregators/{name}"));
  EXPECT_THAT(refusal_of(before.descriptor), HasSubstr("a manager that no longer leads"));
  managers_->at(old).signal(SIGCONT);
  EXPECT_THAT(refusal_of(before.descriptor), HasSubstr("a manager that no longer leads"));
  const auto after = group_with_tree();
  EXPECT_GT(after.descriptor.fence, before.descriptor.fence);
}

}  // namespace
}  // namespace tributary::manager
