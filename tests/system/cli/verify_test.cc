// `tributary verify-bits` proves the bits of exact sums, also while aggregators are killed, and sees a wrong bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <thread>

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

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr const char* kElements = "1100";  // ThreadSanitizer makes a run twenty times as long
#else
constexpr const char* kElements = "5000";
#endif

class VerifyBits : public testing::Test {
 protected:
  VerifyBits() { work_.variables.erase("TRIBUTARY_BEGIN_WITHIN"); }  // the command waits longer than other tests
  [[nodiscard]] Outcome run(const std::vector<std::string>& line) { return finish(work_.start(line)); }
  [[nodiscard]] Outcome finish(cli::ChildProcess process) {
    return work_.finish(std::move(process), std::chrono::seconds(400));  // 170 s under ThreadSanitizer
  }
  Workplace work_;
};

TEST_F(VerifyBits, FindsEveryBitRightOnEveryPath) {
  const Outcome trees = run(command_line({"--aggregators", "3", "--levels", "2", "--lanes", "2"}, {"-e", kElements}));
  EXPECT_EQ(trees.code, 0) << trees.output << trees.error;
  EXPECT_THAT(trees.output,
              AllOf(ContainsRegex("trees, 2 level.s., 2 lane.s. +float64 +[1-9][0-9]* +[1-9][0-9]* +0  yes"),
                    ContainsRegex("between the ranks +bfloat16 +[1-9][0-9]* +[1-9][0-9]* +0  yes"),
                    HasSubstr("# every bit is right")));
  // The products go between the ranks.
  EXPECT_THAT(trees.output, ContainsRegex("# trees, 2 level.s., 2 lane.s.: bytes in-network [1-9][0-9]*, between the "
                                          "ranks [1-9][0-9]*, in shared memory 0; trees were lost 0 time"));
  EXPECT_THAT(trees.output, AllOf(ContainsRegex("trees, 2 level.s., 1 lane.s. +float32 +[1-9][0-9]* .* 0  yes"),
                                  ContainsRegex("trees, 2 level.s., 4 lane.s. +float32 +[1-9][0-9]* .* 0  yes"),
                                  ContainsRegex("reverse order, trees, 2 level.s., 2 lane.s. +float32 .* 0  yes")));
  const std::string verify = "exec " TRIBUTARY_PROGRAM " verify-bits -e " + std::string(kElements);
  const Outcome local = run({"run", "--ranks", "4", "--aggregators", "0", "--", "sh", "-c",
                             "TRIBUTARY_LOCAL=auto TRIBUTARY_HOST_ID=one " + verify});
  EXPECT_EQ(local.code, 0) << local.output << local.error;
  EXPECT_THAT(local.output, AllOf(HasSubstr("# no trees: "), ContainsRegex("shared memory +float16 .* 0  yes"),
                                  HasSubstr("# every bit is right")));
}

// Two hosts of two ranks: the leaders send forms to an aggregator, and to each other.
TEST_F(VerifyBits, FindsEveryBitRightWhereHostsReduceFirst) {
  const std::string verify = "TRIBUTARY_LOCAL=auto TRIBUTARY_HOST_ID=worker-$((RANK / 2)) exec " TRIBUTARY_PROGRAM
                             " verify-bits -e " +
                             std::string(kElements);
  const Outcome outcome =
      run({"run", "--ranks", "4", "--aggregators", "3", "--levels", "2", "--lanes", "2", "--", "sh", "-c", verify});
  EXPECT_EQ(outcome.code, 0) << outcome.output << outcome.error;
  EXPECT_THAT(outcome.output,
              AllOf(ContainsRegex("2 hosts, trees, 1 level.s., 2 lane.s. +float64 +[1-9][0-9]* +[1-9][0-9]* +0  yes"),
                    ContainsRegex("2 hosts, between leaders +bfloat16 +[1-9][0-9]* +[1-9][0-9]* +0  yes"),
                    ContainsRegex("# 2 hosts, trees, .*: bytes in-network [1-9][0-9]*, between the ranks [1-9][0-9]*,"),
                    ContainsRegex("# 2 hosts, between leaders: bytes in-network 0, between the ranks [1-9][0-9]*,"),
                    HasSubstr("# every bit is right")));
}

/// One layout of a job whose aggregators are killed while it verifies.
struct KillCase {
  std::string name;
  std::vector<std::string> options;  // of `tributary run`, for trees
  std::string variables;             // of each rank, which has RANK
  std::size_t aggregators;
  std::size_t kills;
  std::string path;  // a way's name, as the table has it
  std::string transport = "tcp";
};

class VerifyBitsUnderKills : public VerifyBits, public testing::WithParamInterface<KillCase> {};

TEST_P(VerifyBitsUnderKills, FindsEveryBitRight) {
  const KillCase& the = GetParam();
  work_.variables["TRIBUTARY_TRANSPORT"] = the.transport;
  std::vector<std::string> line{"run", "--ranks", "4"};
  line.insert(line.end(), the.options.begin(), the.options.end());
  const std::string verify = "exec env " + the.variables + " " TRIBUTARY_PROGRAM " verify-bits -e 1100 -n 3";
  line.insert(line.end(), {"--", "sh", "-c", verify});
  cli::ChildProcess process = work_.start(line);
  const auto aggregators = [&] { return descendants(process.pid(), "tributary-aggregator"); };
  ASSERT_TRUE(eventually([&] { return read_file(work_.path("output")).contains("# begins"); }));
  const auto alive = aggregators();
  ASSERT_EQ(alive.size(), the.aggregators);
  for (std::size_t i = 0; i < the.kills; ++i) {
    kill(alive[alive.size() - 1 - i], SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }
  const Outcome outcome = finish(std::move(process));
  EXPECT_EQ(outcome.code, 0) << outcome.output << outcome.error;
  EXPECT_THAT(outcome.output,
              AllOf(HasSubstr("# every bit is right"), ContainsRegex("trees were lost [1-9][0-9]* time"),
                    ContainsRegex(the.path + " +float64 +[1-9][0-9]* +[1-9][0-9]* +0  yes")));
}

// A covering set: levels 1 and 2, lanes 1 and 2, ranks alone on their hosts and in pairs, ranks of a host that are
// neighbours and that are not, TCP and UDP, one and all aggregators killed.
INSTANTIATE_TEST_SUITE_P(
    Covering, VerifyBitsUnderKills,
    testing::Values(
        KillCase{"two_levels", {"--aggregators", "3", "--levels", "2"}, "", 3, 1, "trees, 2 level.s., 1 lane.s."},
        KillCase{"one_level_two_lanes_all_killed",
                 {"--aggregators", "2", "--lanes", "2"},
                 "",
                 2,
                 2,
                 "trees, 1 level.s., 2 lane.s."},
        KillCase{
            "udp_two_levels", {"--aggregators", "3", "--levels", "2"}, "", 3, 1, "trees, 2 level.s., 1 lane.s.", "udp"},
        KillCase{"hosts_all_killed",
                 {"--aggregators", "3", "--levels", "2"},
                 "TRIBUTARY_LOCAL=auto TRIBUTARY_HOST_ID=worker-$((RANK / 2))",
                 3,
                 3,
                 "2 hosts, trees, [12] level.s., 1 lane.s."},
        KillCase{"hosts_of_far_ranks_two_lanes",
                 {"--aggregators", "2", "--lanes", "2"},
                 "TRIBUTARY_LOCAL=auto TRIBUTARY_HOST_ID=worker-$((RANK % 2))",
                 2,
                 1,
                 "2 hosts, trees, 1 level.s., 2 lane.s."}),
    [](const auto& the) { return the.param.name; });

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
