// The lists of items that want a turn, and their order.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <vector>

#include "transport/turn/deadline_heap.h"
#include "transport/turn/deadlines.h"
#include "transport/turn/due_list.h"

namespace tributary::transport::turn {
namespace {

using namespace std::chrono_literals;

struct Item : std::enable_shared_from_this<Item> {
  explicit Item(int n) : number(n) {}
  int number;
  bool due = false;
  TimePoint deadline = TimePoint::max();
};
using SharedList = DueList<std::shared_ptr<Item>, &Item::due>;
using RawList = DueList<Item*, &Item::due>;

TEST(DueList, GivesEachATurnOnceInTheOrderOfAsking) {
  Item a(1);
  Item b(2);
  RawList list;
  list.add(b);
  list.add(a);
  list.add(b);
  std::vector<int> turns;
  list.run([&turns](Item& item) { turns.push_back(item.number); });
  EXPECT_EQ(turns, (std::vector{2, 1}));
  EXPECT_TRUE(list.empty());
  list.run([](Item&) { FAIL() << "no item has asked for a turn"; });
}

TEST(DueList, ItemsThatAskDuringARunWaitForTheNextRun) {
  Item a(1);
  RawList list;
  list.add(a);
  int turns = 0;
  list.run([&](Item& item) {
    ++turns;
    list.add(item);
  });
  EXPECT_EQ(turns, 1);
  EXPECT_FALSE(list.empty());
}

TEST(DueList, AnItemThatMayNotGoYetStaysAheadOfLaterOnes) {
  Item a(1), b(2), c(3);
  RawList list;
  list.add(a);
  list.add(b);
  list.add(c);
  std::vector<int> turns;
  const auto turn = [&](Item& item) {
    turns.push_back(item.number);
    list.add(item);
  };
  list.run_if([](const Item& item) { return item.number == 1; }, turn);
  EXPECT_EQ(turns, (std::vector{1}));
  EXPECT_FALSE(list.empty());
  list.add(b);
  list.run(turn);
  EXPECT_EQ(turns, (std::vector{1, 2, 3, 1})) << "each has one turn, in the order of asking";
}

TEST(DueList, MayAlsoRunItemsThatAskDuringTheRun) {
  Item a(1);
  Item b(2);
  RawList list;
  list.add(a);
  std::vector<int> turns;
  list.run_all([&](Item& item) {
    turns.push_back(item.number);
    if (&item == &a) list.add(b);
  });
  EXPECT_EQ(turns, (std::vector{1, 2}));
  EXPECT_TRUE(list.empty());
}

TEST(DueList, KeepsASharedItemUntilItsTurnIsOver) {
  auto item = std::make_shared<Item>(1);
  const std::weak_ptr<Item> weak = item;
  SharedList list;
  list.add(*item);
  item.reset();
  list.run([&weak](Item&) { EXPECT_FALSE(weak.expired()); });
  EXPECT_TRUE(weak.expired());
}

TEST(DueList, GoesOnAfterATurnThatThrows) {
  Item a(1);
  Item b(2);
  RawList list;
  list.add(a);
  list.add(b);
  EXPECT_THROW(list.run([](Item&) { throw std::logic_error("a user's mistake"); }), std::logic_error);
  EXPECT_FALSE(b.due) << "the item may ask again";
  list.add(b);
  int turns = 0;
  list.run([&turns](Item&) { ++turns; });
  EXPECT_EQ(turns, 1);
}

TEST(DueListDeathTest, IsNotRunByATurnOfItsOwn) {
  Item a(1);
  RawList list;
  list.add(a);
  EXPECT_DEATH(list.run([&list](Item&) { list.run([](Item&) {}); }),
               "a turn runs the list that it is in, with 1 items");
}

constexpr TimePoint at(Duration since_start) {
  return TimePoint{} + since_start;
}

TEST(Deadlines, ComeInTheOrderOfTheirTimes) {
  Item a(1);
  Item b(2);
  Deadlines<Item, &Item::deadline> deadlines;
  EXPECT_EQ(deadlines.first(), TimePoint::max());
  deadlines.set(a, at(3s));
  deadlines.set(b, at(2s));
  EXPECT_EQ(deadlines.first(), at(2s));
  EXPECT_EQ(deadlines.take_expired(at(1s)), nullptr);
  EXPECT_EQ(deadlines.take_expired(at(3s)), &b);
  EXPECT_EQ(deadlines.take_expired(at(3s)), &a);
  EXPECT_EQ(deadlines.take_expired(at(3s)), nullptr);
  EXPECT_EQ(a.deadline, TimePoint::max());
}

TEST(Deadlines, ReplaceAndClearATime) {
  Item a(1);
  Deadlines<Item, &Item::deadline> deadlines;
  deadlines.set(a, at(1s));
  deadlines.set(a, at(5s));
  EXPECT_EQ(deadlines.take_expired(at(2s)), nullptr);
  deadlines.clear(a);
  EXPECT_TRUE(deadlines.empty());
  deadlines.set(a, TimePoint::max());
  EXPECT_TRUE(deadlines.empty()) << "TimePoint::max() is no deadline";
}

TEST(DeadlineHeap, GivesTheEarliestFirst) {
  DeadlineHeap heap;
  for (const auto s : {5s, 1s, 4s, 2s}) heap.push({at(s), static_cast<std::uint32_t>(s.count()), 0});
  EXPECT_EQ(heap.first(), at(1s));
  std::vector<std::uint32_t> places;
  while (heap.size() > 0) places.push_back(heap.pop().place);
  EXPECT_EQ(places, (std::vector<std::uint32_t>{1, 2, 4, 5}));
  EXPECT_EQ(heap.first(), TimePoint::max());
}

}  // namespace
}  // namespace tributary::transport::turn
