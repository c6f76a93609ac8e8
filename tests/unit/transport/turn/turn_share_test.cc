// Shares of a thread's turns: what each party moves, how long a party with little work waits, and that a party alone
// is not held up.
#include "tributary/transport/turn_share.h"

#include <gtest/gtest.h>

#include <vector>

#include "transport/socket/socket_core.h"

namespace tributary::transport {
namespace {

constexpr std::size_t kTurnBytesMax = 1U << 20;

/// A participant that always has something to read, and as much to write.
class Busy final : public Pollable {
 public:
  explicit Busy(SocketCore& core, std::size_t bytes_max = kTurnBytesMax) : core_(core), bytes_max_(bytes_max) {}
  void mark(std::uint32_t) override {}
  void turn() override {
    moved += move();
    if (writes) core_.make_dirty(*this);
    core_.make_due(*this);
    ++turns;
  }
  void write_turn() override { moved += move(); }
  void shut_down() override { core_.leave(*this); }

  std::uint64_t moved = 0, turns = 0;
  bool writes = true;

 private:
  [[nodiscard]] std::size_t move() const {
    const std::size_t bytes = bytes_in_turn(bytes_max_);
    spend(bytes);
    return bytes;
  }
  SocketCore& core_;
  const std::size_t bytes_max_;
};

class TurnShareTest : public ::testing::Test {
 protected:
  ~TurnShareTest() override { core_.shut_down(); }
  std::shared_ptr<TurnShare> party(std::uint32_t weight) { return std::make_shared<TurnShare>(weight, parties_); }
  std::shared_ptr<Busy> busy(const std::shared_ptr<TurnShare>& share, std::size_t bytes_max = kTurnBytesMax) {
    auto one = std::make_shared<Busy>(core_, bytes_max);
    one->set_turn_share(share);
    core_.enter(*one);
    core_.make_due(*one);
    return one;
  }
  std::vector<std::shared_ptr<Busy>> many(const std::shared_ptr<TurnShare>& share, int count) {
    std::vector<std::shared_ptr<Busy>> all;
    for (int i = 0; i < count; ++i) all.push_back(busy(share));
    return all;
  }
  static std::uint64_t moved(const std::vector<std::shared_ptr<Busy>>& all) {
    std::uint64_t bytes = 0;
    for (const auto& one : all) bytes += one->moved;
    return bytes;
  }
  void turns(int count) {
    for (int i = 0; i < count; ++i) core_.poll(Duration::zero());
  }

  SocketCore core_{Duration::zero(), Duration::zero()};
  std::shared_ptr<TurnParties> parties_ = std::make_shared<TurnParties>();
};

TEST_F(TurnShareTest, PartiesMoveTheSameWhateverTheNumberOfTheirConnections) {
  const auto large = many(party(1), 16);
  const auto small = many(party(1), 1);
  turns(2000);
  EXPECT_NEAR(static_cast<double>(moved(large)) / static_cast<double>(moved(small)), 1.0, 0.05);
}

TEST_F(TurnShareTest, PartiesMoveInProportionToTheirWeights) {
  const auto heavy = many(party(4), 2);
  const auto light = many(party(1), 16);
  turns(2000);
  EXPECT_NEAR(static_cast<double>(moved(heavy)) / static_cast<double>(moved(light)), 4.0, 0.2);
}

TEST_F(TurnShareTest, APartyWithLittleWorkWaitsForOneRoundOfTheOthers) {
  const auto large = many(party(1), 16);
  const auto small = busy(party(1), 64);
  for (int i = 0; i < 200; ++i) {
    const std::uint64_t before = moved(large);
    turns(1);
    EXPECT_LE(moved(large) - before, kTurnBytesPerRound + 2 * kTurnBytesOfCall);
  }
  EXPECT_GE(small->turns, 190U) << "it has almost every turn that it asks for";
}

TEST_F(TurnShareTest, EveryConnectionOfAPartyHasItsTurns) {
  const auto large = many(party(1), 16);
  const auto small = many(party(1), 1);
  turns(3200);
  std::uint64_t least = large.front()->turns, most = 0;
  for (const auto& one : large) {
    least = std::min(least, one->turns);
    most = std::max(most, one->turns);
  }
  EXPECT_GT(least, 0U);
  EXPECT_LE(most - least, 2U);
}

TEST_F(TurnShareTest, APartyAloneMovesAllThatItCanInEachTurn) {
  const auto share = party(1);
  const auto all = many(share, 16);
  turns(10);
  EXPECT_EQ(moved(all), 10U * 16 * 2 * kTurnBytesMax);
  {
    const auto other = party(1);
    turns(10);
    EXPECT_LT(moved(all), 11U * 16 * 2 * kTurnBytesMax)
        << "the party has a share, and no debt from the time when it was alone";
  }
  const std::uint64_t before = moved(all);
  turns(10);
  EXPECT_GE(moved(all) - before, 10U * 16 * 2 * kTurnBytesMax) << "it is alone again";
}

TEST_F(TurnShareTest, AnIdlePartySavesNoBytes) {
  const auto idle = party(1);
  const auto large = many(party(1), 4);
  turns(1000);
  const auto late = many(idle, 4);
  turns(1);
  EXPECT_LE(moved(late), static_cast<std::uint64_t>(kTurnBytesPerRound + 2 * kTurnBytesOfCall));
}

TEST_F(TurnShareTest, AGreatWeightMakesNoRoundLonger) {
  const auto heavy = many(party(8), 4);
  const auto light = many(party(1), 4);
  for (int i = 0; i < 200; ++i) {
    const std::uint64_t before = moved(heavy);
    turns(1);
    EXPECT_LE(moved(heavy) - before, static_cast<std::uint64_t>(kTurnBytesPerRound + 2 * kTurnBytesOfCall));
  }
  EXPECT_NEAR(static_cast<double>(moved(heavy)) / static_cast<double>(moved(light)), 8.0, 0.8);
}

TEST_F(TurnShareTest, TellsWhetherAPartyHadToWait) {
  const auto heavy = party(1), light = party(1);
  const auto large = many(heavy, 16);
  const auto small = busy(light, 64);
  turns(100);
  EXPECT_GE(heavy->waits(), 50U);
  EXPECT_LE(heavy->waits(), 100U) << "once in a round";
  EXPECT_EQ(light->waits(), 0U);
  EXPECT_EQ(parties_->waits, heavy->waits());
}

TEST_F(TurnShareTest, APartyInTwoCoresOfOneThreadHasOneShare) {
  SocketCore driven{Duration::zero(), Duration::zero()};
  driven.follow_rounds(core_);
  const auto both = party(1);
  const auto here = many(both, 2);
  const auto there = std::make_shared<Busy>(driven);
  there->set_turn_share(both);
  driven.enter(*there);
  driven.make_due(*there);
  const auto other = many(party(1), 1);
  other.front()->writes = false;  // a writer would take its part of the round that the driven core began, too
  for (int i = 0; i < 2000; ++i) {
    driven.poll(Duration::zero());
    turns(1);
  }
  EXPECT_GT(there->turns, 0U);
  EXPECT_NEAR(static_cast<double>(moved(here) + there->moved) / static_cast<double>(moved(other)), 1.0, 0.05);
  driven.shut_down();
}

TEST_F(TurnShareTest, ParticipantsWithoutAShareAreNeverHeldUp) {
  const auto large = many(party(1), 16);
  const auto other = many(party(1), 1);
  const auto listener = busy(nullptr);
  turns(100);
  EXPECT_EQ(listener->turns, 100U);
}

}  // namespace
}  // namespace tributary::transport
