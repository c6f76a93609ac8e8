// The table that finds connections by their ids, and the small parts of a core that work without a connection.
#include "transport/packet/connection_table.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "transport/packet/endings.h"
#include "transport/packet/sealed_room.h"

namespace tributary::transport::packet {
namespace {

struct Named {
  int name = 0;
};
using Table = ConnectionTable<Named>;

class ConnectionTableTest : public testing::Test {
 protected:
  std::uint64_t enter(int name) {
    return table_.enter(std::make_shared<Named>(name), [this] { return ++random_; });
  }
  Table table_;
  std::uint64_t random_ = 0x1234567;
};

TEST_F(ConnectionTableTest, FindsAConnectionByItsIdAndNoOther) {
  const std::uint64_t a = enter(1);
  const std::uint64_t b = enter(2);
  EXPECT_NE(Table::place_of(a), Table::place_of(b));
  ASSERT_NE(table_.find(a), nullptr);
  EXPECT_EQ(table_.find(a)->name, 1);
  EXPECT_EQ(table_.find(b)->name, 2);
  EXPECT_EQ(table_.find(0), nullptr);
  EXPECT_EQ(table_.find(a ^ (std::uint64_t{1} << 40)), nullptr) << "the place is right, the secret is not";
  EXPECT_EQ(table_.find(std::uint64_t{7} << 24 | 1000), nullptr);
  EXPECT_EQ(table_.size(), 2U);
}

TEST_F(ConnectionTableTest, TheIdOfAnEndedConnectionFindsNoOther) {
  const std::uint64_t a = enter(1);
  table_.leave(a);
  EXPECT_EQ(table_.find(a), nullptr);
  EXPECT_EQ(table_.size(), 0U);
  const std::uint64_t b = enter(2);
  EXPECT_EQ(Table::place_of(b), Table::place_of(a)) << "places are used again";
  EXPECT_EQ(table_.find(a), nullptr);
  EXPECT_EQ(table_.at(Table::place_of(a), Table::generation_of(a)), nullptr);
  ASSERT_NE(table_.at(Table::place_of(b), Table::generation_of(b)), nullptr);
  table_.leave(a);
  EXPECT_NE(table_.find(b), nullptr) << "a second leave ends no other connection";
}

TEST_F(ConnectionTableTest, KeepsAnEndedConnectionUntilTheTurnIsOver) {
  auto connection = std::make_shared<Named>(1);
  const std::weak_ptr<Named> weak = connection;
  const std::uint64_t id = table_.enter(std::move(connection), [this] { return ++random_; });
  table_.leave(id);
  EXPECT_FALSE(weak.expired());
  table_.forget_departed();
  EXPECT_TRUE(weak.expired());
}

TEST_F(ConnectionTableTest, FindsAConnectionByTheOtherSidesName) {
  const std::uint64_t a = enter(1);
  table_.enter_peer(77, a);
  ASSERT_NE(table_.find_peer(77), nullptr);
  EXPECT_EQ(table_.find_peer(77)->name, 1);
  EXPECT_EQ(table_.find_peer(78), nullptr);
  table_.leave(a);
  EXPECT_EQ(table_.find_peer(77), nullptr);
  table_.leave_peer(77);
  EXPECT_EQ(table_.find_peer(77), nullptr);
}

TEST_F(ConnectionTableTest, VisitsAllConnectionsThoughSomeComeAndGo) {
  const std::uint64_t a = enter(1);
  enter(2);
  std::vector<int> visited;
  table_.each([&](const Named& one) {
    visited.push_back(one.name);
    if (one.name == 1) table_.leave(a);
    if (one.name == 2) enter(3);
  });
  EXPECT_EQ(visited, (std::vector{1, 2})) << "the third connection has the place of the first";
}

TEST(SealedRoom, GivesEachPayloadALineOfItsOwnUntilItIsFull) {
  SealedRoom room;
  const auto a = room.take(100);
  const auto b = room.take(1);
  ASSERT_EQ(a.size(), 100U);
  EXPECT_EQ(b.data() - a.data(), 128);
  EXPECT_TRUE(room.take(SealedRoom::kBytes).empty());
  room.clear();
  EXPECT_EQ(room.take(SealedRoom::kBytes).data(), a.data());
  EXPECT_TRUE(room.take(1).empty());
}

TEST(SealedRoomDeathTest, RefusesMoreThanItEverHolds) {
  SealedRoom room;
  EXPECT_DEATH(static_cast<void>(room.take(SealedRoom::kBytes + 1)), "1048577 bytes must be sealed");
}

TEST(Endings, AreFoundOnceForAPayloadInATurn) {
  std::vector<std::byte> payload(4096, std::byte{1});
  Endings endings;
  const std::size_t place = payload_place(payload.data());
  const std::uint32_t before = endings.of({}, payload, place).suffix.behind(0);
  payload[0] = std::byte{2};
  EXPECT_EQ(endings.of({}, payload, place).suffix.behind(0), before) << "payloads do not change within a turn";
  endings.next_turn();
  EXPECT_NE(endings.of({}, payload, place).suffix.behind(0), before);
}

TEST(Endings, DifferBehindAnotherHeader) {
  const std::vector<std::byte> payload(4096, std::byte{1});
  std::array<std::byte, kFrameHeaderBytes> head{};
  Endings endings;
  const std::size_t place = payload_place(payload.data());
  const std::uint32_t alone = endings.of({}, payload, place).suffix.behind(0);
  const std::uint32_t first = endings.of(head, payload, place).suffix.behind(0);
  EXPECT_NE(first, alone);
  head[5] = std::byte{9};
  EXPECT_NE(endings.of(head, payload, place).suffix.behind(0), first);
}

}  // namespace
}  // namespace tributary::transport::packet
