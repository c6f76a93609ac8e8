// A peer that does not prove the place that it claims gets no queue pair, and a client sends no frames to an impostor.
#include <gmock/gmock.h>

#include "tests/rdma/transport/verbs_pair.h"

namespace tributary::transport::test {
namespace {

using testing::HasSubstr;

constexpr LinkName kPlace{.group = 77, .epoch = 3, .lane = 2, .child = 5};

LinkSecret secret_of(std::uint8_t seed) {
  LinkSecret secret;
  secret.fill(std::byte{seed});
  return secret;
}

std::shared_ptr<LinkKeys> proving() {
  return std::make_shared<LinkKeys>(PacketSecurity::off, true);
}

class Proof : public VerbsPair {
 protected:
  void SetUp() override {
    VerbsPair::SetUp();
    // Makes an aggregator's keys, in which every place's secret follows from one secret.
    keys_there_->set_peers(secret_of(1));
    keys_there_->set_derive([](const LinkName& name) -> LinkKeys::Found {
      if (name.group != kPlace.group) return std::unexpected(NoSecret::unknown);
      return secret_of(static_cast<std::uint8_t>(10 + name.child));
    });
  }
  /// Connects. `lane`: it sends the first frame of a lane.
  void connect(std::shared_ptr<LinkKeys> here, bool lane = false, std::uint64_t group = kPlace.group) {
    FrameHeader join = header_of(1, FrameType::join);
    join.group = group;
    join.epoch = kPlace.epoch;
    join.lane = kPlace.lane;
    VerbsPair::connect({.keys = keys_there_, .queue_pairs = 2}, {.keys = std::move(here), .queue_pairs = 2},
                       lane ? std::optional(join) : std::nullopt);
  }
  void expect_refused(const char* why) {
    ASSERT_TRUE(client_peer.closed);
    EXPECT_THAT(client_peer.closed->message, HasSubstr(why));
    const VerbsStatistics figures = server->statistics();
    EXPECT_EQ(figures.refused_unproved, 1U);
    EXPECT_EQ(figures.accepted + figures.queue_pairs + figures.memory_regions + figures.registrations, 0U);
  }
  void expect_open() {
    ASSERT_FALSE(client_peer.closed) << client_peer.closed->message;
    EXPECT_EQ(server->statistics().refused_unproved, 0U);
  }
  std::shared_ptr<LinkKeys> keys_there_ = proving();
};

TEST_F(Proof, LetsRanksInByTheirCommonSecret) {
  const auto here = proving();
  here->set_peers(secret_of(1));
  ASSERT_NO_FATAL_FAILURE(connect(here));
  expect_open();
}

TEST_F(Proof, LetsAChildInByTheSecretOfItsPlace) {
  const auto here = proving();
  here->add(kPlace, secret_of(10 + kPlace.child), PacketSecurity::off);
  ASSERT_NO_FATAL_FAILURE(connect(here, true));
  expect_open();
}

TEST_F(Proof, RefusesAnotherSecretBeforeThereIsAQueuePair) {
  const auto here = proving();
  here->set_peers(secret_of(2));
  ASSERT_NO_FATAL_FAILURE(connect(here));
  expect_refused("does not prove");
}

TEST_F(Proof, RefusesTheSecretOfAnotherPlace) {
  const auto here = proving();
  here->add(kPlace, secret_of(11 + kPlace.child), PacketSecurity::off);
  ASSERT_NO_FATAL_FAILURE(connect(here, true));
  expect_refused("does not prove");
}

TEST_F(Proof, RefusesAPeerWithoutAProof) {
  ASSERT_NO_FATAL_FAILURE(connect(nullptr));
  expect_refused("does not prove");
}

TEST_F(Proof, RefusesAGroupWithoutAKnownSecret) {
  const auto here = proving();
  here->add({.group = 78, .epoch = kPlace.epoch, .lane = kPlace.lane, .child = kPlace.child}, secret_of(15),
            PacketSecurity::off);
  ASSERT_NO_FATAL_FAILURE(connect(here, true, 78));
  expect_refused("shares no secret");
}

TEST_F(Proof, ARequestWaitsForTheManagersKey) {
  const TimePoint key_comes = Clock::now() + std::chrono::milliseconds(500);
  keys_there_->set_derive([key_comes](const LinkName& name) -> LinkKeys::Found {
    if (Clock::now() < key_comes) return std::unexpected(NoSecret::not_yet);
    return secret_of(static_cast<std::uint8_t>(10 + name.child));
  });
  const auto here = proving();
  here->add(kPlace, secret_of(10 + kPlace.child), PacketSecurity::off);
  ASSERT_NO_FATAL_FAILURE(connect(here, true));
  EXPECT_GE(Clock::now(), key_comes);
  expect_open();
}

TEST_F(Proof, ARequestIsRefusedWithTheReasonIfNoKeyComes) {
  keys_there_->set_derive([](const LinkName&) -> LinkKeys::Found { return std::unexpected(NoSecret::not_yet); });
  const auto here = proving();
  here->add(kPlace, secret_of(10 + kPlace.child), PacketSecurity::off);
  ASSERT_NO_FATAL_FAILURE(connect(here, true));
  ASSERT_TRUE(client_peer.closed);
  EXPECT_THAT(client_peer.closed->message, HasSubstr("has not reached its manager yet"));
}

TEST_F(Proof, TheSideThatAnswersMustProveItselfToo) {
  keys_there_ = nullptr;  // lets everybody in
  const auto here = proving();
  here->set_peers(secret_of(1));
  ASSERT_NO_FATAL_FAILURE(connect(here));
  ASSERT_TRUE(client_peer.closed);
  EXPECT_EQ(client_peer.closed->code, Errc::denied);
  EXPECT_THAT(client_peer.closed->message, HasSubstr("does not know the secret"));
}

}  // namespace
}  // namespace tributary::transport::test
