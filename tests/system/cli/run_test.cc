// `tributary run`: the ranks' environment, the exit codes, and the end: however the command ends, it leaves no process
// or file behind.
#include <gmock/gmock.h>
#include <unistd.h>

#include <csignal>

#include "tests/system/cli/command.h"

namespace tributary::cli_test {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::UnorderedElementsAre;

class RunCommand : public testing::Test {
 protected:
  [[nodiscard]] Outcome run(std::vector<std::string> options, const std::string& script) const {
    return work_.finish(start(std::move(options), script));
  }
  [[nodiscard]] cli::ChildProcess start(std::vector<std::string> options, const std::string& script) const {
    options.insert(options.begin(), "run");
    options.insert(options.end(), {"--", "sh", "-c", script});
    return work_.start(options);
  }
  /// True if the ranks have written this many lines.
  [[nodiscard]] bool wait_for_lines(std::size_t number) const {
    return eventually([&] { return lines_of(read_file(work_.path("output"))).size() >= number; });
  }

  Workplace work_;
};

TEST_F(RunCommand, TellsEveryRankItsPlace) {
  const Outcome outcome =
      run({"--ranks", "3", "--aggregators", "0", "--prefix"},
          "echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $MASTER_ADDR manager:$TRIBUTARY_MANAGER; "
          "test $MASTER_PORT -gt 1024 || echo bad port >&2");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(lines_of(outcome.output),
              UnorderedElementsAre("[0] 0 0 3 3 127.0.0.1 manager:", "[1] 1 1 3 3 127.0.0.1 manager:",
                                   "[2] 2 2 3 3 127.0.0.1 manager:"));
  EXPECT_EQ(outcome.error, "");
}

TEST_F(RunCommand, TellsEveryRankWhereTheServiceIs) {
  const Outcome outcome =
      run({"--ranks", "2", "--aggregators", "1", "--lanes", "2", "--prefix"},
          "echo $TRIBUTARY_HOST_ID $TRIBUTARY_LANES; test -r $TRIBUTARY_TOKEN_FILE && " TRIBUTARY_PROGRAM
          " status --output json | grep -c '\"active\": 1'");
  EXPECT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_THAT(lines_of(outcome.output), UnorderedElementsAre("[0] worker-0 2", "[1] worker-1 2", "[0] 1", "[1] 1"));
  EXPECT_EQ(work_.left_behind(), "");
}

TEST_F(RunCommand, LeavesTheNumberOfLanesToTheManagerUnlessToldOne) {
  const Outcome outcome = run({"--ranks", "2", "--aggregators", "1"}, "echo $TRIBUTARY_LANES");
  EXPECT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_THAT(lines_of(outcome.output), ElementsAre("auto", "auto"));
}

TEST_F(RunCommand, KeepsLinesWholeAndEndsTheLastOne) {
  const Outcome outcome = run({"--ranks", "2", "--aggregators", "0", "--prefix"},
                              "printf first; printf ' half\\n'; printf 'no end'; echo to stderr >&2");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(lines_of(outcome.output),
              UnorderedElementsAre("[0] first half", "[1] first half", "[0] no end", "[1] no end"));
  EXPECT_THAT(lines_of(outcome.error), UnorderedElementsAre("[0] to stderr", "[1] to stderr"));
}

TEST_F(RunCommand, GivesTheCommandItsOwnOptionsUntouched) {
  const Outcome outcome =
      work_.tributary({"run", "--ranks", "1", "--aggregators", "0", "--", "echo", "--ranks", "--", "-n", "run"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.output, "--ranks -- -n run\n");
}

TEST_F(RunCommand, EndsWithTheExitCodeOfTheFirstFailure) {
  const Outcome outcome =
      run({"--ranks", "4", "--aggregators", "0", "--grace", "0"}, "test $RANK = 2 && exit 7; exec sleep 100");
  EXPECT_EQ(outcome.code, 7);
  EXPECT_THAT(outcome.error, HasSubstr("rank 2 ended with exit code 7"));
  EXPECT_EQ(work_.left_behind(), "");
}

TEST_F(RunCommand, EndsWithTheCodeOfTheRankThatFailedFirstEvenIfAnotherRankEndsBeforeIt) {
  const std::string after_the_other = "while kill -0 $(cat " + work_.path("pid") + "); do sleep 0.1; done; ";
  for (const auto& [cause, code] : {std::pair("exit 69", 69), {"exit 1", 1}, {"kill -9 $$", 128 + SIGKILL}}) {
    const Outcome outcome =
        run({"--ranks", "2", "--aggregators", "0", "--grace", "20"},
            "test $RANK = 1 && { echo $$ >" + work_.path("pid.new") + "; mv " + work_.path("pid.new") + " " +
                work_.path("pid") + "; exit 75; }; until test -e " + work_.path("pid") + "; do sleep 0.1; done; " +
                after_the_other + "rm " + work_.path("pid") + "; " + cause);
    EXPECT_EQ(outcome.code, code) << outcome.error;
    EXPECT_THAT(outcome.error, HasSubstr("rank 1 ended with exit code 75"));
  }
}

TEST_F(RunCommand, SaysThatAnotherRankHasFailedIfEveryRankSaysSo) {
  const Outcome outcome = run({"--ranks", "3", "--aggregators", "0", "--grace", "0.2"},
                              "test $RANK = 1 || exit 75; exec sleep 100");  // SIGTERM ends rank 1: no cause
  EXPECT_EQ(outcome.code, 75) << outcome.error;
}

TEST_F(RunCommand, EndsAsAShellDoesWhenARankIsKilled) {
  const Outcome outcome =
      run({"--ranks", "3", "--aggregators", "0", "--grace", "0"}, "test $RANK = 1 && kill -9 $$; exec sleep 100");
  EXPECT_EQ(outcome.code, 128 + SIGKILL);
  EXPECT_THAT(outcome.error, HasSubstr("rank 1 was killed by signal 9"));
}

TEST_F(RunCommand, LetsTheOtherRanksWriteTheirLastLines) {
  const Outcome outcome = run({"--ranks", "2", "--aggregators", "0", "--grace", "20", "--prefix"},
                              "test $RANK = 1 && exit 3; sleep 0.5; echo last words; exit 4");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(outcome.output, "[0] last words\n");
}

TEST_F(RunCommand, KillsRanksThatIgnoreTheRequestToEnd) {
  const Outcome outcome = run({"--ranks", "2", "--aggregators", "0", "--grace", "0.2"},
                              "test $RANK = 1 && exit 3; trap '' TERM; while true; do sleep 0.1; done");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(work_.left_behind(), "");
}

TEST_F(RunCommand, KillsWhatARankHasLeftRunning) {
  const Outcome outcome = run({"--ranks", "2", "--aggregators", "0"}, "sleep 1000 & exit 0");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(work_.left_behind(), "");
}

TEST_F(RunCommand, SaysThatThereIsNoSuchCommand) {
  const Outcome outcome = work_.tributary({"run", "--ranks", "2", "--aggregators", "0", "--", "no-such-command"});
  EXPECT_EQ(outcome.code, 127);
  EXPECT_THAT(outcome.error, HasSubstr("'no-such-command'"));
  EXPECT_EQ(work_.left_behind(), "");
}

TEST_F(RunCommand, StopsEverythingWhenItIsAskedTo) {
  cli::ChildProcess process = start({"--ranks", "2", "--aggregators", "2"}, "echo here; exec sleep 1000");
  ASSERT_TRUE(wait_for_lines(2));
  kill(process.pid(), SIGTERM);  // only the process, not its process group
  const Outcome outcome = work_.finish(std::move(process), seconds(60));
  EXPECT_EQ(outcome.code, 128 + SIGTERM) << outcome.error;
  EXPECT_EQ(work_.left_behind(), "");
}

TEST_F(RunCommand, StopsEverythingWhenTheTerminalInterruptsIt) {
  cli::ChildProcess process = start({"--ranks", "2", "--aggregators", "1"},
                                    "trap 'echo bye; exit 0' TERM; echo here; while true; do sleep 0.1; done");
  ASSERT_TRUE(wait_for_lines(2));
  kill(process.pid(), SIGINT);
  const Outcome outcome = work_.finish(std::move(process), seconds(60));
  EXPECT_EQ(outcome.code, 128 + SIGINT) << outcome.error;
  EXPECT_THAT(lines_of(outcome.output), ElementsAre("here", "here", "bye", "bye"));
  EXPECT_EQ(work_.left_behind(), "");
}

TEST_F(RunCommand, LeavesNothingBehindEvenWhenItIsKilled) {
  cli::ChildProcess process = start({"--ranks", "2", "--aggregators", "2"}, "echo here; sleep 1000 & sleep 1000");
  ASSERT_TRUE(wait_for_lines(2));
  EXPECT_THAT(work_.left_behind(), HasSubstr("tributary-aggregator"));
  kill(process.pid(), SIGKILL);
  const Outcome outcome = work_.finish(std::move(process));
  EXPECT_EQ(outcome.code, 128 + SIGKILL);
  EXPECT_EQ(work_.left_behind_after(seconds(20)), "");
}

TEST_F(RunCommand, InterruptedWhileTheServiceStartsLeavesNothingBehind) {
  cli::ChildProcess process = start({"--ranks", "2", "--aggregators", "8"}, "exec sleep 1000");
  ASSERT_TRUE(eventually([&] { return work_.left_behind().contains("tributary-manager"); }));
  kill(process.pid(), SIGTERM);
  const Outcome outcome = work_.finish(std::move(process), seconds(60));
  EXPECT_EQ(outcome.code, 128 + SIGTERM) << outcome.error;
  EXPECT_EQ(work_.left_behind(), "");
}

TEST_F(RunCommand, TellsWhenAnAggregatorDiesAndGoesOn) {
  const Outcome outcome =
      run({"--ranks", "2", "--aggregators", "1", "--prefix"},
          "test $RANK = 0 && for p in $(cat /proc/$PPID/task/$PPID/children); do "
          "test \"$(cat /proc/$p/comm)\" = tributary-aggre && kill -9 $p; done; sleep 0.5; echo goes on");
  EXPECT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_THAT(outcome.error, HasSubstr("aggregator-0 was killed by signal 9"));
  EXPECT_THAT(lines_of(outcome.output), UnorderedElementsAre("[0] goes on", "[1] goes on"));
}

TEST_F(RunCommand, KeepsTheLogsWhenAsked) {
  const Outcome outcome = run({"--ranks", "1", "--aggregators", "1", "--keep"}, "exit 0");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.error, HasSubstr("logs are in " + work_.path("tmp")));
  EXPECT_THAT(work_.left_behind(), HasSubstr("file "));
  EXPECT_THAT(work_.left_behind(), Not(HasSubstr("process ")));
}

}  // namespace
}  // namespace tributary::cli_test
