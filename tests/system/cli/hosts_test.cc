// `tributary run --hosts` makes hosts with links of a rate, runs a comparison on them, and leaves no host behind,
// however it ends.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sched.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "tests/system/cli/command.h"

namespace tributary::cli_test {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;
using testing::UnorderedElementsAre;

/// Returns why this process cannot make hosts; empty if it can.
std::string why_not() {
  int failed = 0;
  std::thread([&failed] { failed = unshare(CLONE_NEWNET) == 0 ? 0 : errno; }).join();
  return failed == 0 ? "" : std::string("network namespaces cannot be made here: ") + std::strerror(failed);
}

using Namespaces = std::set<std::string>;  // "net:[4026532315]"

std::string target_of(const std::filesystem::path& link) {
  std::error_code gone;
  return std::filesystem::read_symlink(link, gone).string();
}

/// Returns the network namespaces that a process holds open by descriptors.
Namespaces held_by(const std::filesystem::path& process) {
  Namespaces found;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator(process / "fd", gone)) {
    if (const std::string target = target_of(entry.path()); target.starts_with("net:[")) found.insert(target);
  }
  return found;
}

/// Returns the namespaces of this set that some process is in or holds open.
Namespaces in_use(const Namespaces& wanted) {
  Namespaces found;
  const auto add = [&](const std::string& one) {
    if (wanted.contains(one)) found.insert(one);
  };
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", gone)) {
    if (!std::isdigit(static_cast<unsigned char>(entry.path().filename().string().front()))) continue;
    add(target_of(entry.path() / "ns/net"));
    for (const std::string& one : held_by(entry.path())) add(one);
  }
  return found;
}

class RunHosts : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_not(); !why.empty()) GTEST_SKIP() << why;
  }
  [[nodiscard]] Outcome run(const std::vector<std::string>& options, const std::string& script) const {
    return work_.finish(start(options, script));
  }
  [[nodiscard]] cli::ChildProcess start(const std::vector<std::string>& options, const std::string& script) const {
    std::vector<std::string> all{"run"};
    all.insert(all.end(), options.begin(), options.end());
    all.insert(all.end(), {"--", "sh", "-c", script});
    return work_.start(all);
  }
  /// Starts ranks that wait, and returns when all ranks have reported that they wait.
  [[nodiscard]] cli::ChildProcess start_waiting(const std::vector<std::string>& options) {
    cli::ChildProcess process = start(options, "echo here; sleep 1000 & sleep 1000");
    EXPECT_TRUE(eventually([&] { return lines_of(read_file(work_.path("output"))).size() >= 2; }));
    namespaces_ = held_by("/proc/" + std::to_string(process.pid()));
    EXPECT_EQ(in_use(namespaces_).size(), namespaces_.size());
    return process;
  }
  void expect_nothing_left() const {
    EXPECT_EQ(work_.left_behind_after(seconds(20)), "");
    EXPECT_TRUE(eventually([&] { return in_use(namespaces_).empty(); }, seconds(20)));
  }

  Workplace work_;
  Namespaces namespaces_;
};

TEST_F(RunHosts, GivesEachRankAHostWithTheServiceInReach) {
  const Outcome outcome =
      run({"--hosts", "2", "--link", "1Gbit", "--prefix"},
          "echo $(hostname) $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $MASTER_ADDR $TRIBUTARY_HOST_ID "
          "$TRIBUTARY_IFNAME; test -r $TRIBUTARY_TOKEN_FILE && " TRIBUTARY_PROGRAM
          " status --output json | grep -c '\"active\": 1'; readlink /proc/self/ns/net >>" +
              work_.path("namespaces"));
  EXPECT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_THAT(lines_of(outcome.output), UnorderedElementsAre("[0] worker-0 0 0 2 1 10.77.0.2 worker-0 eth0", "[0] 1",
                                                             "[1] worker-1 1 0 2 1 10.77.0.2 worker-1 eth0", "[1] 1"));
  const auto namespaces = lines_of(read_file(work_.path("namespaces")));
  EXPECT_EQ(Namespaces(namespaces.begin(), namespaces.end()).size(), 2U) << read_file(work_.path("namespaces"));
  EXPECT_EQ(work_.left_behind(), "");
}

TEST_F(RunHosts, AHostWithASlowLinkIsNamedWithTheCause) {
  const Outcome outcome = run({"--hosts", "3", "--link", "200Mbit"},
                              "command -v tc >/dev/null || exit 77; "
                              "if [ $RANK = 1 ]; then "
                              "tc qdisc replace dev eth0 root tbf rate 20mbit burst 64kb latency 100ms; fi; "
                              "TRIBUTARY_LOG=info TRIBUTARY_TUNING=off exec " TRIBUTARY_PROGRAM
                              " perf all_reduce -b 2M -e 2M -n 5 -w 1 -c 0 --require in-network");
  if (outcome.code == 77) GTEST_SKIP() << "the program tc (Debian package iproute2) is not installed";
  ASSERT_EQ(outcome.code, 0) << outcome.output << outcome.error;
  EXPECT_THAT(outcome.error, testing::ContainsRegex("rank 1 on host worker-1 is late by [0-9]+ ms.*"
                                                    "\\(its data come slowly\\); 2 others wait"));
}

TEST_F(RunHosts, ReducesInTheNetworkAtTheRateOfTheLinksAndNoFaster) {
  const std::string result = work_.path("result.json");
  const Outcome outcome = work_.tributary(
      {"run", "--hosts", "3",  "--link", "100Mbit", "--", TRIBUTARY_PROGRAM, "perf",       "all_reduce", "-b",  "2M",
       "-e",  "2M",      "-n", "2",      "-w",      "1",  "--require",       "in-network", "--json",     result});
  ASSERT_EQ(outcome.code, 0) << outcome.output << outcome.error;
  const auto report = nlohmann::json::parse(read_file(result));
  constexpr double kMicrosecondsOfBytes = (2U << 20) * 8 / 100.0;
  EXPECT_GT(report.at("rows").at(0).at("in_place").at("time_us").get<double>(), 0.9 * kMicrosecondsOfBytes);
  EXPECT_THAT(outcome.output, HasSubstr("on worker-2"));
  EXPECT_EQ(report.at("wrong"), 0);
}

TEST_F(RunHosts, ComparesAndDrawsWhereThereIsNoCommand) {
  const std::string picture = work_.path("picture.svg");
  const Outcome outcome = work_.tributary(
      {"run", "--hosts", "2", "--link", "1Gbit", "--bytes", "4K,64K", "--python", "/bin/false", "--picture", picture});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const auto lines = lines_of(outcome.output);
  ASSERT_EQ(lines.size(), 6U) << outcome.output;
  EXPECT_THAT(lines[0], HasSubstr("2 hosts with links of 1 Gbit/s, 1 aggregator"));
  EXPECT_THAT(lines[1], HasSubstr("RANKS ALONE"));
  EXPECT_THAT(lines[2], testing::StartsWith("4 KiB "));
  EXPECT_THAT(lines[3], testing::StartsWith("64 KiB "));
  EXPECT_EQ(lines[4], "Gloo is left out: /bin/false has no PyTorch");
  EXPECT_THAT(read_file(picture), testing::EndsWith("</svg>\n"));
  EXPECT_EQ(work_.left_behind(), "");
}

TEST_F(RunHosts, EndsWithTheExitCodeOfARankThatFails) {
  const Outcome outcome =
      run({"--hosts", "2", "--link", "1Gbit", "--grace", "0"}, "test $RANK = 1 && exit 7; exec sleep 100");
  EXPECT_EQ(outcome.code, 7);
  EXPECT_THAT(outcome.error, HasSubstr("rank 1 ended with exit code 7"));
  EXPECT_EQ(work_.left_behind(), "");
}

TEST_F(RunHosts, LeavesNothingBehindWhenItIsAskedToStop) {
  for (const int number : {SIGINT, SIGTERM}) {
    cli::ChildProcess process = start_waiting({"--hosts", "2", "--link", "1Gbit"});
    EXPECT_EQ(namespaces_.size(), 5U) << "namespaces of the switch, the manager, an aggregator and two ranks";
    kill(process.pid(), number);
    const Outcome outcome = work_.finish(std::move(process), seconds(60));
    EXPECT_EQ(outcome.code, 128 + number) << outcome.error;
    expect_nothing_left();
  }
}

TEST_F(RunHosts, LeavesNothingBehindEvenWhenItIsKilled) {
  cli::ChildProcess process = start_waiting({"--hosts", "2", "--link", "1Gbit"});
  ASSERT_THAT(work_.left_behind(), HasSubstr("tributary-aggregator"));
  kill(process.pid(), SIGKILL);
  const Outcome outcome = work_.finish(std::move(process));
  EXPECT_EQ(outcome.code, 128 + SIGKILL);
  expect_nothing_left();
}

TEST_F(RunHosts, StopsAComparisonThatIsInterrupted) {
  cli::ChildProcess process = work_.start({"run", "--hosts", "2", "--link", "10Mbit", "--bytes", "4M"});
  ASSERT_TRUE(eventually([&] { return read_file(work_.path("error")).contains("# measuring 4 MiB"); }));
  namespaces_ = held_by("/proc/" + std::to_string(process.pid()));
  kill(process.pid(), SIGINT);
  const Outcome outcome = work_.finish(std::move(process), seconds(60));
  EXPECT_EQ(outcome.code, 128 + SIGINT) << outcome.error;
  EXPECT_EQ(outcome.output, "");
  expect_nothing_left();
}

TEST_F(RunHosts, SaysWhichRightsAreMissing) {
  const Outcome outcome = work_.finish([&] {
    cli::Environment variables = cli::current_environment();
    const int error = creat(work_.path("error").c_str(), 0600), output = creat(work_.path("output").c_str(), 0600);
    auto process = cli::ChildProcess::spawn(
        {.arguments = {"setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", TRIBUTARY_PROGRAM, "run",
                       "--hosts", "2", "--link", "1Gbit", "--", "true"},
         .environment = std::move(variables),
         .output = output,
         .error = error});
    EXPECT_TRUE(process);
    close(error);
    close(output);
    return std::move(*process);
  }());
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.error, HasSubstr("need root with CAP_SYS_ADMIN and CAP_NET_ADMIN"));
  EXPECT_THAT(outcome.error, HasSubstr("sudo"));
}

TEST_F(RunHosts, RefusesOptionsThatDoNotFit) {
  const auto refused = [&](std::vector<std::string> options) {
    options.insert(options.begin(), "run");
    const Outcome outcome = work_.tributary(options);
    EXPECT_EQ(outcome.code, 64) << outcome.error;
    return outcome.error;
  };
  EXPECT_THAT(refused({"--hosts", "2", "--", "true"}), HasSubstr("--link"));
  EXPECT_THAT(refused({"--hosts", "2", "--link", "1", "--", "true"}), HasSubstr("'1'"));
  EXPECT_THAT(refused({"--hosts", "2", "--link", "1bit", "--", "true"}), HasSubstr("1Mbit/s to 1Tbit/s"));
  EXPECT_THAT(refused({"--hosts", "2", "--ranks", "2", "--link", "1Gbit", "--", "true"}), HasSubstr("--ranks"));
  EXPECT_THAT(refused({"--ranks", "2", "--link", "1Gbit", "--", "true"}), HasSubstr("--hosts"));
  EXPECT_THAT(refused({"--hosts", "2", "--link", "1Gbit", "--aggregators", "0"}), HasSubstr("at least 1"));
  EXPECT_THAT(refused({"--hosts", "2", "--link", "1Gbit", "--bytes", "5"}), HasSubstr("multiple of 4"));
  EXPECT_THAT(refused({"--hosts", "2", "--link", "1Gbit", "--bytes", "4K", "--", "true"}),
              HasSubstr("without a command"));
  EXPECT_THAT(refused({"--", "true"}), HasSubstr("--ranks or --hosts"));
}

TEST_F(RunHosts, SaysBeforeItStartsThatThePictureCannotBeWritten) {
  const Outcome outcome = work_.tributary({"run", "--hosts", "2", "--link", "1Gbit", "--picture", "/no/such/a.svg"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.error, HasSubstr("/no/such"));
  EXPECT_THAT(outcome.error, Not(HasSubstr("measuring")));
}

}  // namespace
}  // namespace tributary::cli_test
