#include "client/plugins/mpi/turns.h"

#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <cstdint>

namespace tributary::mpi {
namespace {

void nothing() {}

void give_up_the_core_for_a_millisecond() {
  const timespec rest{.tv_sec = 0, .tv_nsec = 1'000'000};
  nanosleep(&rest, nullptr);  // the time passes without work, as when other ranks run
}

void move_data() {
  timespec begin{}, now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
  do {
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  } while (now.tv_sec == begin.tv_sec && now.tv_nsec - begin.tv_nsec < 200'000);
}

TEST(Turns, AreSeldomWhileTheyMoveNoData) {
  Turns turns;
  EXPECT_EQ(turns.begin(), 100'000);
  EXPECT_EQ(turns.run(&nothing), 200'000);
  EXPECT_EQ(turns.run(&nothing), 400'000);
  for (int turn = 0; turn < 5; ++turn) turns.run(&nothing);
  EXPECT_EQ(turns.run(&nothing), 1'600'000);
}

TEST(Turns, OfARankThatSharesItsCoreAreSeldomToo) {
  Turns turns;
  std::int64_t longest = turns.begin();
  // A change of threads may itself take some time of the processor, on a busy machine.
  for (int turn = 0; turn < 20; ++turn) {
    longest = std::max(longest, turns.run(&give_up_the_core_for_a_millisecond));
  }
  EXPECT_GT(longest, 100'000);
}

TEST(Turns, FollowSoonWhenOneHasMovedData) {
  Turns turns;
  turns.run(&nothing);
  turns.run(&nothing);
  EXPECT_EQ(turns.run(&move_data), 100'000);
  EXPECT_EQ(turns.run(&nothing), 200'000);
}

TEST(Turns, OfAWaitBeginWithThePauseOfTheWaitBefore) {
  Turns turns;
  EXPECT_EQ(turns.begin(), 100'000);
  for (int turn = 0; turn < 5; ++turn) turns.run(&nothing);
  EXPECT_EQ(turns.begin(), 1'600'000);
  turns.run(&move_data);
  EXPECT_EQ(turns.begin(), 100'000);
}

}  // namespace
}  // namespace tributary::mpi
