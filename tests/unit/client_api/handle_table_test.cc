#include "client/api/handle_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

namespace tributary::client {
namespace {

struct Opaque;
using Table = HandleTable<Opaque, int, HandleKind::request>;
using OtherTable = HandleTable<Opaque, int, HandleKind::memory>;

TEST(HandleTable, FindsAnObjectUntilItIsRemoved) {
  Table table;
  Opaque* handle = table.insert(std::make_shared<int>(7));
  ASSERT_NE(handle, nullptr);
  ASSERT_NE(table.find(handle), nullptr);
  EXPECT_EQ(*table.find(handle), 7);
  EXPECT_EQ(table.live(), 1U);
  EXPECT_EQ(*table.remove(handle), 7);
  EXPECT_EQ(table.find(handle), nullptr);
  EXPECT_EQ(table.remove(handle), nullptr);
  EXPECT_EQ(table.live(), 0U);
}

TEST(HandleTable, GenerationsThatAHandleCannotHoldAreNotUsed) {
  static_assert(Table::next(1) == 2);
  static_assert(Table::next(Table::kGenerationMax - 1) == Table::kGenerationMax);
  static_assert(Table::next(Table::kGenerationMax) == 1, "0 is never the generation of a handle");
}

TEST(HandleTable, APinnedObjectAndItsPlaceLastUntilTheLastPinEnds) {
  Table table;
  const auto object = std::make_shared<int>(7);
  Opaque* handle = table.insert(object);
  {
    const auto pinned = table.pin(handle);
    ASSERT_TRUE(pinned);
    EXPECT_EQ(*pinned, 7);
    {
      const auto again = table.pin(handle);
      EXPECT_EQ(table.remove(handle), object);
      EXPECT_EQ(*again, 7);
      EXPECT_FALSE(table.pin(handle)) << "the handle has ended";
    }
    EXPECT_EQ(object.use_count(), 2) << "the object is still pinned";
    EXPECT_EQ(table.live(), 1U);
    Opaque* other = table.insert(std::make_shared<int>(8));
    EXPECT_EQ(*pinned, 7);
    EXPECT_EQ(*table.pin(other), 8);
    table.remove(other);
  }
  EXPECT_EQ(object.use_count(), 1);
  EXPECT_EQ(table.live(), 0U);
  EXPECT_FALSE(table.pin(handle));
  EXPECT_FALSE(table.pin(nullptr));
}

TEST(HandleTable, PinsAndRemovalsOfManyThreadsLeaveNothingBehind) {
  Table table;
  std::atomic<Opaque*> handle{table.insert(std::make_shared<int>(1))};
  std::atomic<bool> stop{false};
  std::vector<std::jthread> pinning;
  for (int i = 0; i < 3; ++i) {
    pinning.emplace_back([&] {
      while (!stop) {
        const auto pinned = table.pin(handle.load());
        if (!pinned) continue;  // it was removed in between
        ASSERT_EQ(*pinned, 1);
      }
    });
  }
  for (int i = 0; i < 20'000; ++i) {
    Opaque* const next = table.insert(std::make_shared<int>(1));
    auto removed = table.remove(handle.exchange(next));
    ASSERT_NE(removed, nullptr);
  }
  stop = true;
  pinning.clear();
  table.remove(handle.load());
  EXPECT_EQ(table.live(), 0U);
}

TEST(HandleTable, DistinguishesAStaleHandleFromTheOneThatHasItsPlaceNow) {
  Table table;
  std::set<Opaque*> seen;
  for (int i = 0; i < 10'000; ++i) {
    Opaque* handle = table.insert(std::make_shared<int>(i));
    EXPECT_TRUE(seen.insert(handle).second) << "a handle came twice";
    EXPECT_EQ(*table.remove(handle), i);
  }
  for (Opaque* stale : seen) EXPECT_EQ(table.find(stale), nullptr);
}

TEST(HandleTable, FindsNoObjectForAnInvalidHandle) {
  Table table;
  OtherTable other;
  Opaque* of_other = other.insert(std::make_shared<int>(1));
  static_cast<void>(table.insert(std::make_shared<int>(1)));
  EXPECT_EQ(table.find(nullptr), nullptr);
  EXPECT_EQ(table.find(of_other), nullptr) << "handles of two kinds are never equal";
  for (const std::uintptr_t bits : {1UL, 2UL, 0x12UL, 0xFFFF'FFFF'FFFF'FFF2UL, 0x7FFF'1234'5678UL}) {
    EXPECT_EQ(table.find(reinterpret_cast<Opaque*>(bits)), nullptr);
  }
}

TEST(HandleTable, RefusesWhenItIsFull) {
  Table table;
  const auto object = std::make_shared<int>(0);
  std::vector<Opaque*> handles(Table::kPlacesMax);
  for (auto& handle : handles) handle = table.insert(object);
  EXPECT_NE(handles.back(), nullptr);
  EXPECT_EQ(table.insert(object), nullptr);
  table.remove(handles[5]);
  EXPECT_NE(table.insert(object), nullptr);
}

TEST(HandleTable, RemovesAllOfOneKindAtOnce) {
  Table table;
  std::vector<Opaque*> handles;
  for (int i = 0; i < 100; ++i) handles.push_back(table.insert(std::make_shared<int>(i)));
  int removed = 0;
  table.remove_if([](int value) { return value % 2 == 0; }, [&](int value) { removed += value % 2 == 0 ? 1 : 1000; });
  EXPECT_EQ(removed, 50);
  EXPECT_EQ(table.find(handles[0]), nullptr);
  EXPECT_NE(table.find(handles[1]), nullptr);
}

TEST(HandleTable, GivesAnObjectToOneOfManyThreadsThatRemoveIt) {
  Table table;
  for (int round = 0; round < 200; ++round) {
    Opaque* handle = table.insert(std::make_shared<int>(round));
    std::atomic<int> got{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        static_cast<void>(table.find(handle));
        if (table.remove(handle)) ++got;
      });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(got, 1);
  }
}

}  // namespace
}  // namespace tributary::client
