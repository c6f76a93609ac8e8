// The thread that looks for a manager's return.
#include "client/plugins/mpi/manager_watch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace tributary::mpi {
namespace {

constexpr std::chrono::milliseconds kNoPause{0};

/// Returns once the watch has an answer.
void wait_for_answer(ManagerWatch& watch) {
  while (!watch.answered()) std::this_thread::yield();
}

TEST(ManagerWatch, AsksUntilAnAnswerComes) {
  std::atomic<int> questions{0};
  ManagerWatch watch([&] { return ++questions == 3; }, kNoPause);
  EXPECT_TRUE(watch.answered()) << "nothing is asked before begin()";
  EXPECT_TRUE(watch.begin());
  wait_for_answer(watch);
  EXPECT_EQ(questions, 3);
}

TEST(ManagerWatch, BeginsAgainOnlyAfterAnAnswer) {
  std::promise<void> may_answer;
  std::shared_future<void> allowed = may_answer.get_future().share();
  ManagerWatch watch([&] { return allowed.wait(), true; }, kNoPause);
  EXPECT_TRUE(watch.begin());
  EXPECT_FALSE(watch.begin());
  EXPECT_FALSE(watch.answered());
  may_answer.set_value();
  wait_for_answer(watch);
  EXPECT_TRUE(watch.begin());
  wait_for_answer(watch);
}

TEST(ManagerWatch, EndsInThePauseWithoutAnAnswer) {
  std::atomic<int> questions{0};
  ManagerWatch watch([&] { return ++questions, false; }, std::chrono::hours(1));
  EXPECT_TRUE(watch.begin());
  watch.end();
  EXPECT_EQ(questions, 0);
  EXPECT_TRUE(watch.answered());
}

}  // namespace
}  // namespace tributary::mpi
