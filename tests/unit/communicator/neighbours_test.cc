// Ranks of one host see whether another one's process is stopped, or waits for a processor.
#include "client/operation/neighbours.h"

#include <gmock/gmock.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <thread>

#include "client/control/witnesses.h"
#include "client/operation/late_process.h"
#include "client/operation/own_troubles.h"
#include "tests/unit/manager/temporary_folder.h"

namespace tributary::client {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint32_t kRank = 5;

/// A child process that runs a function until the end of the test.
class Process {
 public:
  explicit Process(const std::function<void()>& run) : number_(fork()) {
    if (number_ != 0) return;
    run();
    _exit(0);
  }
  ~Process() {
    kill(number_, SIGKILL);
    waitpid(number_, nullptr, 0);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  [[nodiscard]] pid_t number() const noexcept { return number_; }
  void stop() const {
    kill(number_, SIGSTOP);
    waitpid(number_, nullptr, WUNTRACED);
  }

 private:
  pid_t number_;
};

void sleep_for_ever() {
  while (true) pause();
}

void compute_on(unsigned processor) {
  cpu_set_t one{};
  CPU_ZERO(&one);
  CPU_SET(processor, &one);
  sched_setaffinity(0, sizeof one, &one);
  for (volatile bool more = true; more;) {
  }
}

std::optional<Sighting> sight_after(Neighbours& neighbours, std::chrono::milliseconds time) {
  EXPECT_EQ(neighbours.sight(kRank, LateProcess::TimePoint::clock::now()), std::nullopt) << "it begins to look";
  std::this_thread::sleep_for(time);
  return neighbours.sight(kRank, LateProcess::TimePoint::clock::now());
}

TEST(Neighbours, SeeThatAProcessIsStopped) {
  const Process process(sleep_for_ever);
  Neighbours neighbours;
  EXPECT_EQ(neighbours.sight(kRank, LateProcess::TimePoint{1h}), std::nullopt);
  neighbours.learn(kRank, process.number());
  process.stop();
  EXPECT_EQ(neighbours.sight(kRank, LateProcess::TimePoint{1h}), (Sighting{.rank = kRank, .stopped = true}));
  EXPECT_EQ(neighbours.sight(kRank, LateProcess::TimePoint{1h} + Neighbours::kPause - 1ms), std::nullopt)
      << "it does not look so often";
  EXPECT_NE(neighbours.sight(kRank, LateProcess::TimePoint{1h} + Neighbours::kPause), std::nullopt);
  EXPECT_EQ(neighbours.sight(kRank + 1, LateProcess::TimePoint{2h}), std::nullopt);
}

TEST(Neighbours, AProcessThatSleepsDoesNotWaitForAProcessor) {
  const Process process(sleep_for_ever);
  Neighbours neighbours;
  neighbours.learn(kRank, process.number());
  const auto sighting = sight_after(neighbours, 300ms);
  ASSERT_TRUE(sighting);
  EXPECT_FALSE(sighting->stopped);
  EXPECT_LT(sighting->processor_wait, RankTroubles::kProcessorWaitMin);
}

TEST(Neighbours, SeeThatAProcessWaitsForAProcessor) {
  if (!processor_wait("/proc/self/schedstat")) GTEST_SKIP() << "the kernel does not count how long threads wait";
  const auto processor = static_cast<unsigned>(std::max(sched_getcpu(), 0));
  std::vector<std::unique_ptr<Process>> processes;
  for (int i = 0; i < 4; ++i) processes.push_back(std::make_unique<Process>([=] { compute_on(processor); }));
  std::this_thread::sleep_for(100ms);
  Neighbours neighbours;
  neighbours.learn(kRank, processes[0]->number());
  const auto sighting = sight_after(neighbours, 500ms);
  ASSERT_TRUE(sighting);
  EXPECT_FALSE(sighting->stopped);
  EXPECT_GE(sighting->processor_wait, RankTroubles::kProcessorWaitMin);
  EXPECT_EQ(sighting->cause(LateCause::silent), LateCause::no_cpu);
}

/// Files like those of /proc about a process with two threads, whose numbers are those of two threads of this test.
class Files {
 public:
  explicit Files(std::array<pid_t, 2> threads) : threads_(threads) { std::ofstream(folder() + "/stat") << kRuns; }
  /// Tells for how long each thread ran, and how long it waited, since it began.
  void write(std::chrono::nanoseconds ran, std::chrono::nanoseconds waited) const {
    for (const pid_t thread : threads_) {
      const std::string task = folder() + "/task/" + std::to_string(thread);
      std::filesystem::create_directories(task);
      std::ofstream(task + "/stat") << kRuns;
      std::ofstream(task + "/schedstat") << ran.count() << ' ' << waited.count() << " 1\n";
    }
  }
  [[nodiscard]] std::string folder() const { return folder_.path(); }

 private:
  static constexpr const char* kRuns = "1 (name) R 0\n";
  std::array<pid_t, 2> threads_;
  manager::TemporaryFolder folder_;
};

/// Calls a function while a second thread and this one may run on one processor only, with their numbers.
template <class Function>
void on_one_processor(Function&& function) {
  std::thread([&] {
    cpu_set_t one{};
    CPU_SET(static_cast<unsigned>(std::max(sched_getcpu(), 0)), &one);
    sched_setaffinity(0, sizeof one, &one);
    std::promise<pid_t> number;
    std::promise<void> over;
    std::thread second([&] {
      number.set_value(gettid());
      over.get_future().wait();
    });
    function(std::array{gettid(), number.get_future().get()});
    over.set_value();
    second.join();
  }).join();
}

TEST(LateProcess, ThatFillsItsProcessorsItselfDoesNotWaitForOne) {
  on_one_processor([](std::array<pid_t, 2> threads) {
    // Each second each thread ran for `ran` and waited for the rest.
    for (const auto& [ran, wait] : {std::pair{480ms, 0}, std::pair{400ms, 60}}) {
      const Files files(threads);
      const LateProcess::TimePoint begin{1h};
      files.write(1s, 1s);
      LateProcess process;
      process.look(kRank, files.folder(), begin);
      files.write(1s + ran, 2s - ran);
      const auto sighting = process.sight(kRank, files.folder(), begin + 1s);
      ASSERT_TRUE(sighting);
      EXPECT_EQ(sighting->processor_wait, wait) << ran.count();
    }
  });
}

TEST(Neighbours, AProcessThatHasEndedIsNotSeen) {
  Neighbours neighbours;
  {
    const Process process(sleep_for_ever);
    neighbours.learn(kRank, process.number());
  }
  EXPECT_EQ(sight_after(neighbours, 300ms), std::nullopt);
}

TEST(Witnesses, AreTheNextRanksOfTheHost) {
  Witnesses witnesses;
  for (const std::uint32_t rank : {0U, 1U, 2U, 3U, 4U, 5U, 6U})
    witnesses.learn(rank, {.space = rank % 2 == 0 ? "a" : "b", .number = static_cast<pid_t>(100 + rank)});
  EXPECT_THAT(witnesses.of(0), ElementsAre(2U, 4U));
  EXPECT_THAT(witnesses.of(4), ElementsAre(6U, 0U));
  EXPECT_THAT(witnesses.of(5), ElementsAre(1U, 3U));
  EXPECT_THAT(witnesses.seen_by(0), ElementsAre(NeighbourProcess{6, 106}, NeighbourProcess{4, 104}));
  for (std::uint32_t rank = 0; rank < 7; ++rank) {
    for (const std::uint32_t witness : witnesses.of(rank))
      EXPECT_THAT(witnesses.seen_by(witness),
                  testing::Contains(NeighbourProcess{rank, static_cast<pid_t>(100 + rank)}));
  }
}

TEST(Witnesses, AreInOtherProcessesThatAreKnown) {
  Witnesses witnesses;
  witnesses.learn(0, {.space = "a", .number = 100});
  EXPECT_THAT(witnesses.of(0), IsEmpty());
  witnesses.learn(1, {.space = "a", .number = 100});
  witnesses.learn(2, {.space = "", .number = 102});
  witnesses.learn(3, {.space = "a", .number = 0});
  EXPECT_THAT(witnesses.of(0), IsEmpty());
  EXPECT_THAT(witnesses.of(2), IsEmpty());
  witnesses.learn(4, {.space = "a", .number = 104});
  EXPECT_THAT(witnesses.of(1), ElementsAre(4U));
  EXPECT_THAT(witnesses.of(4), ElementsAre(0U, 1U));
}

TEST(OwnProcess, IsSeenByItsNumber) {
  const ProcessPlace place = own_process_place();
  EXPECT_EQ(place.number, getpid());
  EXPECT_FALSE(place.space.empty());
}

}  // namespace
}  // namespace tributary::client
