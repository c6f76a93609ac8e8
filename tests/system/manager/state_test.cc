// A manager that is killed at any time, or whose disk is full, must not lose its state.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <random>
#include <set>
#include <thread>

#include "tests/system/manager/manager_process.h"

namespace tributary::manager {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

manager_client::AggregatorRegistration registration_of(const std::string& name) {
  return {.name = name,
          .host = "h-" + name,
          .data = {"10.0.0.1", 7471},
          .http = {"10.0.0.1", 7472},
          .memory_bytes = 1ULL << 34,
          .version = "test"};
}

/// The changes that the manager has acknowledged to one client.
struct Acknowledged {
  std::map<std::uint64_t, std::uint32_t> groups;  // number -> epoch
  std::set<std::uint64_t> deleted;
  std::map<std::string, std::uint64_t> aggregators;  // name -> incarnation
  std::optional<std::uint64_t> in_doubt;             // the group whose last change got no answer
};

/// Changes groups and aggregators until the manager no longer answers.
Acknowledged work_until_it_dies(ManagerProcess& manager, unsigned seed) {
  Acknowledged seen;
  auto fleet = manager.for_aggregators();
  auto jobs = manager.for_jobs();
  std::mt19937 random(seed);
  for (int i = 0;; ++i) {
    const std::string name = "a" + std::to_string(seed) + "-" + std::to_string(random() % 5);
    const auto registered = fleet.register_aggregator(registration_of(name));
    if (!registered) {
      seen.aggregators.erase(name);  // the manager may have stored the next incarnation
      return seen;
    }
    seen.aggregators[name] = registered->incarnation;
    const auto made = jobs.request_group({.job = "j", .hosts = {"x", "y", "z"}, .lanes = 1});
    if (!made) return seen;
    const std::uint64_t id = made->descriptor.group;
    seen.groups[id] = made->descriptor.epoch;
    seen.in_doubt = id;
    const auto rebuilt = jobs.rebuild_group(id, made->descriptor.epoch, {});
    if (!rebuilt) return seen;
    if (!rebuilt->descriptor.empty()) seen.groups[id] = rebuilt->descriptor.epoch;
    if (random() % 3 == 0) {
      if (!jobs.delete_group(id)) return seen;
      seen.groups.erase(id);
      seen.deleted.insert(id);
    }
    seen.in_doubt.reset();
  }
}

TEST(State, IsCompleteAfterAKillAtAnyMoment) {
  const Folder folder;
  const std::string config = folder.write("m.yaml", "group_lease: 1h\naggregator_lease: 1h\nthreads: 4\n");
  std::mt19937 random(1);
  Acknowledged all;
  for (unsigned round = 0; round < 8; ++round) {
    const auto manager = ManagerProcess::serving(folder.file("state"), {"--config", config, "--log-level", "error"});
    auto client = manager->client("");
    for (const auto& [id, epoch] : all.groups) {
      const auto group = client.get("/v1/groups/" + std::to_string(id));
      ASSERT_TRUE(group.has_value()) << group.error().message;
      ASSERT_EQ((*group)["epoch"], epoch) << id;
      ASSERT_EQ((*group)["hosts"].size(), 3U);
    }
    for (const std::uint64_t id : all.deleted) {
      ASSERT_EQ(client.get("/v1/groups/" + std::to_string(id)).error().code, Errc::peer_gone) << id;
    }
    for (const auto& [name, incarnation] : all.aggregators) {
      ASSERT_EQ((*client.get("/v1/aggregators/" + name))["incarnation"], incarnation) << name;
    }
    Acknowledged mine[2];
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 2; ++i) {
      threads.emplace_back([&, i] { mine[i] = work_until_it_dies(*manager, 10 * round + i); });
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100 + random() % 400));
    manager->signal(SIGKILL);
    for (std::thread& thread : threads) thread.join();
    for (Acknowledged& it : mine) {
      if (it.in_doubt) it.groups.erase(*it.in_doubt);
      all.groups.merge(it.groups);
      all.deleted.merge(it.deleted);
      all.aggregators.merge(it.aggregators);
    }
  }
  EXPECT_GT(all.groups.size(), 10U);
  EXPECT_GT(all.deleted.size(), 3U);
}

manager_client::GroupRequest large_group() {
  std::vector<std::string> hosts(2000, std::string(58, 'h'));
  for (std::size_t i = 0; i < hosts.size(); ++i) hosts[i] += std::to_string(i % 100);
  return {.job = "j", .hosts = hosts, .lanes = 1};
}

/// Asks for groups until the store has no room for one more. Returns the groups that were made.
std::vector<std::uint64_t> fill(ManagerProcess& manager) {
  auto jobs = manager.for_jobs();
  auto fleet = manager.for_aggregators();
  std::vector<std::uint64_t> groups;
  const auto registered = fleet.register_aggregator(registration_of("a"));
  EXPECT_TRUE(registered.has_value());
  Result<manager_client::GroupAnswer> answer;
  while ((answer = jobs.request_group(large_group())) && groups.size() < 1000)
    groups.push_back(answer->descriptor.group);
  EXPECT_FALSE(answer.has_value());
  if (answer) return groups;
  EXPECT_EQ(answer.error().code, Errc::exhausted) << answer.error().message;
  EXPECT_THAT(answer.error().message, HasSubstr("with 507: the manager's database"));
  EXPECT_THAT(answer.error().message, HasSubstr("nothing was changed"));
  EXPECT_GT(groups.size(), 2U);
  // Reads and renewals still work.
  const auto listed = jobs.get("/v1/groups");
  EXPECT_TRUE(listed.has_value());
  EXPECT_EQ((*listed)["groups"].size(), groups.size());
  EXPECT_TRUE(jobs.renew_group(groups[0])->known);
  EXPECT_EQ(*fleet.renew_aggregator("a", registered->incarnation, {}), manager_client::AggregatorState::active);
  return groups;
}

TEST(State, KeepsReservationsAfterAKill) {
  const Folder folder;
  const std::string config = folder.write("m.yaml", "group_lease: 1h\naggregator_lease: 1h\n");
  const auto serve = [&] { return ManagerProcess::serving(folder.file("state"), {"--config", config}); };
  const auto reserved = [](const ManagerProcess& manager) {
    std::map<std::string, std::uint64_t> bytes;
    const auto list = manager.client("").get("/v1/aggregators");
    for (const auto& it : (*list)["aggregators"]) bytes[it["name"]] = it["memory_reserved_bytes"];
    return bytes;
  };
  auto manager = serve();
  for (const char* name : {"a", "b"})
    ASSERT_TRUE(manager->for_aggregators().register_aggregator(registration_of(name)).has_value());
  std::uint64_t last = 0;
  for (int i = 0; i < 5; ++i) {
    const auto made = manager->for_jobs().request_group({.job = "j", .hosts = {"x", "y", "z"}, .lanes = 2});
    ASSERT_TRUE(made.has_value());
    ASSERT_FALSE(made->descriptor.empty());
    last = made->descriptor.group;
  }
  ASSERT_TRUE(manager->for_jobs().rebuild_group(last, 1, {"a"}).has_value());
  const auto before = reserved(*manager);
  EXPECT_GT(before.at("a"), 0U);
  manager->signal(SIGKILL);
  manager->wait();
  manager = serve();
  EXPECT_EQ(reserved(*manager), before);
  EXPECT_TRUE(manager->for_jobs().renew_group(last)->known);
  EXPECT_EQ(manager->for_jobs().rebuild_group(last, 1, {"a"})->descriptor.epoch, 2U)
      << "a repeated request gives the same epoch";
}

TEST(State, GoesOnReadingWhenTheDatabaseHasReachedItsLimit) {
  const Folder folder;
  const std::string config =
      folder.write("m.yaml", "database_bytes_max: 2MiB\ngroup_lease: 1h\naggregator_lease: 1h\nlog_level: error\n");
  const auto manager = ManagerProcess::serving(folder.file("state"), {"--config", config});
  const auto groups = fill(*manager);
  auto jobs = manager->for_jobs();
  for (std::size_t i = 0; i < groups.size() / 2; ++i) ASSERT_TRUE(jobs.delete_group(groups[i]).has_value());
  EXPECT_TRUE(jobs.request_group(large_group()).has_value());
}

/// A separate file system, whose mount options give its size.
class SmallDisk {
 public:
  SmallDisk(std::string path, const char* options) : path_(std::move(path)) {
    mounted_ = ::mkdir(path_.c_str(), 0700) == 0 && ::mount("tmpfs", path_.c_str(), "tmpfs", 0, options) == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(path_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  [[nodiscard]] bool mounted() const { return mounted_; }
  [[nodiscard]] bool resize(const char* options) const {
    return ::mount("tmpfs", path_.c_str(), "tmpfs", MS_REMOUNT, options) == 0;
  }

 private:
  std::string path_;
  bool mounted_ = false;
};

TEST(State, GoesOnReadingWhileTheDiskIsFullAndWritingWhenThereIsRoom) {
  const Folder folder;
  const SmallDisk disk(folder.file("disk"), "size=3m,mode=0700");
  if (!disk.mounted()) GTEST_SKIP() << "mounting a small file system needs root";
  const std::string config = folder.write("m.yaml", "group_lease: 1h\naggregator_lease: 1h\nlog_level: error\n");
  const auto manager = ManagerProcess::serving(folder.file("disk"), {"--config", config});
  const auto groups = fill(*manager);
  ASSERT_TRUE(disk.resize("size=30m,mode=0700"));
  auto jobs = manager->for_jobs();
  const auto made = jobs.request_group(large_group());
  ASSERT_TRUE(made.has_value()) << made.error().message;
  EXPECT_TRUE(jobs.delete_group(groups[0]).has_value());
  manager->signal(SIGKILL);
  manager->wait();
  const auto again = ManagerProcess::serving(folder.file("disk"), {"--config", config});
  EXPECT_EQ((*again->client("").get("/v1/groups"))["groups"].size(), groups.size());
  EXPECT_TRUE(again->client("").get("/v1/groups/" + std::to_string(made->descriptor.group)).has_value());
}

}  // namespace
}  // namespace tributary::manager
