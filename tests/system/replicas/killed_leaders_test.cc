// The test kills the leader of three managers again and again, while clients make, rebuild and give back groups: no
// acknowledged group is lost, and no epoch is given twice.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "tests/system/replicas/manager_fleet.h"

namespace tributary::manager {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr int kThreads = 2;
constexpr const char* kConfigForKills =
    "group_lease: 1h\naggregator_lease: 10s\nleader_lease: 3s\nthreads: 4\nlog_level: warn\n";

/// Returns the number of kills, which the environment may change.
int kills_wanted() {
  const char* const text = std::getenv("TRIBUTARY_TEST_LEADER_KILLS");
  return text == nullptr ? 8 : std::atoi(text);
}

/// The groups that clients know, and the faults of answers.
struct Ledger {
  std::mutex mutex;
  std::map<std::uint64_t, std::uint32_t> epochs;  // by group, for groups that are not given back
  std::set<std::uint64_t> ended;
  std::vector<std::string> wrong;
  std::atomic<bool> stop{false};

  void complain(const std::string& what) {
    const std::lock_guard lock(mutex);
    wrong.push_back(what);
  }
};

/// Repeats one request until it has succeeded. Returns nullopt if the test stops: the result of the request is then
/// not known.
template <class Call>
auto until_answered(Ledger& ledger, const char* what, const Call& call) -> std::optional<decltype(call())> {
  while (!ledger.stop) {
    auto answer = call();
    if (answer) return answer;
    const Errc code = answer.error().code;
    if (code != Errc::unreachable && code != Errc::retry) {
      ledger.complain(std::string(what) + ": " + answer.error().message);
      return std::nullopt;
    }
  }
  return std::nullopt;
}

void live_one_group(Ledger& ledger, manager_client::ManagerClient& jobs, const std::string& name, bool give_back) {
  const auto made = until_answered(ledger, "a request for a group", [&] {
    return jobs.request_group({.job = "j", .hosts = {"x", "y", "z"}, .lanes = 1, .request_id = name});
  });
  if (!made) return;
  const std::uint64_t id = (*made)->descriptor.group;
  const std::uint32_t epoch = (*made)->descriptor.epoch;
  {
    const std::lock_guard lock(ledger.mutex);
    const bool fresh = ledger.epochs.emplace(id, epoch).second && !ledger.ended.contains(id);
    if (!fresh) ledger.wrong.push_back("group " + std::to_string(id) + " was given to two requests");
  }
  if (epoch == 0) return;  // no tree
  const auto rebuilt = until_answered(ledger, "a rebuild", [&] { return jobs.rebuild_group(id, epoch, {}); });
  {
    const std::lock_guard lock(ledger.mutex);
    if (!rebuilt) ledger.epochs.erase(id);  // the request's result is not known
    if (rebuilt && (*rebuilt)->descriptor.epoch != epoch + 1) {
      ledger.wrong.push_back("epoch " + std::to_string((*rebuilt)->descriptor.epoch) + " follows epoch " +
                             std::to_string(epoch));
    }
    if (rebuilt) ledger.epochs[id] = epoch + 1;
  }
  if (!rebuilt || !give_back) return;
  const auto gone = until_answered(ledger, "a deletion", [&] { return jobs.delete_group(id); });
  const std::lock_guard lock(ledger.mutex);
  ledger.epochs.erase(id);
  if (gone) ledger.ended.insert(id);
}

class KilledLeaders : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_etcd()) GTEST_SKIP() << "no etcd here: scripts/setup --etcd";
    etcd_ = std::make_unique<EtcdProcesses>(3);
    managers_ = std::make_unique<ManagerFleet>(*etcd_, 3, kConfigForKills);
    ASSERT_TRUE(managers_->register_only_aggregator());
  }
  /// Kills the leader, and returns how long it takes until a new group is made.
  std::chrono::milliseconds kill_and_ask(int number) {
    const std::size_t leader = managers_->wait_leader();
    managers_->kill(leader);
    const auto killed_at = Clock::now();
    auto jobs = managers_->for_jobs();
    const auto answer = until_answered(ledger_, "a request after a kill", [&] {
      return jobs.request_group(
          {.job = "j", .hosts = {"x", "y"}, .lanes = 1, .request_id = "after-kill-" + std::to_string(number)});
    });
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - killed_at);
    if (answer) {
      const std::lock_guard lock(ledger_.mutex);
      ledger_.epochs[(*answer)->descriptor.group] = (*answer)->descriptor.epoch;
    }
    managers_->restart(leader);
    return took;
  }
  void check_all() {
    auto reader = managers_->client(managers_->urls(), "");
    const auto listed = reader.get("/v1/groups");
    ASSERT_TRUE(listed.has_value()) << listed.error().message;
    std::map<std::uint64_t, std::uint32_t> there;
    for (const auto& group : (*listed)["groups"]) there[group["group"]] = group["epoch"];
    for (const auto& [id, epoch] : ledger_.epochs) {
      ASSERT_TRUE(there.contains(id)) << "group " << id << " was acknowledged, and is lost";
      ASSERT_EQ(there[id], epoch) << id;
    }
    for (const std::uint64_t id : ledger_.ended) ASSERT_FALSE(there.contains(id)) << id << " was given back";
  }

  std::unique_ptr<EtcdProcesses> etcd_;
  std::unique_ptr<ManagerFleet> managers_;
  Ledger ledger_;
};

TEST_F(KilledLeaders, LoseNoGroupAndGiveNoEpochTwice) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      auto jobs = managers_->for_jobs();
      for (int n = 0; !ledger_.stop; ++n) {
        live_one_group(ledger_, jobs, "t" + std::to_string(i) + "-" + std::to_string(n), n % 3 == 0);
        std::this_thread::sleep_for(5ms);  // leaves the machine some time for the managers
      }
    });
  }
  std::mt19937 random(1);
  std::vector<std::chrono::milliseconds> waits;
  const int kills = kills_wanted();
  for (int i = 0; i < kills; ++i) {
    waits.push_back(kill_and_ask(i));
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 1000));
  }
  ledger_.stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(ledger_.wrong.empty()) << ledger_.wrong.size() << " answers are wrong, the first: " << ledger_.wrong[0];
  check_all();
  std::ranges::sort(waits);
  ASSERT_FALSE(waits.empty());
  std::printf(
      "%zu kills: a new group after %lld ms (median), %lld ms (longest), with a lease of 3 s; "
      "%zu groups kept, %zu given back\n",
      waits.size(), static_cast<long long>(waits[waits.size() / 2].count()),
      static_cast<long long>(waits.back().count()), ledger_.epochs.size(), ledger_.ended.size());
  EXPECT_GT(ledger_.epochs.size(), 10U);
}

}  // namespace
}  // namespace tributary::manager
