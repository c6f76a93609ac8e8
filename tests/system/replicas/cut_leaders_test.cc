// Leaders that stand still or are cut off from etcd while another manager takes over: the old leader changes no records
// and signs no tokens any more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <thread>

#include "tests/system/replicas/manager_fleet.h"

namespace tributary::manager {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

class CutLeaders : public ::testing::TestWithParam<ManagerFleet::Members> {
 protected:
  void SetUp() override {
    if (!has_etcd()) GTEST_SKIP() << "no etcd here: scripts/setup --etcd";
    etcd_ = std::make_unique<EtcdProcesses>(3);
    managers_ = std::make_unique<ManagerFleet>(*etcd_, 3, kLongLeases, GetParam());
    ASSERT_TRUE(managers_->register_only_aggregator());
    old_ = managers_->wait_leader();
    old_fence_ = fence_of(old_);
    ASSERT_GT(old_fence_, 0U);
  }
  /// Members::own: the old leader knows one member of etcd; stops that member. Members::all: stops the old leader.
  void cut() {
    GetParam() == ManagerFleet::Members::own ? etcd_->signal(old_, SIGSTOP) : managers_->at(old_).signal(SIGSTOP);
  }
  void mend() {
    GetParam() == ManagerFleet::Members::own ? etcd_->signal(old_, SIGCONT) : managers_->at(old_).signal(SIGCONT);
  }
  [[nodiscard]] std::uint64_t fence_of(std::size_t which) const {
    const auto answer = managers_->ask(which, "/v1/leader");
    return answer.is_object() ? answer["fence"].get<std::uint64_t>() : 0;
  }
  static std::string request(const std::string& method, const std::string& path, const std::string& token,
                             const std::string& body) {
    return method + " " + path + " HTTP/1.1\r\nHost: manager\r\nAuthorization: Bearer " + token +
           "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }
  [[nodiscard]] std::string secret(const std::string& name) const {
    std::string text = read_file(managers_->state_of(0) + "/" + name);
    while (text.ends_with('\n')) text.pop_back();
    return text;
  }

  std::unique_ptr<EtcdProcesses> etcd_;
  std::unique_ptr<ManagerFleet> managers_;
  std::size_t old_ = 0;
  std::uint64_t old_fence_ = 0;
};

TEST_P(CutLeaders, ChangeNothingAndSignNothing) {
  const auto made = managers_->for_jobs().request_group({.job = "j", .hosts = {"x", "y"}, .lanes = 1});
  ASSERT_TRUE(made.has_value()) << made.error().message;
  const manager_client::GroupAnswer& before = *made;
  ASSERT_EQ(before.descriptor.fence, old_fence_);
  ASSERT_FALSE(before.descriptor.lanes.empty());
  cut();
  const std::size_t next = managers_->wait_leader(old_);
  const std::uint64_t next_fence = fence_of(next);
  EXPECT_GT(next_fence, old_fence_);

  if (const char* const text = std::getenv("TRIBUTARY_TEST_STANDSTILL_SECONDS"); text != nullptr)
    std::this_thread::sleep_for(std::chrono::seconds(std::atoi(text)));  // many leases, instead of only one

  // Clients that know only the old leader: their requests wait there, and it handles them as soon as it runs.
  std::vector<std::unique_ptr<Connection>> clients;
  const std::string group = R"({"job":"late","ranks":["x","y"]})";
  const std::string id = std::to_string(before.descriptor.group);
  const std::vector<std::string> requests{
      request("POST", "/v1/groups", secret("job.token"), group),
      request("POST", "/v1/groups/" + id + "/rebuild", secret("job.token"), R"({"epoch":1})"),
      request("GET", "/v1/groups/" + id + "/tokens?epoch=1&from=0&count=1", secret("job.token"), ""),
      request("PUT", "/v1/groups/" + id + "/lease", secret("job.token"), R"({"want_record":true})"),
      request("POST", "/v1/aggregators/only/drain", secret("aggregator.token"), "")};
  for (const std::string& text : requests) {
    clients.push_back(std::make_unique<Connection>(managers_->at(old_).port()));
    ASSERT_TRUE(clients.back()->send(text));
  }
  const bool was_cut_from_etcd_alone = GetParam() == ManagerFleet::Members::own;
  if (!was_cut_from_etcd_alone) mend();
  for (std::size_t i = 0; i < clients.size(); ++i) {
    const std::string answer = clients[i]->answer(20s);
    ASSERT_FALSE(answer.empty()) << requests[i];
    EXPECT_THAT(answer, ::testing::Not(HasSubstr(std::to_string(old_fence_)))) << requests[i];
    const bool passed_on = !answer.contains("\"no_leader\"");
    EXPECT_TRUE(!was_cut_from_etcd_alone || !passed_on) << "it cannot know who leads: " << answer;
  }
  if (was_cut_from_etcd_alone) {
    auto reader = managers_->client(managers_->at(next).url(), "");
    const auto unchanged = reader.get("/v1/groups/" + id);
    ASSERT_TRUE(unchanged.has_value()) << unchanged.error().message;
    EXPECT_EQ((*unchanged)["epoch"], before.descriptor.epoch);
    EXPECT_EQ((*reader.get("/v1/groups"))["groups"].size(), 1U);
    mend();
  }
  EXPECT_EQ(fence_of(old_), 0U);
  const auto after = managers_->client(managers_->at(old_).url(), "job.token")
                         .request_group({.job = "j", .hosts = {"x", "y"}, .lanes = 1});
  if (after) {
    EXPECT_EQ(after->descriptor.fence, next_fence) << "the old leader passed on the new leader's answer";
  }
  EXPECT_EQ(managers_->wait_leader(), next);
}

std::string name_of(const ::testing::TestParamInfo<ManagerFleet::Members>& kind) {
  return kind.param == ManagerFleet::Members::own ? "FromEtcdAlone" : "ByStandingStill";
}
INSTANTIATE_TEST_SUITE_P(Kinds, CutLeaders, ::testing::Values(ManagerFleet::Members::all, ManagerFleet::Members::own),
                         name_of);

}  // namespace
}  // namespace tributary::manager
