// The way of all records from SQLite to etcd and back, with the commands `export` and `import` of real managers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <thread>

#include "tests/system/replicas/etcd_process.h"

namespace tributary::manager {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class MovedRecords : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_etcd()) GTEST_SKIP() << "no etcd here: scripts/setup --etcd";
  }
  static void end(ManagerProcess& manager) {
    manager.signal(SIGTERM);
    EXPECT_EQ(manager.wait().exit_code, 0);
  }
  static void run(const std::vector<std::string>& words) {
    const Ended ended = run_manager(words);
    EXPECT_EQ(ended.exit_code, 0) << ended.standard_error;
  }
  static std::uint64_t make_group(const ManagerProcess& manager) {
    const auto made = manager.for_jobs().request_group({.job = "j", .hosts = {"x", "y"}, .lanes = 1});
    EXPECT_TRUE(made.has_value()) << made.error().message;
    return made ? made->descriptor.group : 0;
  }
  /// A manager on etcd serves before it leads.
  static bool renews(const ManagerProcess& manager, std::uint64_t group) {
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (std::chrono::steady_clock::now() < end) {
      if (manager.for_jobs().renew_group(group)) return true;
      std::this_thread::sleep_for(20ms);
    }
    return false;
  }
  [[nodiscard]] std::vector<std::string> with(std::vector<std::string> words) const {
    words.insert(words.end(), {"--config", config_});
    return words;
  }

  const Folder folder_;
  const std::string config_ = folder_.write("m.yaml", "group_lease: 1h\naggregator_lease: 1h\n");
};

TEST_F(MovedRecords, GoFromSqliteToEtcdAndBackWhileNoManagerRuns) {
  const EtcdProcesses etcd(1);
  const std::string store = "etcd://" + etcd.endpoints()[0].substr(7);
  const std::string state = folder_.file("state"), archive = folder_.file("a"), back = folder_.file("b");
  auto manager = ManagerProcess::serving(state, with({}));
  const std::uint64_t first = make_group(*manager);
  end(*manager);
  run(with({"export", "--state-dir", state, archive}));
  run(with({"import", "--state-dir", state, "--store", store, archive}));
  const Ended again = run_manager(with({"import", "--state-dir", state, "--store", store, archive}));
  EXPECT_NE(again.exit_code, 0) << "the store is not empty";

  manager = ManagerProcess::serving(state, with({"--store", store}));
  EXPECT_TRUE(renews(*manager, first));
  const std::uint64_t second = make_group(*manager);
  EXPECT_NE(second, first);
  const Ended led = run_manager(with({"import", "--state-dir", state, "--store", store, "--replace", archive}));
  EXPECT_NE(led.exit_code, 0);
  EXPECT_THAT(led.standard_error, HasSubstr("leads on this store"));
  end(*manager);

  run(with({"export", "--state-dir", state, "--store", store, back}));
  run(with({"import", "--state-dir", state, "--replace", back}));
  manager = ManagerProcess::serving(state, with({}));
  EXPECT_TRUE(renews(*manager, first));
  EXPECT_TRUE(renews(*manager, second));
  EXPECT_NE(make_group(*manager), second);
}

}  // namespace
}  // namespace tributary::manager
