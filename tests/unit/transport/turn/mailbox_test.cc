// The owner takes each message from other threads once, in order, and never sleeps while a message waits.
#include "transport/turn/mailbox.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <semaphore>
#include <thread>
#include <vector>

namespace tributary::transport::turn {
namespace {

using namespace std::chrono_literals;

std::vector<int> taken_from(Mailbox<int>& box) {
  std::vector<int> taken;
  box.take([&taken](int message) { taken.push_back(message); });
  return taken;
}

TEST(Mailbox, HandsOverInTheOrderOfPosting) {
  Mailbox<int> box;
  EXPECT_FALSE(box.has_some());
  for (int i = 0; i < 3; ++i) static_cast<void>(box.post(i));
  EXPECT_TRUE(box.has_some());
  EXPECT_EQ(taken_from(box), (std::vector{0, 1, 2}));
  EXPECT_FALSE(box.has_some());
  EXPECT_EQ(taken_from(box), std::vector<int>{});
}

TEST(Mailbox, AsksForAWakeUpOnceAndOnlyWhileTheOwnerSleeps) {
  Mailbox<int> box;
  EXPECT_FALSE(box.post(1)) << "the owner is awake";
  taken_from(box);
  EXPECT_TRUE(box.fall_asleep());
  EXPECT_TRUE(box.post(2));
  EXPECT_FALSE(box.post(3)) << "the owner is being woken already";
  box.wake_up();
  EXPECT_EQ(taken_from(box), (std::vector{2, 3}));
  EXPECT_FALSE(box.post(4));
}

TEST(Mailbox, DoesNotLetItsOwnerSleepOnAMessage) {
  Mailbox<int> box;
  static_cast<void>(box.post(1));
  EXPECT_FALSE(box.fall_asleep());
  box.wake_up();
  taken_from(box);
  EXPECT_TRUE(box.fall_asleep());
}

TEST(Mailbox, CallsPostedDuringATakeWaitForTheNextTake) {
  Mailbox<int> box;
  static_cast<void>(box.post(1));
  std::vector<int> taken;
  box.take([&](int message) {
    taken.push_back(message);
    static_cast<void>(box.post(message + 1));
  });
  EXPECT_EQ(taken, std::vector{1});
  EXPECT_EQ(taken_from(box), std::vector{2});
}

TEST(Mailbox, ATakeInsideATakeIsAllowed) {
  Mailbox<int> box;
  static_cast<void>(box.post(1));
  std::vector<int> taken;
  box.take([&](int message) {
    static_cast<void>(box.post(message + 1));
    taken = taken_from(box);
  });
  EXPECT_EQ(taken, std::vector{2});
}

/// Posts from its destructor, as an object that a posted call holds may do.
struct LastWord {
  Mailbox<std::shared_ptr<LastWord>>* box;
  ~LastWord() { static_cast<void>(box->post(nullptr)); }
};

TEST(Mailbox, ForgetsOutsideItsLock) {
  Mailbox<std::shared_ptr<LastWord>> box;
  static_cast<void>(box.post(std::make_shared<LastWord>(&box)));
  box.forget();
  int left = 0;
  box.take([&left](const auto& message) { left += message == nullptr ? 1 : 0; });
  EXPECT_EQ(left, 1);
}

TEST(Mailbox, EndsAWaitWhenSomethingIsPosted) {
  Mailbox<int> box;
  ASSERT_TRUE(box.fall_asleep());
  std::jthread other([&box] { static_cast<void>(box.post(1)); });
  box.wait(1h);
  box.wake_up();
  EXPECT_EQ(taken_from(box), std::vector{1});
}

/// Sleeps whenever it can, on a bell that rings only if a post() says so.
class Sleeper {
 public:
  void post(int message) {
    if (box_.post(message)) bell_.release();
  }
  /// Takes this many messages. False: it slept while a message waited.
  bool run(int messages) {
    for (int taken = 0; taken < messages;) {
      if (box_.fall_asleep() && !bell_.try_acquire_for(60s)) return false;
      box_.wake_up();
      box_.take([&](int message) {
        sum_ += static_cast<std::uint64_t>(message);
        ++taken;
      });
    }
    return true;
  }
  [[nodiscard]] std::uint64_t sum() const { return sum_; }

 private:
  Mailbox<int> box_;
  std::counting_semaphore<> bell_{0};
  std::uint64_t sum_ = 0;
};

TEST(Mailbox, NeverSleepsThroughAPostOfAnyThread) {
  constexpr int kThreads = 3;
  constexpr int kEach = 20'000;
  Sleeper sleeper;
  std::vector<std::jthread> others;
  for (int t = 0; t < kThreads; ++t) {
    others.emplace_back([&sleeper] {
      for (int i = 1; i <= kEach; ++i) sleeper.post(i);
    });
  }
  EXPECT_TRUE(sleeper.run(kThreads * kEach));
  EXPECT_EQ(sleeper.sum(), std::uint64_t{kThreads} * kEach * (kEach + 1) / 2);
}

/// Posts one message at a time, so that nearly every message comes when the other thread is about to sleep.
TEST(Mailbox, NeverSleepsThroughAnAnswer) {
  constexpr int kRounds = 5000;
  Sleeper here;
  Sleeper there;
  std::jthread other([&] {
    for (int i = 0; i < kRounds; ++i) {
      if (!there.run(1)) return;
      here.post(1);
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    there.post(1);
    ASSERT_TRUE(here.run(1)) << "in round " << i;
  }
}

}  // namespace
}  // namespace tributary::transport::turn
