// Who does not prove the place that it claims gets no queue pair, and nobody talks to an impostor.
#include <gmock/gmock.h>

#include "peer.h"
#include "verbs_world.h"

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

class Proof : public testing::Test {
 protected:
  void SetUp() override {
    if (rdma_hosts().empty()) GTEST_SKIP() << "RDMA_HOSTS names no address: tests/rdma/rdma-vm sets it";
    // An aggregator's: every place's secret follows from one of its own.
    keys_there_->set_peers(secret_of(1));
    keys_there_->set_derive([](const LinkName& name) -> std::optional<LinkSecret> {
      if (name.group != kPlace.group) return std::nullopt;
      return secret_of(static_cast<std::uint8_t>(10 + name.child));
    });
  }
  /// Until the connection is open, or has failed. With a first frame, that of a lane.
  void connect(std::shared_ptr<LinkKeys> here, bool lane = false, std::uint64_t group = kPlace.group) {
    server_ = make(rdma_hosts().front(), keys_there_);
    client_ = make(rdma_hosts().back(), std::move(here));
    auto listener = server_->listen({rdma_hosts().front(), 0}, acceptor_);
    ASSERT_TRUE(listener) << listener.error().message;
    listener_ = std::move(*listener);
    client_peer_.channel = client_->connect(listener_->local(), client_peer_, std::chrono::seconds(30));
    if (lane) {
      FrameHeader join = header_of(1, FrameType::join);
      join.group = group;
      join.epoch = kPlace.epoch;
      join.lane = kPlace.lane;
      client_peer_.channel->send_copy(join, {});
    }
    const TimePoint limit = Clock::now() + std::chrono::minutes(1);
    while (!client_peer_.closed && !(client_peer_.opened && acceptor_.peer.channel != nullptr)) {
      ASSERT_LT(Clock::now(), limit);
      if (server_->poll({}) + client_->poll({}) == 0) server_->poll(std::chrono::microseconds(100));
    }
  }
  void expect_refused(const char* why) {
    ASSERT_TRUE(client_peer_.closed);
    EXPECT_THAT(client_peer_.closed->message, HasSubstr(why));
    const VerbsStatistics server = server_->statistics();
    EXPECT_EQ(server.refused_unproved, 1U);
    EXPECT_EQ(server.accepted + server.queue_pairs + server.memory_regions + server.registrations, 0U);
  }
  void expect_open() {
    ASSERT_FALSE(client_peer_.closed) << client_peer_.closed->message;
    EXPECT_EQ(server_->statistics().refused_unproved, 0U);
  }
  static std::unique_ptr<VerbsTransport> make(const std::string& host, std::shared_ptr<LinkKeys> keys) {
    return VerbsTransport::create({.keys = std::move(keys), .queue_pairs = 2, .bind_address = host}).value();
  }

  class PeerAcceptor final : public Acceptor {
   public:
    ChannelHandler* on_accept(std::unique_ptr<Channel> channel) override {
      peer.channel = std::move(channel);
      return &peer;
    }
    Peer peer;
  };
  std::shared_ptr<LinkKeys> keys_there_ = proving();
  PeerAcceptor acceptor_;
  Peer client_peer_;
  std::unique_ptr<VerbsTransport> server_, client_;
  std::unique_ptr<Listener> listener_;
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

TEST_F(Proof, RefusesWhoProvesNothing) {
  ASSERT_NO_FATAL_FAILURE(connect(nullptr));
  expect_refused("does not prove");
}

TEST_F(Proof, RefusesAGroupThatNoSecretIsKnownOf) {
  const auto here = proving();
  here->add({.group = 78, .epoch = kPlace.epoch, .lane = kPlace.lane, .child = kPlace.child}, secret_of(15),
            PacketSecurity::off);
  ASSERT_NO_FATAL_FAILURE(connect(here, true, 78));
  expect_refused("shares no secret");
}

TEST_F(Proof, IsAskedOfWhoAnswersToo) {
  keys_there_ = nullptr;  // lets everybody in
  const auto here = proving();
  here->set_peers(secret_of(1));
  ASSERT_NO_FATAL_FAILURE(connect(here));
  ASSERT_TRUE(client_peer_.closed);
  EXPECT_EQ(client_peer_.closed->code, Errc::denied);
  EXPECT_THAT(client_peer_.closed->message, HasSubstr("does not know the secret"));
}

}  // namespace
}  // namespace tributary::transport::test
