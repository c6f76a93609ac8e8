// A manager stands still for longer than every lease, or loses its database. Afterwards it lists running groups, counts
// their load, and answers them. The test uses the real clients of an aggregator and of rank 0.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <thread>

#include "client/api/http_group_service.h"
#include "tests/system/manager/manager_process.h"
#include "tributary/transport/tcp.h"

namespace tributary::manager {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr const char* kConfig = "group_lease: 6s\naggregator_lease: 6s\n";
constexpr auto kLongerThanALease = 8s;

manager_client::AggregatorRegistration registration(std::uint64_t incarnation = 0) {
  return {.name = "only",
          .host = "h",
          .data = {"10.0.0.1", 7471},
          .http = {"10.0.0.1", 7472},
          .memory_bytes = 1ULL << 34,
          .version = "test",
          .incarnation = incarnation};
}

/// Acts as rank 0 of one group, which it requests like a communicator.
class RankZero {
 public:
  explicit RankZero(const ManagerProcess& manager, const Folder& folder) {
    std::string token = read_file(folder.file("state/job.token"));
    while (!token.empty() && token.back() == '\n') token.pop_back();
    auto service = client::HttpGroupService::create({.url = manager.url(), .token = token}, transport_);
    if (!service) throw std::runtime_error(service.error().message);
    service_ = std::move(*service);
  }
  GroupDescriptor ask() {
    std::optional<Result<GroupDescriptor>> got;
    service_->request({.job = "train", .hosts = {"r0", "r1"}, .lanes = 1},
                      [&](auto answer) { got = std::move(answer); });
    poll_until(got);
    return got && *got ? std::move(**got) : GroupDescriptor{};
  }
  Result<client::GroupLease> renew(std::uint64_t group) {
    std::optional<Result<client::GroupLease>> got;
    service_->renew(group, {}, [&](auto answer) { got = std::move(answer); });
    poll_until(got);
    return got.value_or(fail(Errc::timed_out, "no answer"));
  }

 private:
  template <class Got>
  void poll_until(const Got& got) {
    const auto limit = std::chrono::steady_clock::now() + 30s;
    while (!got && std::chrono::steady_clock::now() < limit) transport_.poll(10ms);
  }
  transport::TcpTransport transport_;
  std::unique_ptr<client::HttpGroupService> service_;
};

json listed(const ManagerProcess& manager) {
  return manager.client("").get("/v1/groups").value_or(json{{"groups", json::array()}})["groups"];
}

json aggregator(const ManagerProcess& manager) {
  return manager.client("").get("/v1/aggregators/only").value_or(json::object());
}

void drain(const ManagerProcess& manager) {
  ASSERT_TRUE(manager.for_aggregators().request("POST", "/v1/aggregators/only/drain", nullptr).has_value());
}

/// Waits until the manager has noticed the pause, and so has checked its leases; returns false after half a minute.
bool has_seen_a_standstill(const ManagerProcess& manager) {
  const auto limit = std::chrono::steady_clock::now() + 30s;
  while (std::chrono::steady_clock::now() < limit) {
    Connection connection(manager.port());
    if (!connection.send("GET /metrics HTTP/1.1\r\nHost: manager\r\n\r\n")) continue;
    if (connection.answer().contains("tributary_manager_standstills_total 1\n")) return true;
  }
  return false;
}

TEST(Pause, AManagerThatStoodStillKeepsTheGroupsItHadAndADrainReachesThem) {
  const Folder folder;
  const std::string config = folder.write("m.yaml", kConfig);
  const auto manager = ManagerProcess::serving(folder.file("state"), {"--config", config});
  const auto registered = manager->for_aggregators().register_aggregator(registration());
  ASSERT_TRUE(registered.has_value());
  RankZero rank(*manager, folder);
  const GroupDescriptor group = rank.ask();
  ASSERT_FALSE(group.empty()) << group.reason;
  const json held = aggregator(*manager)["memory_reserved_bytes"];

  manager->signal(SIGSTOP);
  // This sleep is the pause that the test needs: the test cannot ask a process that stands still.
  std::this_thread::sleep_for(kLongerThanALease);
  manager->signal(SIGCONT);

  ASSERT_TRUE(has_seen_a_standstill(*manager));
  ASSERT_EQ(listed(*manager).size(), 1U);
  EXPECT_EQ(listed(*manager)[0]["adopted_at"], 0) << "the manager never lost the group";
  EXPECT_EQ(aggregator(*manager)["state"], "active");
  EXPECT_EQ(aggregator(*manager)["incarnation"], registered->incarnation);
  EXPECT_EQ(aggregator(*manager)["memory_reserved_bytes"], held);
  drain(*manager);
  const auto lease = rank.renew(group.group);
  ASSERT_TRUE(lease.has_value()) << lease.error().message;
  EXPECT_TRUE(lease->better_trees);
  EXPECT_EQ(lease->why, "aggregator only is draining [draining]");
}

TEST(Pause, AManagerWithoutItsDatabaseAdoptsTheRunningGroups) {
  const Folder folder;
  const std::string config = folder.write("m.yaml", kConfig);
  auto manager = ManagerProcess::serving(folder.file("state"), {"--config", config});
  const auto registered = manager->for_aggregators().register_aggregator(registration());
  ASSERT_TRUE(registered.has_value());
  RankZero rank(*manager, folder);
  const GroupDescriptor group = rank.ask();
  ASSERT_FALSE(group.empty()) << group.reason;
  json before = listed(*manager)[0];
  const json held = aggregator(*manager)["memory_reserved_bytes"];
  const std::string address = "127.0.0.1:" + std::to_string(manager->port());

  manager->signal(SIGKILL);
  manager->wait();
  for (const char* name : {"manager.db", "manager.db-wal", "manager.db-shm"}) {
    std::filesystem::remove(folder.file(std::string("state/") + name));
  }
  manager = std::make_unique<ManagerProcess>(
      std::vector<std::string>{"--config", config, "--listen", address, "--state-dir", folder.file("state")});
  manager->wait_ready();
  ASSERT_TRUE(listed(*manager).empty());

  const auto lease = rank.renew(group.group);
  ASSERT_TRUE(lease.has_value()) << lease.error().message;
  json after = listed(*manager).at(0);
  EXPECT_GT(after["adopted_at"], 0);
  for (json* it : {&after, &before}) {
    for (const char* time : {"adopted_at", "age_seconds", "lease_seconds_left"}) it->erase(time);
  }
  EXPECT_EQ(after, before);
  const auto events = manager->client("").get("/v1/events");
  ASSERT_TRUE(events.has_value()) << events.error().message;
  ASSERT_EQ((*events)["events"].size(), 1U);
  EXPECT_EQ((*events)["events"][0]["kind"], "group-adopted");
  EXPECT_EQ((*events)["events"][0]["group"], group.group);
  ASSERT_TRUE(manager->for_aggregators().register_aggregator(registration(registered->incarnation)).has_value());
  EXPECT_EQ(aggregator(*manager)["memory_reserved_bytes"], held) << "the group's memory is accounted";
  drain(*manager);
  EXPECT_TRUE(rank.renew(group.group)->better_trees) << "the group learns of the drain";
}

}  // namespace
}  // namespace tributary::manager
