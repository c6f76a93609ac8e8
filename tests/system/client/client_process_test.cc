// Ranks as processes: one rank is killed, or hangs, and every other rank gets in time an error that names it.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>

#include "tests/system/client/group.h"

namespace tributary::test {
namespace {

using Clock = std::chrono::steady_clock;

/// A child of this process, which prints lines for the test. The destructor kills it and waits for its end.
class RankProcess {
 public:
  RankProcess(int rank, int nranks, Milliseconds timeout, const std::string& scenario, const std::string& id) {
    std::vector<std::string> arguments{TRIBUTARY_RANK_PROCESS, std::to_string(rank), std::to_string(nranks),
                                       std::to_string(timeout.count()), scenario};
    if (!id.empty()) arguments.push_back(id);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    int ends[2];
    if (pipe(ends) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      dup2(ends[1], STDOUT_FILENO);
      close(ends[0]);
      close(ends[1]);
      execv(argv[0], argv.data());
      _exit(127);
    }
    close(ends[1]);
    out_ = fdopen(ends[0], "r");
  }
  ~RankProcess() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    if (out_ != nullptr) fclose(out_);
  }
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;

  void signal(int number) const { kill(pid_, number); }
  /// Returns the rest of the child's next line that begins with `word`; nullopt at the end of its output.
  [[nodiscard]] std::optional<std::string> next(const std::string& word) {
    char line[4096];
    while (out_ != nullptr && std::fgets(line, sizeof line, out_) != nullptr) {
      std::string text(line);
      text.pop_back();  // the newline
      if (text.starts_with(word)) return text.substr(std::min(text.size(), word.size() + 1));
      if (text.starts_with("failed")) ADD_FAILURE() << text;
    }
    return std::nullopt;
  }

 private:
  pid_t pid_ = -1;
  FILE* out_ = nullptr;
};

struct Plan {
  int nranks = 3;
  int victim = 1;
  int signal = SIGKILL;
  std::string scenario = "reduce";
  std::string victims_scenario = "reduce";
};

/// Runs the plan, and checks the reports of the other ranks and their times.
void expect_error_on_all_others(const Plan& plan, tributary_status expected) {
  const Milliseconds timeout = patience(Milliseconds(3000));
  std::vector<std::unique_ptr<RankProcess>> ranks;
  std::string id;
  for (int rank = 0; rank < plan.nranks; ++rank) {
    ranks.push_back(std::make_unique<RankProcess>(rank, plan.nranks, timeout,
                                                  rank == plan.victim ? plan.victims_scenario : plan.scenario, id));
    if (rank > 0) continue;
    id = ranks[0]->next("id").value_or("");
    ASSERT_FALSE(id.empty());
  }
  for (const auto& rank : ranks) ASSERT_TRUE(rank->next("ready").has_value());
  ranks[static_cast<std::size_t>(plan.victim)]->signal(plan.signal);
  const auto begin = Clock::now();
  for (int rank = 0; rank < plan.nranks; ++rank) {
    if (rank == plan.victim) continue;
    const std::string end = ranks[static_cast<std::size_t>(rank)]->next("end").value_or("0 no end");
    EXPECT_LT(Clock::now() - begin, timeout + patience(Milliseconds(1000))) << "rank " << rank;
    EXPECT_EQ(end.substr(0, end.find(' ')), std::to_string(static_cast<int>(expected)))
        << "rank " << rank << ": " << end;
    EXPECT_NE(end.find("rank " + std::to_string(plan.victim)), std::string::npos) << "rank " << rank << ": " << end;
  }
}

TEST(Processes, ARankKilledInTheMiddleIsNamedOnAllOthers) {
  expect_error_on_all_others({.nranks = 4, .victim = 2}, TRIBUTARY_ERROR_PEER_GONE);
}

TEST(Processes, Rank0KilledInTheMiddleIsNamedOnAllOthers) {
  expect_error_on_all_others({.victim = 0}, TRIBUTARY_ERROR_PEER_GONE);
}

TEST(Processes, ARankKilledWhileOthersWaitForItIsNamed) {
  expect_error_on_all_others({.scenario = "barrier", .victims_scenario = "absent"}, TRIBUTARY_ERROR_PEER_GONE);
}

TEST(Processes, ARankThatHangsInTheMiddleIsNamedWithinTheTimeOut) {
  expect_error_on_all_others({.nranks = 4, .victim = 2, .signal = SIGSTOP}, TRIBUTARY_ERROR_TIMED_OUT);
}

TEST(Processes, Rank0HangingIsNamedWithinTheTimeOut) {
  expect_error_on_all_others({.victim = 0, .signal = SIGSTOP}, TRIBUTARY_ERROR_TIMED_OUT);
}

// The transport's own time-outs must have no effect: in an earlier version, five seconds of silence ended a connection
// over packets.
TEST(Processes, ARankThatStandsStillForLessThanTheTimeOutIsNoError) {
  constexpr int kNranks = 3, kStopped = 1;
  std::vector<std::unique_ptr<RankProcess>> ranks;
  std::string id;
  for (int rank = 0; rank < kNranks; ++rank) {
    ranks.push_back(std::make_unique<RankProcess>(rank, kNranks, patience(Milliseconds(30'000)),
                                                  rank == kStopped ? "late" : "barrier", id));
    if (rank == 0) id = ranks[0]->next("id").value_or("");
  }
  for (const auto& rank : ranks) ASSERT_TRUE(rank->next("ready").has_value());
  ranks[kStopped]->signal(SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(7));  // the rank stands still for this long
  ranks[kStopped]->signal(SIGCONT);
  for (const auto& rank : ranks) EXPECT_EQ(rank->next("end").value_or("none").substr(0, 2), "0 ");
}

TEST(Processes, ARankThatDoesNotCallIsNamedWithinTheTimeOut) {
  expect_error_on_all_others({.signal = 0, .scenario = "barrier", .victims_scenario = "absent"},
                             TRIBUTARY_ERROR_TIMED_OUT);
}

TEST(Processes, ARankThatCallsSomethingElseIsAMismatchOnAllOthers) {
  expect_error_on_all_others({.signal = 0, .victims_scenario = "other"}, TRIBUTARY_ERROR_MISMATCH);
}

/// Kills a rank in mid-operation. The others then go on without it.
void expect_others_to_go_on(int victim) {
  constexpr int kNranks = 4;
  std::vector<std::unique_ptr<RankProcess>> ranks;
  std::string id;
  for (int rank = 0; rank < kNranks; ++rank) {
    ranks.push_back(std::make_unique<RankProcess>(rank, kNranks, patience(Milliseconds(10'000)),
                                                  "shrink:" + std::to_string(victim), id));
    if (rank == 0) id = ranks[0]->next("id").value_or("");
  }
  for (const auto& rank : ranks) ASSERT_TRUE(rank->next("prepared").has_value());
  ranks[static_cast<std::size_t>(victim)]->signal(SIGKILL);
  for (int rank = 0; rank < kNranks; ++rank) {
    if (rank == victim) continue;
    EXPECT_EQ(ranks[static_cast<std::size_t>(rank)]->next("end").value_or("none"), "0") << "rank " << rank;
  }
}

TEST(Processes, TheOthersGoOnWithoutAKilledRank) {
  expect_others_to_go_on(2);
}

TEST(Processes, TheOthersGoOnWithoutAKilledRank0) {
  expect_others_to_go_on(0);
}

TEST(Processes, MixMessagesAndCollectivesOfSeveralThreadsAndCommunicators) {
  const std::string path = shares_memory() ? "local local" : "fallback fallback";
  std::vector<std::unique_ptr<RankProcess>> ranks;
  std::string id;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.push_back(std::make_unique<RankProcess>(rank, 3, patience(Milliseconds(60'000)), "mixed", id));
    if (rank == 0) id = ranks[0]->next("id").value_or("");
  }
  for (const auto& rank : ranks) {
    EXPECT_EQ(rank->next("path").value_or("none"), path);
    EXPECT_EQ(rank->next("end").value_or("none").substr(0, 2), "0 ");
  }
}

}  // namespace
}  // namespace tributary::test
