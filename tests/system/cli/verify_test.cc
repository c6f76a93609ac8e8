// `tributary verify-bits` proves the bits of exact sums, also while aggregators are killed, and sees a wrong bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>

#include "tests/system/cli/command.h"

namespace tributary::cli_test {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

std::vector<std::string> command_line(std::vector<std::string> options, const std::vector<std::string>& verify) {
  std::vector<std::string> all{"run", "--ranks", "4"};
  all.insert(all.end(), options.begin(), options.end());
  all.insert(all.end(), {"--", TRIBUTARY_PROGRAM, "verify-bits"});
  all.insert(all.end(), verify.begin(), verify.end());
  return all;
}

/// Returns the processes of this program below `ancestor`.
std::vector<pid_t> descendants(pid_t ancestor, const std::string& program) {
  const auto parent_of = [](pid_t process) {
    std::ifstream stat("/proc/" + std::to_string(process) + "/stat");
    std::string text((std::istreambuf_iterator<char>(stat)), {});
    const auto name_end = text.rfind(')');
    return name_end == std::string::npos ? 0 : std::atoi(text.c_str() + name_end + 4);
  };
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const pid_t process = std::atoi(entry.path().filename().c_str());
    if (process == 0) continue;
    std::ifstream comm(entry.path() / "comm");
    std::string name;
    std::getline(comm, name);
    if (name != program.substr(0, 15)) continue;
    pid_t above = process;
    while (above > 1 && above != ancestor) above = parent_of(above);
    if (above == ancestor) found.push_back(process);
  }
  return found;
}

class VerifyBits : public testing::Test {
 protected:
  Workplace work_;
};

TEST_F(VerifyBits, FindsEveryBitRightOnEveryPath) {
  const Outcome trees =
      work_.tributary(command_line({"--aggregators", "3", "--levels", "2", "--lanes", "2"}, {"-e", "5000"}));
  EXPECT_EQ(trees.code, 0) << trees.output << trees.error;
  EXPECT_THAT(trees.output,
              AllOf(ContainsRegex("trees, 2 level.s., 2 lane.s. +float64 +[1-9][0-9]* +[1-9][0-9]* +0  yes"),
                    ContainsRegex("between the ranks +bfloat16 +[1-9][0-9]* +[1-9][0-9]* +0  yes"),
                    HasSubstr("# every bit is right")));
  EXPECT_THAT(trees.output, ContainsRegex("# trees, 2 level.s., 2 lane.s.: bytes in-network [1-9][0-9]*, between the "
                                          "ranks 0, in shared memory 0; trees were lost 0 time"));
  const std::string verify = "exec " TRIBUTARY_PROGRAM " verify-bits -e 5000";
  const Outcome local = work_.tributary({"run", "--ranks", "4", "--aggregators", "0", "--", "sh", "-c",
                                         "TRIBUTARY_LOCAL=auto TRIBUTARY_HOST_ID=one " + verify});
  EXPECT_EQ(local.code, 0) << local.output << local.error;
  EXPECT_THAT(local.output, AllOf(HasSubstr("# no trees: "), ContainsRegex("shared memory +float16 .* 0  yes"),
                                  HasSubstr("# every bit is right")));
}

// Two hosts of two ranks: the leaders send forms to an aggregator, and to each other.
TEST_F(VerifyBits, FindsEveryBitRightWhereHostsReduceFirst) {
  const std::string verify =
      "TRIBUTARY_LOCAL=auto TRIBUTARY_HOST_ID=worker-$((RANK / 2)) exec " TRIBUTARY_PROGRAM " verify-bits -e 5000";
  const Outcome outcome = work_.tributary(
      {"run", "--ranks", "4", "--aggregators", "3", "--levels", "2", "--lanes", "2", "--", "sh", "-c", verify});
  EXPECT_EQ(outcome.code, 0) << outcome.output << outcome.error;
  EXPECT_THAT(outcome.output,
              AllOf(ContainsRegex("2 hosts, trees, 1 level.s., 2 lane.s. +float64 +[1-9][0-9]* +[1-9][0-9]* +0  yes"),
                    ContainsRegex("2 hosts, between leaders +bfloat16 +[1-9][0-9]* +[1-9][0-9]* +0  yes"),
                    ContainsRegex("# 2 hosts, trees, .*: bytes in-network [1-9][0-9]*, between the ranks 0,"),
                    ContainsRegex("# 2 hosts, between leaders: bytes in-network 0, between the ranks [1-9][0-9]*,"),
                    HasSubstr("# every bit is right")));
}

TEST_F(VerifyBits, FindsEveryBitRightWhileAnAggregatorIsKilled) {
  cli::ChildProcess process =
      work_.start(command_line({"--aggregators", "3", "--levels", "2"}, {"-e", "5000", "-n", "4"}));
  const auto aggregators = [&] { return descendants(process.pid(), "tributary-aggregator"); };
  ASSERT_TRUE(eventually([&] { return read_file(work_.path("output")).contains("# begins"); }));
  const auto alive = aggregators();
  ASSERT_EQ(alive.size(), 3U);
  kill(alive.back(), SIGKILL);
  const Outcome outcome = work_.finish(std::move(process), std::chrono::seconds(400));  // 75 s under ThreadSanitizer
  EXPECT_EQ(outcome.code, 0) << outcome.output << outcome.error;
  EXPECT_THAT(outcome.output,
              AllOf(HasSubstr("# every bit is right"), ContainsRegex("trees were lost [1-9][0-9]* time")));
}

#ifdef TRIBUTARY_WRONG_SUMS
TEST_F(VerifyBits, SeesAWrongBitOfOneRank) {
  work_.variables["LD_PRELOAD"] = TRIBUTARY_WRONG_SUMS;
  const Outcome outcome = work_.tributary(command_line({"--aggregators", "1"}, {"-e", "5000"}));
  EXPECT_EQ(outcome.code, 1) << outcome.error;
  EXPECT_THAT(
      outcome.output,
      AllOf(ContainsRegex("between the ranks +float32 +[1-9][0-9]* +[1-9][0-9]* +[1-9][0-9]*  NO"),
            ContainsRegex("between the ranks +float64 +[1-9][0-9]* +[1-9][0-9]* +0  yes"), HasSubstr("# WRONG BITS")));
  EXPECT_THAT(outcome.error, ContainsRegex("rank 1: .*all_reduce .sum. of 1023 float32, gaussian, seed 1: element 1000 "
                                           "is 0x[0-9A-F]+, not 0x[0-9A-F]+"));
}
#endif

TEST_F(VerifyBits, RequiresTreesWhereItIsTold) {
  const Outcome outcome = work_.tributary(command_line({"--aggregators", "0"}, {"--require", "in-network", "-e", "1"}));
  EXPECT_NE(outcome.code, 0) << outcome.output;
}

}  // namespace
}  // namespace tributary::cli_test
