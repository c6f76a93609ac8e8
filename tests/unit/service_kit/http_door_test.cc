#include "service-kit/http/http_door.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace tributary::service {
namespace {

constexpr Source kHere{1}, kThere{2};

/// A stand-in for a connection: its destructor leaves by the door.
class Connection final : public HttpConnection, public std::enable_shared_from_this<Connection> {
 public:
  explicit Connection(HttpDoor& door) : door_(door) {}
  ~Connection() override { door_.leave(id); }
  void make_room() override {
    ++displaced;
    if (on_close) on_close();
  }
  void close_when_idle() override {
    ++closed;
    if (on_close) on_close();
  }
  HttpDoor::Id id = 0;
  int displaced = 0, closed = 0;
  std::function<void()> on_close;

 private:
  HttpDoor& door_;
};

class Door : public testing::Test {
 protected:
  std::shared_ptr<Connection> come(Source from = kHere) {
    auto connection = std::make_shared<Connection>(door_);
    connection->id = door_.enter(connection, from);
    return connection;
  }
  HttpDoor door_{8, 1000};
};

TEST_F(Door, LetsTheOldestStrangerMakeRoom) {
  std::vector<std::shared_ptr<Connection>> all;
  for (int i = 0; i < 8; ++i) all.push_back(come());
  const auto newcomer = come(kThere);
  EXPECT_EQ(all.front()->displaced, 1);
  EXPECT_EQ(door_.count(), 8U);
  EXPECT_EQ(door_.counts().displaced, 1U);
  EXPECT_EQ(door_.counts().accepted, 9U);
  EXPECT_EQ(newcomer->displaced, 0);
}

TEST_F(Door, NeverClosesAConnectionWithATokenForStrangers) {
  std::vector<std::shared_ptr<Connection>> known;
  for (int i = 0; i < 8; ++i) {
    known.push_back(come());
    door_.proved(known.back()->id);
    door_.proved(known.back()->id);
  }
  std::vector<std::shared_ptr<Connection>> strangers;
  for (int i = 0; i < 100; ++i) strangers.push_back(come());
  for (const auto& one : known) EXPECT_EQ(one->displaced, 0);
  EXPECT_EQ(door_.count(), 16U);
  EXPECT_EQ(door_.strangers(), 8U);
}

TEST_F(Door, BoundsTheNumberOfConnectionsWithATokenToo) {
  std::vector<std::shared_ptr<Connection>> known;
  for (int i = 0; i < 9; ++i) {
    known.push_back(come());
    door_.proved(known.back()->id);
  }
  EXPECT_EQ(known.front()->displaced, 1);
  EXPECT_EQ(door_.count(), 8U);
}

TEST_F(Door, ForgetsConnectionsThatHaveEnded) {
  for (int i = 0; i < 100; ++i) (void)come();
  EXPECT_EQ(door_.count(), 0U);
  EXPECT_EQ(door_.counts().displaced, 0U);
}

TEST_F(Door, MakesRoomWhereNoDescriptorIsLeft) {
  door_.make_room();
  const auto known = come();
  door_.proved(known->id);
  const auto stranger = come();
  door_.make_room();
  EXPECT_EQ(stranger->displaced, 1);
  door_.make_room();
  EXPECT_EQ(known->displaced, 0);
}

TEST_F(Door, AcceptsNoConnectionWhenItCloses) {
  const auto before = come();
  door_.close_all();
  EXPECT_EQ(before->closed, 1);
  EXPECT_EQ(come()->id, 0U);
  EXPECT_TRUE(door_.closing());
}

TEST_F(Door, BoundsTheAnswersToStrangersThatAreUnderWay) {
  EXPECT_TRUE(door_.take(5000)) << "a single answer may be longer";
  EXPECT_FALSE(door_.take(1));
  door_.give_back(5000);
  EXPECT_TRUE(door_.take(600));
  EXPECT_FALSE(door_.take(600));
  EXPECT_TRUE(door_.take(400));
  EXPECT_EQ(door_.counts().busy, 2U);
}

// Checks the order of locks. A connection may end and leave while the door asks it to close, and the door may have the
// last reference to it. If the door held its lock then, it would wait for itself for ever.
TEST_F(Door, MayHoldTheLastReferenceToAConnectionThatItCloses) {
  auto only = come();
  only->on_close = [&only] { only.reset(); };
  const std::weak_ptr<Connection> gone = only;
  door_.close_all();
  EXPECT_TRUE(gone.expired());
  EXPECT_EQ(door_.count(), 0U);
}

TEST_F(Door, MayHoldTheLastReferenceToAConnectionThatMakesRoom) {
  auto first = come();
  const std::weak_ptr<Connection> gone = first;
  first->on_close = [&first] { first.reset(); };
  std::vector<std::shared_ptr<Connection>> others;
  for (int i = 0; i < 8; ++i) others.push_back(come());
  EXPECT_TRUE(gone.expired());
  EXPECT_EQ(door_.count(), 8U);
}

}  // namespace
}  // namespace tributary::service
