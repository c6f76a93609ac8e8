// Calls end in their order; it does not matter which thread drives them.
#include "client/collectives/local/call_queue.h"

#include <gtest/gtest.h>

#include "tests/unit/local/threads.h"

namespace tributary::client::local {
namespace {

Call sum(const std::vector<float>& send, std::vector<float>& recv) {
  return {.signature = {.collective = Collective::all_reduce, .dtype = DType::float32, .count = send.size()},
          .send = reinterpret_cast<const std::byte*>(send.data()),
          .recv = reinterpret_cast<std::byte*>(recv.data())};
}

TEST(LocalCallQueue, CallsEndInTheirOrderWhileTheCallerWaitsForTheLast) {
  run_ranks(settings_of(2), [](LocalGroup& group) {
    CallQueue queue(group);
    std::vector<std::vector<float>> send(20), recv(20);
    std::vector<int> ended;
    for (int i = 0; i < 20; ++i) {
      const std::size_t count = i % 3 == 0 ? 4 : 20000;
      send[static_cast<std::size_t>(i)].assign(count, static_cast<float>(i + 1));
      recv[static_cast<std::size_t>(i)].assign(count, 0);
      queue.post(sum(send[static_cast<std::size_t>(i)], recv[static_cast<std::size_t>(i)]),
                 [&ended, i](const Status& status) {
                   ASSERT_TRUE(status);
                   ended.push_back(i);
                 });
    }
    ASSERT_TRUE(queue.wait([&] { return ended.size() == 20; }));
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(ended[static_cast<std::size_t>(i)], i);
      EXPECT_EQ(recv[static_cast<std::size_t>(i)].back(), static_cast<float>(2 * (i + 1)));
    }
    EXPECT_FALSE(queue.neglected());
  });
}

TEST(LocalCallQueue, CallsThatNoThreadWaitsForAreDrivenByAnother) {
  run_ranks(settings_of(2), [](LocalGroup& group) {
    CallQueue queue(group);
    std::atomic<bool> over = false, ended = false;
    std::thread progress([&] {
      while (!over.load()) {
        if (queue.neglected()) queue.drive();
        std::this_thread::yield();
      }
    });
    const std::vector<float> send(30000, 1.0F);
    std::vector<float> recv(send.size());
    queue.post(sum(send, recv), [&](const Status& status) { ended.store(status.has_value()); });
    while (!ended.load()) std::this_thread::yield();
    EXPECT_EQ(recv.back(), 2.0F);
    over.store(true);
    progress.join();
  });
}

TEST(LocalCallQueue, BlockingCallsComeAfterThoseThatWerePosted) {
  run_ranks(settings_of(2), [](LocalGroup& group) {
    CallQueue queue(group);
    for (int i = 0; i < 50; ++i) {
      std::vector<float> a(9000, 1.0F), b(9000), c(9000);
      std::atomic<bool> first = false;
      queue.post(sum(a, b), [&](const Status& status) { first.store(status.has_value()); });
      ASSERT_TRUE(queue.run(sum(b, c)));
      EXPECT_TRUE(first.load());
      EXPECT_EQ(c.back(), 4.0F) << "the second call's input is the first call's result";
    }
  });
}

TEST(LocalCallQueue, AWaitWithADeadlineLeavesTheCallRunning) {
  run_ranks(settings_of(2), [](LocalGroup& group) {
    CallQueue queue(group);
    std::vector<float> send(8, 1.0F), recv(8);
    bool ended = false;
    if (group.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    queue.post(sum(send, recv), [&](const Status& status) { ended = status.has_value(); });
    if (group.rank() == 0) {
      static_cast<void>(queue.wait([&] { return ended; }, std::chrono::steady_clock::now()));
    }
    ASSERT_TRUE(queue.wait([&] { return ended; }));
    EXPECT_EQ(recv[0], 2.0F);
  });
}

}  // namespace
}  // namespace tributary::client::local
