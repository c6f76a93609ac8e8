// Sealed connections over real queue pairs: what both sides agree on, what a peer that does not suffice is told, and
// what a peer that breaks the rules can do.
#include <gmock/gmock.h>

#include "tests/rdma/transport/raw_peer.h"
#include "tests/rdma/transport/verbs_pair.h"
#include "tests/unit/packet/sealed_keys.h"

namespace tributary::transport::test {
namespace {

using testing::HasSubstr;
using verbs::RecordKind;

constexpr LinkName kPlace{77, 3, 0, 5};  // a place of sealed_keys()

class Sealed : public VerbsPair {
 protected:
  /// Connects, as a child of the group.
  void connect(std::shared_ptr<LinkKeys> there, std::shared_ptr<LinkKeys> here) {
    FrameHeader join = header_of(1, FrameType::join);
    join.group = kPlace.group;
    join.epoch = kPlace.epoch;
    join.lane = static_cast<std::uint8_t>(kPlace.lane);
    VerbsPair::connect({.keys = std::move(there), .queue_pairs = 2}, {.keys = std::move(here), .queue_pairs = 2}, join);
  }
  /// Sends frames of many lengths in both directions, with the hints that connections in clear use.
  void connect_and_carry(PacketSecurity level) {
    ASSERT_NO_FATAL_FAILURE(connect(sealed_keys(level), sealed_keys(level)));
    ASSERT_FALSE(client_peer.closed) << client_peer.closed->message;
    ASSERT_TRUE(run_until([&] { return server_peer().frames.size() == 1; })) << "the join";
    EXPECT_EQ(client_peer.channel->sealed(), (SealedLink{kPlace, level}));
    EXPECT_EQ(server_peer().channel->sealed(), (SealedLink{kPlace, level}));
    server_peer().channel->make_room(4, 1U << 20U);
    std::vector<std::byte> expected(1U << 20U);
    FrameHeader header = header_of(9);
    header.payload_bytes = static_cast<std::uint32_t>(expected.size());
    client_peer.channel->expect(header, expected);
    for (const std::size_t bytes : {0U, 1U, 4096U, 16384U, 16385U, 100'001U, 1U << 20U}) {
      ASSERT_NO_FATAL_FAILURE(carry(client_peer, server_peer(), bytes));
      ASSERT_NO_FATAL_FAILURE(carry(server_peer(), client_peer, bytes));
    }
  }
  void carry(Peer& from, Peer& to, std::size_t bytes) {
    const auto payload = pattern(bytes, 3);
    const std::size_t before = to.frames.size();
    ASSERT_TRUE(from.channel->send(header_of(9), payload, bytes));
    ASSERT_TRUE(run_until([&] { return to.frames.size() > before || to.closed; }));
    ASSERT_FALSE(to.closed) << to.closed->message;
    EXPECT_EQ(to.frames.back().payload, payload) << bytes;
  }
  void expect_refused(Errc code, const char* why) {
    ASSERT_TRUE(client_peer.closed);
    EXPECT_EQ(client_peer.closed->code, code);
    EXPECT_THAT(client_peer.closed->message, HasSubstr(why));
    EXPECT_EQ(server->statistics().accepted, 0U);
    EXPECT_EQ(server->statistics().queue_pairs, 0U);
  }
};

TEST_F(Sealed, CarriesFramesOfAllLengthsAuthenticated) {
  ASSERT_NO_FATAL_FAILURE(connect_and_carry(PacketSecurity::authenticate));
}

TEST_F(Sealed, CarriesFramesOfAllLengthsEncryptedAndGivesNoRightToMemory) {
  ASSERT_NO_FATAL_FAILURE(connect_and_carry(PacketSecurity::encrypt));
  for (const auto* const side : {server.get(), client.get()}) {
    const VerbsStatistics figures = side->statistics();
    EXPECT_EQ(figures.bytes_written + figures.bytes_fetched + figures.memory_windows, 0U);
    EXPECT_EQ(figures.queue_pairs, 1U) << "further queue pairs would have nothing to do";
  }
}

TEST_F(Sealed, DoesNotReachMemoryOfDevices) {
  ASSERT_NO_FATAL_FAILURE(connect(sealed_keys(PacketSecurity::encrypt), sealed_keys(PacketSecurity::encrypt)));
  auto* const reaches = dynamic_cast<ReachesDeviceMemory*>(client_peer.channel.get());
  ASSERT_NE(reaches, nullptr);
  const auto memory = pattern(4096, 1);
  const Status reached = reaches->reach(memory);
  ASSERT_FALSE(reached);
  EXPECT_EQ(reached.error().code, Errc::unsupported);
}

TEST_F(Sealed, AnotherSecretIsRefusedBeforeThereIsAQueuePair) {
  ASSERT_NO_FATAL_FAILURE(connect(sealed_keys(PacketSecurity::encrypt), sealed_keys(PacketSecurity::encrypt, 9)));
  expect_refused(Errc::unreachable, "does not prove that it belongs to the group");
  EXPECT_EQ(server->statistics().refused_unproved, 1U);
}

TEST_F(Sealed, AListenerTakesNoLessThanItDemands) {
  ASSERT_NO_FATAL_FAILURE(connect(sealed_keys(PacketSecurity::encrypt), sealed_keys(PacketSecurity::authenticate)));
  expect_refused(Errc::unreachable, "takes no connections below security 'encrypt'; set TRIBUTARY_SECURITY=encrypt");
  EXPECT_EQ(server->statistics().seals_refused, 1U);
}

TEST_F(Sealed, AListenerThatDemandsSecurityTakesNoConnectionInClear) {
  ASSERT_NO_FATAL_FAILURE(connect(sealed_keys(PacketSecurity::authenticate), sealed_keys(PacketSecurity::off)));
  expect_refused(Errc::unreachable, "takes no connections below security 'authenticate'");
}

TEST_F(Sealed, AListenerWithoutKeysNeverSeals) {
  ASSERT_NO_FATAL_FAILURE(connect(nullptr, sealed_keys(PacketSecurity::encrypt)));
  expect_refused(Errc::unreachable, "it has security 'off'");
}

TEST_F(Sealed, AClientThatDemandsSecuritySendsNothingInClear) {
  const auto here = std::make_shared<LinkKeys>(PacketSecurity::encrypt, true);
  ASSERT_NO_FATAL_FAILURE(connect(sealed_keys(PacketSecurity::off), here));
  expect_refused(Errc::denied, "this connection's group has no secret for it");
}

TEST_F(Sealed, AListenerThatDemandsNothingSealsWhereTheClientAsksForIt) {
  ASSERT_NO_FATAL_FAILURE(connect(sealed_keys(PacketSecurity::off), sealed_keys(PacketSecurity::encrypt)));
  ASSERT_FALSE(client_peer.closed) << client_peer.closed->message;
  EXPECT_EQ(client_peer.channel->sealed(), (SealedLink{kPlace, PacketSecurity::encrypt}));
}

// ---- Peers that break the rules

class SealedHostile : public testing::Test {
 protected:
  void SetUp() override {
    if (rdma_hosts().empty()) GTEST_SKIP() << "RDMA_HOSTS names no address: tests/rdma/rdma-vm sets it";
    server_ =
        VerbsTransport::create({.keys = sealed_keys(PacketSecurity::encrypt), .bind_address = rdma_hosts().front()})
            .value();
    auto listener = server_->listen({rdma_hosts().front(), 0}, acceptor_);
    ASSERT_TRUE(listener) << listener.error().message;
    listener_ = std::move(*listener);
    raw_ = std::make_unique<RawPeer>(
        listener_->local(), rdma_hosts().back(), kPlace.group, [this] { server_->poll({}); }, RawPeer::kDepth, link());
    ASSERT_TRUE(raw_->connected());
  }
  static LinkKeys::Link link(std::uint8_t first = 6) { return {{kPlace, PacketSecurity::encrypt}, secret_of(first)}; }
  static std::unique_ptr<verbs::SealedMessages> messages(const LinkKeys::Link& of) {
    return verbs::SealedMessages::of_client(of).value();
  }
  /// Greets, and sends one frame in order.
  void begin() {
    ASSERT_TRUE(raw_->greet(messages(link())));
    raw_->send_bytes(sealed(frame(1, 1000)));
    ASSERT_TRUE(run_until([&] { return !acceptor_.peers.empty() && peer().frames.size() == 1; }));
  }
  [[nodiscard]] std::vector<std::byte> frame(std::uint64_t sequence, std::size_t bytes) {
    FrameHeader header = header_of(sequence);
    header.payload_bytes = static_cast<std::uint32_t>(bytes);
    return raw_->message_with(RecordKind::here, header, pattern(bytes, sequence));
  }
  [[nodiscard]] std::vector<std::byte> sealed(std::vector<std::byte> message) {
    EXPECT_TRUE(raw_->seal().seal(message));
    return message;
  }
  void expect_end(const char* why, std::size_t frames = 1, std::uint64_t forged = 0) {
    ASSERT_TRUE(run_until([&] { return peer().closed.has_value(); }));
    EXPECT_EQ(peer().closed->code, Errc::corrupt);
    EXPECT_THAT(peer().closed->message, HasSubstr(why));
    EXPECT_EQ(peer().frames.size(), frames);
    EXPECT_EQ(server_->statistics().messages_forged, forged);
  }
  [[nodiscard]] bool run_until(const std::function<bool()>& done) {
    const TimePoint limit = Clock::now() + std::chrono::minutes(1);
    while (!done()) {
      if (Clock::now() > limit) return false;
      server_->poll({});
    }
    return true;
  }
  Peer& peer() { return *acceptor_.peers.front(); }

  std::unique_ptr<VerbsTransport> server_;
  PeerAcceptor acceptor_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<RawPeer> raw_;
};

TEST_F(SealedHostile, AChangedBitEndsTheConnectionAndNoLaterFrameIsServed) {
  ASSERT_NO_FATAL_FAILURE(begin());
  auto changed = sealed(frame(2, 1000));
  const auto later = sealed(frame(3, 1000));
  changed[500] ^= std::byte{1};
  raw_->send_bytes(changed);
  raw_->send_bytes(later);
  expect_end("message 2 of the sealed connection to", 1, 1);
}

TEST_F(SealedHostile, ARepeatedMessageEndsTheConnection) {
  ASSERT_NO_FATAL_FAILURE(begin());
  const auto again = sealed(frame(2, 1000));
  raw_->send_bytes(again);
  ASSERT_TRUE(run_until([&] { return peer().frames.size() == 2; }));
  raw_->send_bytes(again);
  expect_end("is not authentic", 2, 1);
}

TEST_F(SealedHostile, AMessageInClearEndsTheConnection) {
  ASSERT_NO_FATAL_FAILURE(begin());
  raw_->send_frame(header_of(2), pattern(1000, 2));
  expect_end("is not authentic", 1, 1);
}

TEST_F(SealedHostile, AWriteEndsTheConnection) {
  ASSERT_NO_FATAL_FAILURE(begin());
  EXPECT_EQ(raw_->write_and_tell(0, 0, 0, verbs::PlaceImmediate{}), IBV_WC_SUCCESS) << "no bytes need no right";
  expect_end("a write to a sealed connection");
}

TEST_F(SealedHostile, AnAuthenticOfferIsRefused) {
  ASSERT_NO_FATAL_FAILURE(begin());
  FrameHeader header = header_of(2);
  header.payload_bytes = sizeof(verbs::RemotePayload);
  const std::vector<std::byte> somewhere(sizeof(verbs::RemotePayload));
  raw_->send_bytes(sealed(raw_->message_with(RecordKind::fetch, header, somewhere)));
  expect_end("an offer on a sealed connection");
}

TEST_F(SealedHostile, APartThatNoFrameWaitsForIsRefused) {
  ASSERT_NO_FATAL_FAILURE(begin());
  raw_->send_bytes(sealed(raw_->message_with(RecordKind::part, header_of(2), pattern(100, 2))));
  expect_end("a part that no frame waits for");
}

TEST_F(SealedHostile, MorePartsThanThePayloadHasAreRefused) {
  ASSERT_NO_FATAL_FAILURE(begin());
  FrameHeader header = header_of(2);
  header.payload_bytes = 150;
  raw_->send_bytes(sealed(raw_->message_with(RecordKind::begin, header, pattern(100, 2))));
  raw_->send_bytes(sealed(raw_->message_with(RecordKind::part, header_of(0), pattern(51, 2))));
  expect_end("a part that no frame waits for");
}

TEST_F(SealedHostile, AFrameWithinAnotherIsRefused) {
  ASSERT_NO_FATAL_FAILURE(begin());
  FrameHeader header = header_of(2);
  header.payload_bytes = 150;
  raw_->send_bytes(sealed(raw_->message_with(RecordKind::begin, header, pattern(100, 2))));
  raw_->send_bytes(sealed(frame(3, 10)));
  expect_end("a frame within another");
}

TEST_F(SealedHostile, AHelloWithAnotherSecretGetsNoAnswerAndNoFrameIsServed) {
  EXPECT_TRUE(raw_->connected()) << "the request was proved, for example by an overheard one";
  auto impostor = messages(link(9));
  raw_->send_bytes(impostor->ours());
  ASSERT_TRUE(run_until([&] { return server_->statistics().seals_refused == 1; }));
  ASSERT_TRUE(run_until([&] { return server_->statistics().queue_pairs == 0; }));
  for (const auto& accepted : acceptor_.peers) EXPECT_EQ(accepted->frames.size(), 0U);
}

}  // namespace
}  // namespace tributary::transport::test
