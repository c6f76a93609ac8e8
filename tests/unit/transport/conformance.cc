// Duties of every transport: frames, borrowed memory, flow control. The ends of connections are in
// conformance_failures.cc.
#include "tests/unit/transport/peer.h"

namespace tributary::transport::test {

using namespace std::chrono_literals;

namespace {

std::vector<std::uint64_t> numbers(std::size_t count) {
  std::vector<std::uint64_t> all(count);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

void expect_pattern(const Received& frame, std::size_t size, std::uint64_t seed) {
  EXPECT_EQ(frame.header.payload_bytes, size);
  EXPECT_TRUE(frame.payload == pattern(size, seed)) << "payload of frame " << seed << " differs";
}

}  // namespace

TEST_P(TransportConformance, BringsAFrameWithEveryFieldOfItsHeader) {
  connect();
  FrameHeader header = header_of(41, FrameType::result);
  header.flags = frame_flags::kBare;
  header.operation = 9;
  header.segment = 8;
  header.lane = 7;
  header.set_signature({Collective::broadcast, DType::bfloat16, ReduceOp::max, 5, 123456789012});
  const auto payload = pattern(300, 1);
  ASSERT_TRUE(client_.channel->send(header, payload, 1));
  ASSERT_TRUE(run_until([&] { return !server().frames.empty() && !client_.sent.empty(); }));
  const FrameHeader& got = server().frames[0].header;
  header.payload_bytes = 300;
  EXPECT_EQ(std::memcmp(&got, &header, sizeof header), 0);
  expect_pattern(server().frames[0], 300, 1);
}

TEST_P(TransportConformance, KeepsTheOrderOfFramesInBothDirections) {
  connect();
  std::vector<std::vector<std::byte>> payloads;
  for (std::uint64_t i = 0; i < 500; ++i) payloads.push_back(pattern(i * 7 % 1500, i));
  std::size_t up = 0;
  std::size_t down = 0;
  const auto feed = [&](Channel& channel, std::size_t& next) {
    while (next < payloads.size() && channel.send(header_of(next), payloads[next], next)) ++next;
  };
  client_.when_sent = [&](std::uint64_t) { feed(*client_.channel, up); };
  server().when_sent = [&](std::uint64_t) { feed(*server().channel, down); };
  feed(*client_.channel, up);
  feed(*server().channel, down);
  ASSERT_TRUE(run_until([&] {
    return server().frames.size() == 500 && client_.frames.size() == 500 && client_.sent.size() == 500 &&
           server().sent.size() == 500;
  }));
  for (const Peer* peer : {&server(), &client_}) {
    EXPECT_EQ(peer->sent, numbers(500)) << "on_sent comes in the order of the sends";
    for (std::uint64_t i = 0; i < 500; ++i) {
      EXPECT_EQ(peer->frames[i].header.sequence, i);
      expect_pattern(peer->frames[i], payloads[i].size(), i);
    }
  }
}

TEST_P(TransportConformance, BringsFramesThatWereSentBeforeItWasOpen) {
  const auto payload = pattern(1000, 4);
  client_.channel = world_->client().connect(listener_->local(), client_, 10s);
  ASSERT_TRUE(client_.channel->send(header_of(0), payload, 0));
  client_.channel->send_copy(header_of(1), pattern(10, 5));
  EXPECT_FALSE(client_.opened) << "no callback happens inside connect() or send()";
  ASSERT_TRUE(run_until([&] { return !acceptor_.peers.empty() && server().frames.size() == 2; }));
  expect_pattern(server().frames[0], 1000, 4);
  expect_pattern(server().frames[1], 10, 5);
}

TEST_P(TransportConformance, BringsLargePayloadsWhole) {
  connect();
  const auto segment = pattern(kSegmentBytesMax, 1);
  const auto control = pattern(9'000'001, 2);
  ASSERT_TRUE(client_.channel->send(header_of(0), segment, 0));
  client_.channel->send_copy(header_of(1, FrameType::welcome), control);
  ASSERT_TRUE(server().channel->send(header_of(2), segment, 0));
  ASSERT_TRUE(run_until([&] { return server().frames.size() == 2 && client_.frames.size() == 1; }));
  expect_pattern(server().frames[0], kSegmentBytesMax, 1);
  expect_pattern(server().frames[1], 9'000'001, 2);
  expect_pattern(client_.frames[0], kSegmentBytesMax, 1);
}

TEST_P(TransportConformance, WritesPayloadsStraightToTheirPlace) {
  connect();
  std::vector<std::byte> slots(3 * 4096, std::byte{0xAA});
  server().place = [&](Channel&, const FrameHeader& header) -> Placement {
    return Accept{std::span(slots).subspan(header.sequence * 4096, header.payload_bytes)};
  };
  const std::byte* placed = nullptr;
  std::size_t seen = 0;
  server().when_frame = [&](Channel&, const Received&) { ++seen; };
  const auto payload = pattern(4000, 1);
  for (const std::uint64_t slot : {2U, 0U}) ASSERT_TRUE(client_.channel->send(header_of(slot), payload, slot));
  ASSERT_TRUE(run_until([&] { return seen == 2 && client_.sent.size() == 2; }));
  (void)placed;
  EXPECT_TRUE(std::ranges::equal(payload, std::span(slots).first(4000)));
  EXPECT_TRUE(std::ranges::equal(payload, std::span(slots).subspan(8192, 4000)));
  EXPECT_TRUE(std::ranges::all_of(std::span(slots).subspan(4000, 4192), [](std::byte b) {
    return b == std::byte{0xAA};
  })) << "no byte outside of the place is written";
}

TEST_P(TransportConformance, FreesBorrowedMemoryWithOnSent) {
  connect();
  std::vector<std::vector<std::byte>> buffers(40);
  for (std::uint64_t i = 0; i < buffers.size(); ++i) {
    buffers[i] = pattern(20'000, i);
    ASSERT_TRUE(client_.channel->send(header_of(i), buffers[i], i));
  }
  client_.when_sent = [&](std::uint64_t cookie) { std::ranges::fill(buffers[cookie], std::byte{0}); };
  ASSERT_TRUE(run_until([&] { return server().frames.size() == 40 && client_.sent.size() == 40; }));
  for (std::uint64_t i = 0; i < buffers.size(); ++i) expect_pattern(server().frames[i], 20'000, i);
}

TEST_P(TransportConformance, CopiesPayloadsSentByCopyWithoutAReport) {
  connect();
  auto payload = pattern(500, 1);
  const auto borrowed = pattern(500, 2);
  client_.channel->send_copy(header_of(0), payload);
  std::ranges::fill(payload, std::byte{0});
  ASSERT_TRUE(client_.channel->send(header_of(1), borrowed, 17));
  client_.channel->send_copy(header_of(2), {});
  ASSERT_TRUE(run_until([&] { return server().frames.size() == 3 && !client_.sent.empty(); }));
  settle();
  expect_pattern(server().frames[0], 500, 1);
  expect_pattern(server().frames[1], 500, 2);
  EXPECT_EQ(client_.sent, std::vector<std::uint64_t>{17});
}

TEST_P(TransportConformance, GathersManySmallFrames) {
  connect();
  std::size_t next = 0;
  const auto payload = pattern(16, 3);
  const auto feed = [&] {
    while (next < 5000 && client_.channel->send(header_of(next), payload, next)) ++next;
  };
  client_.when_sent = [&](std::uint64_t) { feed(); };
  feed();
  ASSERT_TRUE(run_until([&] { return server().frames.size() == 5000; }));
  for (std::uint64_t i = 0; i < 5000; ++i) ASSERT_EQ(server().frames[i].header.sequence, i);
}

TEST_P(TransportConformance, BringsEmptyFrames) {
  connect();
  ASSERT_TRUE(client_.channel->send(header_of(0), {}, 0));
  ASSERT_TRUE(client_.channel->send(header_of(1, FrameType::leave), {}, 1));
  ASSERT_TRUE(run_until([&] { return server().frames.size() == 2 && client_.sent.size() == 2; }));
  EXPECT_TRUE(server().frames[1].payload.empty());
}

TEST_P(TransportConformance, AsksAgainAfterNotYetAndResume) {
  connect();
  bool ready = false;
  server().place = [&](Channel&, const FrameHeader& header) -> Placement {
    if (!ready) return NotYet{};
    return server().accept(header);
  };
  const auto payload = pattern(5000, 1);
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(client_.channel->send(header_of(i), payload, i));
  ASSERT_TRUE(run_until([&] { return server().headers == 1; }));
  settle();
  EXPECT_EQ(server().headers, 1U) << "on_header is not called again before resume()";
  EXPECT_TRUE(server().frames.empty());
  server().channel->resume();
  EXPECT_EQ(server().headers, 1U) << "no callback happens inside resume()";
  ASSERT_TRUE(run_until([&] { return server().headers == 2; }));
  ready = true;
  server().channel->resume();
  ASSERT_TRUE(run_until([&] { return server().frames.size() == 3; }));
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(server().frames[i].header.sequence, i);
}

TEST_P(TransportConformance, HonoursResumeFromInsideOnHeader) {
  connect();
  server().place = [&](Channel& channel, const FrameHeader& header) -> Placement {
    channel.resume();
    if (server().headers < 3) return NotYet{};
    return server().accept(header);
  };
  ASSERT_TRUE(client_.channel->send(header_of(0), {}, 0));
  ASSERT_TRUE(run_until([&] { return server().frames.size() == 1; }));
  EXPECT_EQ(server().headers, 3U);
}

TEST_P(TransportConformance, IgnoresResumeWhenNothingWaits) {
  connect();
  server().channel->resume();
  const auto payload = pattern(100, 1);
  ASSERT_TRUE(client_.channel->send(header_of(0), payload, 0));
  server().channel->resume();
  ASSERT_TRUE(run_until([&] { return server().frames.size() == 1; }));
  server().channel->resume();
  settle();
  EXPECT_EQ(server().headers, 1U);
}

TEST_P(TransportConformance, RefusesSendsWhenTheQueueIsFullAndTakesThemAgainAfterOnSent) {
  connect();
  bool ready = false;
  server().place = [&](Channel&, const FrameHeader& header) -> Placement {
    if (!ready) return NotYet{};
    return server().accept(header);
  };
  const auto payload = pattern(kSegmentBytesMax, 1);  // all frames together are larger than any socket buffer
  std::uint64_t taken = 0;
  while (taken < 1000) {
    if (!client_.channel->send(header_of(taken), payload, taken)) {
      const std::size_t sent_before = client_.sent.size();
      settle();
      if (client_.sent.size() == sent_before) break;
      continue;
    }
    ++taken;
  }
  ASSERT_LT(taken, 1000U) << "a receiver that does not read must stop the sender";
  EXPECT_EQ(taken - client_.sent.size(), kFramesQueuedMax);
  EXPECT_FALSE(client_.channel->closed()) << "back-pressure is no error";
  ready = true;
  server().channel->resume();
  ASSERT_TRUE(run_until([&] { return client_.sent.size() == taken; }));
  EXPECT_TRUE(client_.channel->send(header_of(taken), payload, taken));
  ASSERT_TRUE(run_until([&] { return server().frames.size() == taken + 1 && client_.sent.size() == taken + 1; }));
}

TEST_P(TransportConformance, SendsFromInsideEveryCallback) {
  client_.when_open = [&] { client_.channel->send_copy(header_of(0), pattern(10, 0)); };
  acceptor_.when_accepted = [&](Peer& peer) {
    peer.channel->send_copy(header_of(100), {});
    peer.when_frame = [&peer](Channel& channel, const Received& frame) {
      if (frame.header.sequence < 20) channel.send_copy(header_of(frame.header.sequence + 1), frame.payload);
    };
  };
  client_.when_frame = [&](Channel& channel, const Received& frame) {
    if (frame.header.sequence < 20) channel.send_copy(header_of(frame.header.sequence + 1), frame.payload);
  };
  connect();
  const auto last = [](const Peer& peer) { return peer.frames.empty() ? 0 : peer.frames.back().header.sequence; };
  ASSERT_TRUE(run_until([&] { return last(server()) == 20 || last(client_) == 20; }));
  EXPECT_EQ(client_.frames[0].header.sequence, 100U);
}

TEST_P(TransportConformance, NeverCallsBackFromInsideACall) {
  connect();
  const auto payload = pattern(64, 1);
  bool inside = false;
  const auto check = [&] { EXPECT_FALSE(inside); };
  client_.when_sent = [&](std::uint64_t) { check(); };
  client_.when_frame = [&](Channel&, const Received&) { check(); };
  client_.when_closed = check;
  ASSERT_TRUE(server().channel->send(header_of(1), payload, 1));
  for (std::uint64_t i = 0; i < 20; ++i) {
    inside = true;
    ASSERT_TRUE(client_.channel->send(header_of(i), payload, i));
    client_.channel->resume();
    inside = false;
  }
  EXPECT_TRUE(client_.sent.empty());
  ASSERT_TRUE(run_until([&] { return client_.sent.size() == 20 && server().sent.size() == 1; }));
}

TEST_P(TransportConformance, RunsPostedCallsInOrderInALaterPoll) {
  std::vector<int> order;
  for (int i = 0; i < 5; ++i) world_->client().post([&order, i] { order.push_back(i); });
  EXPECT_TRUE(order.empty());
  ASSERT_TRUE(run_until([&] { return order.size() == 5; }));
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST_P(TransportConformance, ServesTwoHundredConnectionsAtOnce) {
  std::vector<std::unique_ptr<Peer>> clients;
  for (std::uint64_t i = 0; i < 200; ++i) {
    clients.push_back(std::make_unique<Peer>());
    clients[i]->channel = world_->client().connect(listener_->local(), *clients[i], 30s);
    clients[i]->channel->send_copy(header_of(i), pattern(2000, i));
  }
  acceptor_.prepare = [](Peer& peer) {
    peer.when_frame = [](Channel& channel, const Received& frame) {
      channel.send_copy(header_of(frame.header.sequence, FrameType::result), frame.payload);
    };
  };
  ASSERT_TRUE(
      run_until([&] { return std::ranges::all_of(clients, [](const auto& c) { return c->frames.size() == 1; }); }));
  for (std::uint64_t i = 0; i < 200; ++i) {
    EXPECT_EQ(clients[i]->frames[0].header.sequence, i);
    expect_pattern(clients[i]->frames[0], 2000, i);
  }
}

TEST_P(TransportConformance, NamesThePeer) {
  connect();
  EXPECT_EQ(client_.channel->peer(), to_string(listener_->local()));
  EXPECT_TRUE(parse_endpoint(server().channel->peer())) << server().channel->peer();
}

INSTANTIATE_TEST_SUITE_P(Worlds, TransportConformance, ::testing::ValuesIn(worlds()),
                         [](const auto& world) { return world.param.name; });

}  // namespace tributary::transport::test
