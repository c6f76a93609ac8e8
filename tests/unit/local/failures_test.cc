// Ranks that disagree, die or hang: every rank gets an error in time that names the rank.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <new>

#include "client/collectives/local/late_calls.h"
#include "client/collectives/local/late_watch.h"
#include "tests/unit/local/threads.h"

namespace tributary::client::local {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

Call call(Collective collective, std::vector<float>& send, std::vector<float>& recv, std::size_t count,
          std::uint64_t number = 0, std::uint32_t root = 0) {
  return {.signature = {.collective = collective, .dtype = DType::float32, .root = root, .count = count},
          .send = reinterpret_cast<const std::byte*>(send.data()),
          .recv = reinterpret_cast<std::byte*>(recv.data()),
          .number = number};
}

TEST(LocalFailures, RanksThatDisagreeGetTheSameError) {
  struct Variant {
    Collective collective;
    std::size_t count;
    std::uint32_t root;
    const char* words;
  };
  for (const Variant& v :
       {Variant{Collective::all_reduce, 11, 0, "rank 2 called all_reduce of 11 float32 (sum)"},
        Variant{Collective::all_reduce, 5000, 0, "rank 2 called all_reduce of 5000 float32 (sum)"},
        Variant{Collective::barrier, 0, 0, "rank 2 called barrier"},
        Variant{Collective::broadcast, 10, 1, "rank 2 called broadcast of 10 float32 from rank 1"}}) {
    std::vector<std::string> said(3);
    run_ranks(settings_of(3), [&](LocalGroup& group) {
      std::vector<float> send(5000), recv(5000);
      const Status& status = group.rank() == 2 ? group.run(call(v.collective, send, recv, v.count, 7, v.root))
                                               : group.run(call(Collective::all_reduce, send, recv, 10, 7));
      ASSERT_FALSE(status);
      EXPECT_EQ(status.error().code, Errc::mismatch);
      said[group.rank()] = status.error().message;
      EXPECT_EQ(group.run(call(Collective::barrier, send, recv, 0, 8)).error().message, said[group.rank()])
          << "a group that has failed once stays failed";
    });
    EXPECT_EQ(said[0], std::string("operation 7: rank 0 called all_reduce of 10 float32 (sum), ") + v.words);
    EXPECT_EQ(said[1], said[0]);
    EXPECT_EQ(said[2], said[0]);
  }
}

TEST(LocalFailures, ARankThatDoesNotComeIsNamedWithinTheTimeOut) {
  const auto start = std::chrono::steady_clock::now();
  run_ranks(settings_of(3, 300ms), [](LocalGroup& group) {
    std::vector<float> data(5000), out(5000);
    if (group.rank() == 1) {
      while (!group.failed()) std::this_thread::sleep_for(1ms);
      return;
    }
    const Status& status = group.run(call(Collective::all_reduce, data, out, 5000, 3));
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Errc::timed_out);
    EXPECT_THAT(status.error().message, HasSubstr("rank 1 on host here"));
    EXPECT_THAT(status.error().message, HasSubstr("operation 3 (all_reduce of 5000 float32 (sum))"));
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
}

TEST(LocalFailures, ARankThatHasLeftIsNamedAtOnce) {
  const GroupSettings settings = settings_of(2);
  auto arena = create_arena(settings);
  ASSERT_TRUE(arena);
  LocalGroup stays(*arena, settings);
  {
    GroupSettings other = settings;
    other.rank = 1;
    const LocalGroup leaves(*arena, other);
  }
  std::vector<float> data(8), out(8);
  const Status& status = stays.run(call(Collective::all_reduce, data, out, 8));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Errc::peer_gone);
  EXPECT_THAT(status.error().message, HasSubstr("rank 1 on host here has left"));
}

TEST(LocalFailures, FailEndsCallsThatWaitOnEveryRank) {
  std::atomic<int> waiting = 0;
  run_ranks(settings_of(3), [&](LocalGroup& group) {
    std::vector<float> data(8), out(8);
    if (group.rank() == 2) {
      while (waiting.load() < 2) std::this_thread::sleep_for(1ms);
      std::this_thread::sleep_for(20ms);
      return group.fail({Errc::aborted, "enough"});
    }
    ++waiting;
    const Status& status = group.run(call(Collective::all_reduce, data, out, 8));
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Errc::aborted);
    EXPECT_EQ(status.error().message, "enough; here operation 0 (all_reduce of 8 float32 (sum))");
  });
}

/// A child's report of its end, in memory that it shares with the test.
struct Report {
  std::atomic<int> ready;
  int code;
  char text[512];
};

FileDescriptor process_of(pid_t pid) {
  return FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

void kill_one_of(std::uint32_t ranks, std::size_t count) {
  constexpr std::uint32_t kVictim = 1;
  GroupSettings settings = settings_of(ranks, 60s);
  auto arena = create_arena(settings);
  ASSERT_TRUE(arena);
  void* at = mmap(nullptr, ranks * sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(at, MAP_FAILED);
  auto* reports = static_cast<Report*>(at);
  std::vector<pid_t> pids;
  // Fork the victim first: later processes can then open it.
  for (const std::uint32_t rank : {kVictim, 0U, 2U}) {
    const pid_t pid = fork();
    if (pid != 0) {
      pids.push_back(pid);
      continue;
    }
    std::vector<FileDescriptor> processes(ranks);
    for (auto& process : processes) process = process_of(getpid());
    if (rank != kVictim) processes[kVictim] = process_of(pids[0]);
    settings.rank = rank;
    LocalGroup group(*arena, settings, std::move(processes));
    std::vector<float> data(count), out(count);
    for (std::uint64_t i = 0;; ++i) {
      const Status& status = group.run(call(Collective::all_reduce, data, out, count, i));
      if (i == 20) reports[rank].ready.store(1);
      if (status) continue;
      reports[rank].code = static_cast<int>(status.error().code);
      status.error().message.copy(reports[rank].text, sizeof reports[rank].text - 1);
      _exit(0);
    }
  }
  for (std::uint32_t r = 0; r < ranks; ++r) {
    while (reports[r].ready.load() == 0) usleep(1000);
  }
  const auto start = std::chrono::steady_clock::now();
  kill(pids[0], SIGKILL);
  for (const pid_t pid : pids) waitpid(pid, nullptr, 0);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 20s);
  for (const std::uint32_t r : {0U, 2U}) {
    EXPECT_EQ(reports[r].code, static_cast<int>(Errc::peer_gone)) << r;
    EXPECT_THAT(reports[r].text, HasSubstr("rank 1 on host here is gone")) << r;
  }
  munmap(at, ranks * sizeof(Report));
}

TEST(LocalFailures, AKilledProcessIsNamedByEveryOtherOne) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer does not go with fork()";
#endif
  if (!process_of(getpid()).open()) GTEST_SKIP() << "this kernel has no pidfd_open";
  kill_one_of(3, 4);
  kill_one_of(3, 100'000);
}

TEST(LocalFailures, NothingNamedIsLeftBehind) {
  auto arena = create_arena(settings_of(2));
  ASSERT_TRUE(arena);
  std::array<char, 256> target{};
  const std::string link = "/proc/self/fd/" + std::to_string((*arena)->descriptor());
  ASSERT_GT(readlink(link.c_str(), target.data(), target.size() - 1), 0);
  EXPECT_THAT(target.data(), HasSubstr("memfd:tributary"));
  EXPECT_THAT(target.data(), HasSubstr("(deleted)"));
}

TEST(LocalFailures, MemoryThatCouldShrinkIsRefused) {
  FileDescriptor unsealed(memfd_create("unsealed", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(unsealed.number(), 1 << 20), 0);
  const auto arena = Arena::adopt(std::move(unsealed), 4096);
  ASSERT_FALSE(arena);
  EXPECT_EQ(arena.error().code, Errc::corrupt);
}

TEST(LocalLateness, TheFirstRankThatWaitsNamesTheRankThatHasNotCalled) {
  for (const std::uint32_t late : {0U, 2U}) {
    const std::uint32_t teller = late == 0 ? 1 : 0;
    std::array<std::shared_ptr<LateLines>, 3> lines;
    auto settings = settings_of(3);
    auto arena = create_arena(settings);
    ASSERT_TRUE(arena);
    std::vector<std::unique_ptr<LocalGroup>> groups;
    for (settings.rank = 0; settings.rank < 3; ++settings.rank) {
      settings.late = lines[settings.rank] = std::make_shared<LateLines>();
      groups.push_back(std::make_unique<LocalGroup>(*arena, settings));
    }
    std::atomic<bool> go_on{false};
    std::vector<std::thread> threads;
    for (auto& group : groups) {
      threads.emplace_back([&] {
        std::vector<float> send(10), recv(10);
        while (group->rank() == late && !go_on) std::this_thread::sleep_for(1ms);
        EXPECT_TRUE(group->run(call(Collective::all_reduce, send, recv, 10)));
      });
    }
    std::vector<LateLines::Line> said;
    while (said.empty()) {
      std::this_thread::sleep_for(1ms);
      said = lines[teller]->take();
    }
    go_on = true;
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(said.size(), 1U);
    EXPECT_TRUE(said[0].late);
    EXPECT_THAT(said[0].text, testing::MatchesRegex("rank " + std::to_string(late) +
                                                    " on host here is late by [0-9]+ ms .it has not called the "
                                                    "operation.; 2 others wait"));
    const auto after = lines[teller]->take();
    ASSERT_EQ(after.size(), 1U);
    EXPECT_EQ(after[0].text, "rank " + std::to_string(late) + " on host here is no longer late");
    for (std::uint32_t rank = 0; rank < 3; ++rank) EXPECT_TRUE(lines[rank]->take().empty()) << "rank " << rank;
  }
}

TEST(LocalLateness, ShortWaitsForTheSameRankNameNobody) {
  std::array<std::shared_ptr<LateLines>, 3> lines;
  auto settings = settings_of(3);
  auto arena = create_arena(settings);
  ASSERT_TRUE(arena);
  std::vector<std::unique_ptr<LocalGroup>> groups;
  for (settings.rank = 0; settings.rank < 3; ++settings.rank) {
    settings.late = lines[settings.rank] = std::make_shared<LateLines>();
    groups.push_back(std::make_unique<LocalGroup>(*arena, settings));
  }
  std::vector<std::thread> threads;
  for (auto& group : groups) {
    threads.emplace_back([&] {
      std::vector<float> send(10), recv(10);
      for (int i = 0; i < 4; ++i) {
        if (group->rank() == 2) std::this_thread::sleep_for(30ms);
        EXPECT_TRUE(group->run(call(Collective::all_reduce, send, recv, 10)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::uint32_t rank = 0; rank < 3; ++rank) EXPECT_TRUE(lines[rank]->take().empty()) << "rank " << rank;
}

TEST(LocalLateness, AWaitingRankReadsTheKernelsFilesTenTimesASecond) {
  int looks = 0, lines = 0;
  LateWatch watch(
      {.members = 3, .ranks = 3, .name_of = [](std::uint32_t) { return "rank"; }},
      [&](const std::string&, bool) { ++lines; },
      [&](std::uint32_t) {
        ++looks;
        return std::string();
      });
  const LateWatch::TimePoint begin{1h};
  const Absences absences;
  watch.begin();
  for (auto time = 0ms; time <= 1200ms; time += 10ms) {
    watch.look(
        {.call = 1, .since = begin, .absences = absences},
        [] { return std::optional(LateWatch::Late{.rank = 2, .has_called = false}); }, begin + time);
    EXPECT_TRUE(looks == 0 || time >= LateWatch::kLookAfter) << time.count();
    EXPECT_EQ(lines, time < 1000ms ? 0 : 1) << time.count();
  }
  EXPECT_EQ(looks, 9) << "from 0.2 s to 1 s, and then no more until a second is over";
}

TEST(LocalLateness, ARankThatIsLateInTwoCallsIsLateAgain) {
  using namespace std::chrono_literals;
  LateCalls calls;
  const LateCalls::TimePoint now{1h};
  calls.waits(2, 10, now);
  calls.waits(2, 10, now + 100ms);
  EXPECT_FALSE(calls.again()) << "one call";
  calls.waits(1, 11, now + 1s);
  EXPECT_FALSE(calls.again()) << "another rank";
  calls.waits(1, 12, now + 2s);
  EXPECT_TRUE(calls.again());
  calls.waits(1, 12, now + 2100ms);
  EXPECT_TRUE(calls.again()) << "the same call";
  calls.waits(1, 13, now + 2100ms + LateCalls::kAgainWithin + 1ms);
  EXPECT_FALSE(calls.again()) << "long ago";
}

}  // namespace
}  // namespace tributary::client::local
