// Duties of every transport when connections are refused, rejected, closed and lost.
#include "tests/unit/transport/peer.h"

namespace tributary::transport::test {

using namespace std::chrono_literals;

TEST_P(TransportConformance, NamesTheAddressWhereNoProcessListens) {
  const Endpoint nowhere = world_->nowhere();
  client_.channel = world_->client().connect(nowhere, client_, 10s);
  const auto payload = pattern(100, 1);
  EXPECT_TRUE(client_.channel->send(header_of(0), payload, 0)) << "frames may be queued at once";
  EXPECT_FALSE(client_.closed.has_value()) << "no callback happens inside connect()";
  ASSERT_TRUE(run_until([&] { return client_.closed.has_value(); }));
  EXPECT_EQ(client_.closed->code, Errc::unreachable);
  EXPECT_NE(client_.closed->message.find(to_string(nowhere)), std::string::npos) << client_.closed->message;
  EXPECT_FALSE(client_.opened);
  EXPECT_FALSE(client_.channel->send(header_of(1), payload, 1));
}

TEST_P(TransportConformance, SaysThatAPortIsInUse) {
  PeerAcceptor second;
  const auto again = world_->server().listen(listener_->local(), second);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Errc::io);
  EXPECT_NE(again.error().message.find(to_string(listener_->local())), std::string::npos) << again.error().message;
  EXPECT_NE(again.error().message.find("in use"), std::string::npos) << again.error().message;
}

TEST_P(TransportConformance, ListensAgainWhereAListenerWasDestroyed) {
  connect();
  const Endpoint at = listener_->local();
  listener_.reset();
  PeerAcceptor second;
  auto again = world_->server().listen(at, second);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ((*again)->local().port, at.port);
  Peer newcomer;
  newcomer.channel = world_->client().connect(at, newcomer, 10s);
  ASSERT_TRUE(run_until([&] { return newcomer.opened && second.peers.size() == 1; }));
  client_.channel->send_copy(header_of(0), {});
  ASSERT_TRUE(run_until([&] { return server().frames.size() == 1; })) << "open connections outlive their listener";
}

TEST_P(TransportConformance, ListensAtSeveralPlacesAtOnce) {
  connect();
  PeerAcceptor second;
  auto more = world_->server().listen(world_->server_address(0), second);
  ASSERT_TRUE(more) << more.error().message;
  const Endpoint at = (*more)->local();
  EXPECT_NE(at.port, listener_->local().port);
  Peer newcomer;
  newcomer.channel = world_->client().connect(at, newcomer, 10s);
  ASSERT_TRUE(run_until([&] { return newcomer.opened && second.peers.size() == 1; }));
  EXPECT_EQ(acceptor_.peers.size(), 1U);
  const auto talk = [&](std::uint64_t sequence) {
    const auto payload = pattern(100'000, sequence);
    EXPECT_TRUE(client_.channel->send(header_of(sequence), payload, sequence));
    EXPECT_TRUE(newcomer.channel->send(header_of(sequence), payload, sequence));
    EXPECT_TRUE(second.peers.front()->channel->send(header_of(sequence), payload, sequence));
    return run_until([&] {
      return server().frames.size() == sequence && second.peers.front()->frames.size() == sequence &&
             newcomer.frames.size() == sequence && client_.sent.size() == sequence &&
             newcomer.sent.size() == sequence && second.peers.front()->sent.size() == sequence;
    });
  };
  ASSERT_TRUE(talk(1));
  more->reset();
  ASSERT_TRUE(talk(2)) << "open connections outlive their listener";
  auto again = world_->server().listen(at, second);
  ASSERT_TRUE(again) << again.error().message;
  ASSERT_TRUE(talk(3));
  newcomer.channel->close();
  ASSERT_TRUE(run_until([&] { return second.peers.front()->closed.has_value(); }));
  again->reset();
  world_->settle();
  client_.channel->send_copy(header_of(4), {});
  ASSERT_TRUE(run_until([&] { return server().frames.size() == 4; }));
}

TEST_P(TransportConformance, RefusesAConnection) {
  acceptor_.refuse = true;
  client_.channel = world_->client().connect(listener_->local(), client_, 10s);
  ASSERT_TRUE(run_until([&] { return client_.closed.has_value(); }));
  EXPECT_EQ(client_.closed->code, Errc::peer_gone);
  EXPECT_EQ(acceptor_.accepted, 1U);
}

TEST_P(TransportConformance, TellsTheOtherSideOfACloseAfterAllFrames) {
  connect();
  const auto payload = pattern(100'000, 1);
  for (std::uint64_t i = 0; i < 10; ++i) ASSERT_TRUE(client_.channel->send(header_of(i), payload, i));
  client_.channel->close_after_flush(10s);
  EXPECT_FALSE(client_.channel->send(header_of(11), payload, 11)) << "a closed channel takes no frame";
  ASSERT_TRUE(run_until([&] { return server().closed.has_value() && client_.channel->closed(); }));
  EXPECT_EQ(server().frames.size(), 10U);
  EXPECT_EQ(server().closed->code, Errc::peer_gone);
  std::string from = server().channel->peer();
  if (from.ends_with(":0")) from.resize(from.size() - 2);  // the process has no port, so compare only its host
  EXPECT_NE(server().closed->message.find(from), std::string::npos) << server().closed->message;
  EXPECT_FALSE(client_.closed.has_value()) << "no callback follows one's own close";
  EXPECT_TRUE(client_.sent.empty());
}

// A receiver that has all frames may end at once, so its last frame and its end may arrive together.
TEST_P(TransportConformance, ReportsATakenFrameBeforeTheEndOfItsTaker) {
  connect();
  const auto payload = pattern(100'000, 1);
  server().when_frame = [&](Channel& channel, const Received&) { channel.close_after_flush(1s); };
  ASSERT_TRUE(client_.channel->send(header_of(0), payload, 7));
  ASSERT_TRUE(run_until([&] { return !server().frames.empty(); }));
  for (const TimePoint end = Clock::now() + 100ms; Clock::now() < end;) world_->server().poll(0ms);
  ASSERT_TRUE(run_until([&] { return client_.closed.has_value() && server().channel->closed(); }));
  EXPECT_EQ(client_.sent, (std::vector<std::uint64_t>{7})) << client_.closed->message;
  EXPECT_EQ(client_.closed->code, Errc::peer_gone);
}

TEST_P(TransportConformance, FlushesWhileThePeerStillSends) {
  connect();
  const auto payload = pattern(50'000, 1);
  std::uint64_t next = 0;
  const auto feed = [&] {
    while (client_.channel->send(header_of(next), payload, next)) ++next;
  };
  client_.when_sent = [&](std::uint64_t) { feed(); };
  feed();
  ASSERT_TRUE(run_until([&] { return server().frames.size() > 3; }));
  server().channel->send_copy(header_of(0, FrameType::refuse), pattern(200, 9));
  server().channel->close_after_flush(10s);
  ASSERT_TRUE(run_until([&] { return client_.closed.has_value(); }));
  ASSERT_EQ(client_.frames.size(), 1U) << "the last frame arrives although the peer still sends";
  EXPECT_EQ(client_.frames[0].payload, pattern(200, 9));
}

TEST_P(TransportConformance, GivesUpAFlushAtItsLimit) {
  connect();
  server().place = [](Channel&, const FrameHeader&) -> Placement { return NotYet{}; };
  const auto payload = pattern(kSegmentBytesMax, 1);
  for (std::uint64_t i = 0; i < kFramesQueuedMax; ++i) ASSERT_TRUE(client_.channel->send(header_of(i), payload, i));
  client_.channel->close_after_flush(20ms);
  EXPECT_FALSE(client_.channel->closed());
  ASSERT_TRUE(run_until([&] { return client_.channel->closed(); }));
  EXPECT_FALSE(client_.closed.has_value());
}

TEST_P(TransportConformance, ClosesAtOnceWithNothingToFlushAndBeforeItWasOpen) {
  client_.channel = world_->client().connect(listener_->local(), client_, 10s);
  client_.channel->close();
  EXPECT_TRUE(client_.channel->closed());
  settle();
  EXPECT_FALSE(client_.opened);
  EXPECT_FALSE(client_.closed.has_value());

  Peer second;
  second.channel = world_->client().connect(listener_->local(), second, 10s);
  second.channel->send_copy(header_of(5), pattern(10, 5));
  second.channel->close_after_flush(10s);
  const auto arrived = [&] {
    return std::ranges::any_of(acceptor_.peers, [](const auto& p) { return p->frames.size() == 1 && p->closed; });
  };
  ASSERT_TRUE(run_until(arrived)) << "a flush waits for the connection";
}

TEST_P(TransportConformance, RejectsAFrameAndClosesWithThatError) {
  connect();
  server().place = [](Channel&, const FrameHeader&) -> Placement {
    return Reject{Error{Errc::denied, "not for you."}};
  };
  client_.channel->send_copy(header_of(0), pattern(100, 0));
  ASSERT_TRUE(run_until([&] { return server().closed.has_value() && client_.closed.has_value(); }));
  EXPECT_EQ(server().closed->code, Errc::denied);
  EXPECT_EQ(server().closed->message, "not for you.");
  EXPECT_EQ(client_.closed->code, Errc::peer_gone);
  EXPECT_TRUE(server().frames.empty());
}

TEST_P(TransportConformance, ClosesOnAHeaderThatIsNoFrame) {
  connect();
  FrameHeader broken = header_of(0);
  broken.magic ^= 0x100;
  client_.channel->send_copy(broken, pattern(100, 0));
  ASSERT_TRUE(run_until([&] { return server().closed.has_value() && client_.closed.has_value(); }));
  EXPECT_EQ(server().closed->code, Errc::corrupt);
  EXPECT_NE(server().closed->message.find(to_string(FrameReject::magic)), std::string::npos)
      << server().closed->message;
  EXPECT_EQ(server().headers, 0U);
}

TEST_P(TransportConformance, ClosesOnAPayloadThatIsTooLongForItsType) {
  connect();
  client_.channel->send_copy(header_of(0, FrameType::ready), pattern(100, 0));
  ASSERT_TRUE(run_until([&] { return server().closed.has_value(); }));
  EXPECT_EQ(server().closed->code, Errc::corrupt);
  EXPECT_NE(server().closed->message.find(to_string(FrameReject::payload_too_long)), std::string::npos);
}

TEST_P(TransportConformance, ReportsTheDeathOfAPeer) {
  connect();
  const auto payload = pattern(10, 1);
  ASSERT_TRUE(server().channel->send(header_of(0), payload, 0));
  ASSERT_TRUE(run_until([&] { return client_.frames.size() == 1; }));
  client_.channel.reset();
  ASSERT_TRUE(run_until([&] { return server().closed.has_value(); }));
  EXPECT_EQ(server().closed->code, Errc::peer_gone);
  EXPECT_FALSE(server().channel->send(header_of(1), payload, 1));
}

TEST_P(TransportConformance, LeavesAPayloadHalfWrittenWhenItsSenderDies) {
  bool seen = false;
  for (int attempt = 0; attempt < 200 && !seen; ++attempt) {
    Peer sender;
    sender.channel = world_->client().connect(listener_->local(), sender, 10s);
    ASSERT_TRUE(
        run_until([&] { return sender.opened && acceptor_.peers.size() == static_cast<std::size_t>(attempt + 1); }));
    Peer& receiver = *acceptor_.peers.back();
    // Another length in each attempt, because a sealed stream ends between whole records.
    const auto payload = pattern(kSegmentBytesMax - static_cast<std::size_t>(attempt) * 1003, 1);
    for (std::uint64_t i = 0; i < 8; ++i) ASSERT_TRUE(sender.channel->send(header_of(i), payload, i));
    ASSERT_TRUE(run_until([&] { return receiver.headers > receiver.frames.size() || receiver.frames.size() == 8; }));
    sender.channel.reset();
    ASSERT_TRUE(run_until([&] { return receiver.closed.has_value(); }));
    EXPECT_LE(receiver.headers, receiver.frames.size() + 1);
    if (receiver.headers == receiver.frames.size()) continue;
    EXPECT_EQ(receiver.buffer.size(), payload.size());
    EXPECT_NE(receiver.buffer, payload) << "the frame was not handed over, so it was not whole";
    seen = receiver.buffer[0] == payload[0];
  }
  EXPECT_TRUE(seen) << "no payload was ever left half written";
}

TEST_P(TransportConformance, ClosesFromInsideItsOwnCallbacks) {
  connect();
  server().when_frame = [&](Channel& channel, const Received&) { channel.close(); };
  for (std::uint64_t i = 0; i < 5; ++i) client_.channel->send_copy(header_of(i), pattern(100, i));
  ASSERT_TRUE(run_until([&] { return client_.closed.has_value(); }));
  settle();
  EXPECT_EQ(server().frames.size(), 1U) << "no callback follows a close";
  EXPECT_FALSE(server().closed.has_value());

  Peer second;
  acceptor_.prepare = [](Peer& peer) {
    peer.place = [&peer](Channel& channel, const FrameHeader& header) -> Placement {
      channel.close();
      return peer.accept(header);
    };
  };
  second.channel = world_->client().connect(listener_->local(), second, 10s);
  second.channel->send_copy(header_of(0), pattern(100, 0));
  ASSERT_TRUE(run_until([&] { return second.closed.has_value(); }));
  EXPECT_TRUE(acceptor_.peers.back()->frames.empty());

  Peer third;
  third.when_open = [&] { third.channel->close(); };
  third.channel = world_->client().connect(listener_->local(), third, 10s);
  ASSERT_TRUE(run_until([&] { return third.channel->closed(); }));
}

TEST_P(TransportConformance, DestroysOtherChannelsFromInsideACallback) {
  connect();
  Peer second;
  second.channel = world_->client().connect(listener_->local(), second, 10s);
  ASSERT_TRUE(run_until([&] { return second.opened && acceptor_.peers.size() == 2; }));
  const auto drop = [&](Channel&, const Received&) {
    if (acceptor_.peers.size() == 2) acceptor_.peers.pop_back();
  };
  server().when_frame = drop;
  for (std::uint64_t i = 0; i < 20; ++i) {
    client_.channel->send_copy(header_of(i), pattern(1000, i));
    second.channel->send_copy(header_of(i), pattern(1000, i));
  }
  ASSERT_TRUE(run_until([&] { return server().frames.size() == 20 && second.closed.has_value(); }));
}

TEST_P(TransportConformance, ClosesFromInsideOnClosedAndOnSent) {
  connect();
  const auto payload = pattern(100, 1);
  client_.when_sent = [&](std::uint64_t) { client_.channel->close(); };
  server().when_closed = [&] {
    server().channel->close();
    server().channel->resume();
    server().channel->close_after_flush(1s);
  };
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(client_.channel->send(header_of(i), payload, i));
  ASSERT_TRUE(run_until([&] { return server().closed.has_value(); }));
  EXPECT_EQ(client_.sent.size(), 1U);
}

}  // namespace tributary::transport::test
