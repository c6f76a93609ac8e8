#include "aggregator/daemon/join_queue.h"

#include <gtest/gtest.h>

namespace tributary::aggregator {
namespace {

constexpr Source kFlood{1}, kHonest{2}, kThird{3};

TEST(JoinQueue, TakesTheAddressesInTurn) {
  JoinQueue queue;
  for (JoinQueue::Id id = 0; id < 1000; ++id) queue.add(id, kFlood);
  queue.add(1000, kHonest);
  queue.add(1001, kHonest);
  queue.add(1002, kThird);
  std::vector<JoinQueue::Id> order;
  for (int i = 0; i < 6; ++i) order.push_back(*queue.next());
  EXPECT_EQ(order, (std::vector<JoinQueue::Id>{0, 1000, 1002, 1, 1001, 2}));
}

TEST(JoinQueue, HonestJoinsWaitForOneCheckOfEachFloodingAddressAtMost) {
  JoinQueue queue;
  JoinQueue::Id id = 0;
  for (std::uint64_t source = 10; source < 20; ++source) {
    for (int i = 0; i < 100; ++i) queue.add(id++, Source{source});
  }
  const JoinQueue::Id honest = id;
  queue.add(honest, kHonest);
  int checks = 1;
  while (*queue.next() != honest) ++checks;
  EXPECT_LE(checks, 11);
}

TEST(JoinQueue, ForgetsConnectionsThatHaveEnded) {
  JoinQueue queue;
  queue.add(1, kFlood);
  queue.add(2, kHonest);
  queue.remove(1);
  queue.remove(1);
  queue.remove(77);
  EXPECT_EQ(queue.size(), 1U);
  EXPECT_EQ(queue.next(), 2U);
  EXPECT_EQ(queue.next(), std::nullopt);
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace tributary::aggregator
