#include "tributary/protocol/waiting_room.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <stdexcept>

namespace tributary {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr Source kFlood{1}, kHonest{2};

/// Lets `id` in like a listener. Returns the id that had to give up its place.
std::optional<WaitingRoom::Id> come(WaitingRoom& room, WaitingRoom::Id id, Source from, std::int64_t now = 0) {
  const auto displaced = room.makes_room();
  EXPECT_TRUE(!displaced || room.leave(*displaced));
  room.enter(id, from, now);
  return displaced;
}

std::array<std::byte, 16> address(std::initializer_list<int> bytes) {
  std::array<std::byte, 16> out{};
  std::size_t i = 0;
  for (const int byte : bytes) out[i++] = static_cast<std::byte>(byte);
  return out;
}

TEST(WaitingRoom, NoConnectionMakesRoomWhileThereIsAPlace) {
  WaitingRoom room(16, kSecond);
  for (WaitingRoom::Id id = 0; id < 16; ++id) EXPECT_EQ(come(room, id, kFlood), std::nullopt);
  EXPECT_EQ(room.size(), 16U);
}

TEST(WaitingRoom, OneAddressMayFillAnEmptyRoom) {
  WaitingRoom room(16, kSecond);
  for (WaitingRoom::Id id = 0; id < 16; ++id) come(room, id, kHonest);
  EXPECT_EQ(room.size(kHonest), 16U);
}

TEST(WaitingRoom, TheOldestOfTheFloodMakesRoomAndNeverTheHonest) {
  WaitingRoom room(64, kSecond);
  come(room, 1'000'000, kHonest);
  for (WaitingRoom::Id id = 0; id < 10'000; ++id) {
    const auto displaced = come(room, id, kFlood);
    if (id >= 63) {
      EXPECT_EQ(displaced, id - 63);
    }
  }
  EXPECT_EQ(room.size(kHonest), 1U);
}

TEST(WaitingRoom, ANewcomerFromTheFloodsOwnAddressStaysWhileAShareOfOthersCome) {
  WaitingRoom room(64, kSecond);
  for (WaitingRoom::Id id = 0; id < 1000; ++id) come(room, id, kFlood);
  come(room, 1'000'000, kFlood);  // an honest client behind the same address
  std::size_t others = 0;
  for (WaitingRoom::Id id = 1000; come(room, id, kFlood) != 1'000'000; ++id) ++others;
  EXPECT_GE(others, room.share());
}

TEST(WaitingRoom, AFloodFromManyAddressesDisplacesByAge) {
  WaitingRoom room(64, kSecond);
  come(room, 1'000'000, kHonest);
  std::size_t others = 0;
  for (std::uint64_t i = 0;; ++i) {
    if (come(room, i, Source{100 + i}) == 1'000'000) break;
    ++others;
  }
  EXPECT_EQ(others, 63U);  // the places of a full room
}

TEST(WaitingRoom, TheGreaterOfTwoFloodsMakesRoom) {
  WaitingRoom room(64, kSecond);
  for (WaitingRoom::Id id = 0; id < 24; ++id) come(room, id, Source{7});
  for (WaitingRoom::Id id = 100; id < 140; ++id) come(room, id, Source{8});
  EXPECT_EQ(come(room, 200, kHonest), 100U);
}

TEST(WaitingRoom, ASourceWithinItsShareLosesNoPlaceToAFlood) {
  WaitingRoom room(64, kSecond);
  for (WaitingRoom::Id id = 0; id < 8; ++id) come(room, id, kHonest);
  for (WaitingRoom::Id id = 100; id < 400; ++id) come(room, id, kFlood);
  EXPECT_EQ(room.size(kHonest), room.share());
}

TEST(WaitingRoom, ConnectionsThatProveThemselvesCostNoPlace) {
  WaitingRoom room(8, kSecond);
  for (WaitingRoom::Id id = 0; id < 1000; ++id) {
    EXPECT_EQ(come(room, id, kHonest), std::nullopt);
    EXPECT_TRUE(room.leave(id));
  }
  EXPECT_TRUE(room.empty());
  EXPECT_FALSE(room.leave(3));
}

TEST(WaitingRoom, TheSilentHaveALimit) {
  WaitingRoom room(8, 5 * kSecond);
  come(room, 1, kHonest, 0);
  come(room, 2, kHonest, kSecond);
  EXPECT_EQ(room.late(5 * kSecond - 1), std::nullopt);
  EXPECT_EQ(room.next_limit_ns(), 5 * kSecond);
  EXPECT_EQ(room.late(7 * kSecond), 1U);
  room.leave(1);
  EXPECT_EQ(room.late(7 * kSecond), 2U);
  room.leave(2);
  EXPECT_EQ(room.late(7 * kSecond), std::nullopt);
  EXPECT_EQ(room.next_limit_ns(), std::nullopt);
}

TEST(WaitingRoom, TheOwnersAbsenceDoesNotCountAsSilence) {
  WaitingRoom room(8, 5 * kSecond);
  come(room, 1, kHonest, 0);
  room.excuse(20 * kSecond);
  EXPECT_EQ(room.late(24 * kSecond), std::nullopt);
  EXPECT_EQ(room.late(25 * kSecond), 1U);
}

TEST(WaitingRoom, ARoomOfZeroPlacesHasOnePlace) {
  WaitingRoom room(0, kSecond);
  EXPECT_EQ(come(room, 1, kHonest), std::nullopt);
  EXPECT_EQ(come(room, 2, kHonest), 1U);
}

TEST(WaitingRoom, ThrowsUnlessItsOwnerMakesRoomFirstAndAddsEachIdOnce) {
  WaitingRoom room(1, kSecond);
  room.enter(1, kHonest, 0);
  EXPECT_THROW(room.enter(2, kHonest, 0), std::logic_error);
  WaitingRoom wide(2, kSecond);
  wide.enter(1, kHonest, 0);
  EXPECT_THROW(wide.enter(1, kHonest, 0), std::logic_error);
}

TEST(WaitingRoom, KeepsItsRuleUnderRandomUse) {
  struct Waiting {
    WaitingRoom::Id id;
    Source from;
  };
  std::mt19937_64 random(7);
  for (const std::size_t places : {1U, 3U, 8U, 50U}) {
    WaitingRoom room(places, kSecond);
    std::deque<Waiting> model;
    const auto of = [&](Source from) {
      return static_cast<std::size_t>(std::ranges::count(model, from, &Waiting::from));
    };
    for (WaitingRoom::Id id = 0; id < 20'000; ++id) {
      const Source from{random() % 4 == 0 ? random() % 30 : random() % 2};
      const auto displaced = come(room, id, from, static_cast<std::int64_t>(id));
      if (displaced) {
        ASSERT_EQ(model.size(), places);
        const auto it = std::ranges::find(model, *displaced, &Waiting::id);
        ASSERT_NE(it, model.end());
        std::size_t most = 0;
        for (const Waiting& one : model) most = std::max(most, of(one.from));
        ASSERT_TRUE(most > room.share() ? of(it->from) == most : it == model.begin());
        ASSERT_EQ(std::ranges::find(model, it->from, &Waiting::from), it);  // the oldest one from its source
        model.erase(it);
      }
      model.push_back({id, from});
      if (random() % 8 == 0) {
        const auto at = model.begin() + static_cast<std::ptrdiff_t>(random() % model.size());
        ASSERT_TRUE(room.leave(at->id));
        model.erase(at);
      }
      ASSERT_EQ(room.size(), model.size());
      ASSERT_EQ(room.size(from), of(from));
      ASSERT_EQ(room.oldest(), model.empty() ? std::nullopt : std::optional(model.front().id));
    }
  }
}

TEST(Source, IsTheWholeOfAnIPv4AddressAndTheNetworkOfAnIPv6Address) {
  const auto a = address({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1});
  const auto b = address({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2});
  const auto c = address({0x20, 1, 0xd, 0xb8, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8});
  const auto d = address({0x20, 1, 0xd, 0xb8, 0, 0, 0, 1, 8, 7, 6, 5, 4, 3, 2, 1});
  const auto e = address({0x20, 1, 0xd, 0xb8, 0, 0, 0, 2, 1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_NE(source_of(a), source_of(b));
  EXPECT_EQ(source_of(c), source_of(d));
  EXPECT_NE(source_of(c), source_of(e));
  EXPECT_NE(source_of(a), source_of(c));
}

}  // namespace
}  // namespace tributary
