// Promises that only transports with I/O threads make.
#include "tributary/transport/io_threads.h"

#include <array>
#include <thread>

#include "tests/unit/transport/peer.h"
#include "transport/io_threads/hand_over.h"

namespace tributary::transport::test {
namespace {

using namespace std::chrono_literals;

NearSettings over_tcp() {
  return {.tcp = {.frames_queued_max = kFramesQueuedMax}, .shm = {}, .shared_memory = false};
}

/// A client and a server, whose accepted connections stay on the user's thread until the test moves them.
class IoThreads : public ::testing::Test {
 protected:
  void SetUp() override {
    listener_ = server_.listen({"127.0.0.1", 0}, acceptor_).value();
    client_peer_.channel = client_.io_way().connect(listener_->local(), client_peer_, 10s);
    ASSERT_TRUE(run_until([&] { return client_peer_.opened && acceptor_.peers.size() == 1; }));
  }
  bool run_until(const std::function<bool()>& done) {
    for (const TimePoint limit = Clock::now() + 20s; !done();) {
      if (Clock::now() > limit) return false;
      if (server_.poll({}) + client_.poll({}) == 0) server_.poll(100us);
    }
    return true;
  }
  Peer& accepted() { return *acceptor_.peers.front(); }

  IoThreadsTransport server_{over_tcp(), 2};
  IoThreadsTransport client_{over_tcp(), 2};
  PeerAcceptor acceptor_;
  Peer client_peer_;
  std::unique_ptr<Listener> listener_;
};

TEST_F(IoThreads, PutAnnouncedFramesToTheirPlacesBeforeTheHandlerIsAsked) {
  constexpr std::size_t kFrames = 20, kBytes = 100'000;
  std::vector<std::vector<std::byte>> places(kFrames, std::vector<std::byte>(kBytes));
  for (std::size_t i = 0; i < kFrames; ++i) {
    FrameHeader header = header_of(i);
    header.payload_bytes = kBytes;
    client_peer_.channel->expect(header, places[i]);
  }
  client_.poll({});  // the announcements are on their way before the frames
  // The I/O thread may be in a turn in which it has already looked for announcements. A first frame, which nobody has
  // announced, makes sure that this turn is over.
  accepted().channel->send_copy(header_of(kFrames), pattern(1, kFrames));
  ASSERT_TRUE(run_until([&] { return client_peer_.frames.size() == 1; }));
  client_peer_.frames.clear();
  std::size_t landed_before = 0;
  client_peer_.place = [&](Channel&, const FrameHeader& header) -> Placement {
    std::vector<std::byte>& place = places[header.sequence];
    landed_before += place == pattern(kBytes, header.sequence) ? 1U : 0U;
    return Accept{place};
  };
  std::deque<std::vector<std::byte>> sent;
  for (std::size_t i = 0; i < kFrames; ++i) {
    sent.push_back(pattern(kBytes, i));
    ASSERT_TRUE(accepted().channel->send(header_of(i), sent.back(), i));
  }
  ASSERT_TRUE(run_until([&] { return client_peer_.frames.size() == kFrames; }));
  EXPECT_EQ(landed_before, kFrames);
  for (std::size_t i = 0; i < kFrames; ++i) EXPECT_EQ(client_peer_.frames[i].payload, sent[i]) << i;
}

TEST_F(IoThreads, PassOnFramesThatOvertakeTheirAnnouncements) {
  std::deque<std::vector<std::byte>> places;
  client_peer_.place = [&](Channel&, const FrameHeader& header) -> Placement {
    return Accept{places[header.sequence]};
  };
  for (std::uint64_t i = 0; i < 200; ++i) {
    places.emplace_back(100);
    FrameHeader header = header_of(i);
    header.payload_bytes = 100;
    accepted().channel->send_copy(header_of(i), pattern(100, i));
    server_.poll({});
    client_peer_.channel->expect(header, places.back());
  }
  ASSERT_TRUE(run_until([&] { return client_peer_.frames.size() == 200; }));
  for (std::uint64_t i = 0; i < 200; ++i) EXPECT_EQ(client_peer_.frames[i].payload, pattern(100, i)) << i;
}

TEST_F(IoThreads, ALateAnnouncementCountsForItsOwnFrame) {
  std::vector<std::byte> place(100);
  int asked = 0;
  client_peer_.place = [&](Channel&, const FrameHeader& header) -> Placement {
    if (header.sequence == 0 && asked++ == 0) {
      FrameHeader late = header_of(0);
      late.payload_bytes = 100;
      client_peer_.channel->expect(late, place);
    }
    return Accept{place};
  };
  accepted().channel->send_copy(header_of(0), pattern(100, 0));
  ASSERT_TRUE(run_until([&] { return client_peer_.frames.size() == 1; }));
  // If the announcement still existed, the transport would write this frame, which has the same header, before it asks
  // the handler.
  std::ranges::fill(place, std::byte{0x55});
  bool untouched = false;
  client_peer_.place = [&](Channel&, const FrameHeader&) -> Placement {
    untouched = std::ranges::all_of(place, [](std::byte b) { return b == std::byte{0x55}; });
    return Accept{place};
  };
  accepted().channel->send_copy(header_of(0), pattern(100, 1));
  ASSERT_TRUE(run_until([&] { return client_peer_.frames.size() == 2; }));
  EXPECT_TRUE(untouched);
}

TEST_F(IoThreads, AskAboutAFrameThatIsNotTheAnnouncedOne) {
  std::vector<std::byte> place(100), other(100);
  FrameHeader announced = header_of(7);
  announced.payload_bytes = 100;
  client_peer_.channel->expect(announced, place);
  client_peer_.place = [&](Channel&, const FrameHeader& header) -> Placement {
    return Accept{header.sequence == 7 ? place : other};
  };
  accepted().channel->send_copy(header_of(8), pattern(100, 8));
  accepted().channel->send_copy(header_of(7), pattern(100, 7));
  ASSERT_TRUE(run_until([&] { return client_peer_.frames.size() == 2; }));
  EXPECT_EQ(other, pattern(100, 8));
  EXPECT_EQ(place, pattern(100, 7));
}

TEST_F(IoThreads, TakeOverAnAcceptedConnectionWithTheFramesThatHaveCome) {
  Peer& peer = accepted();
  bool moved = false;
  // The first frame moves the connection, in the middle of many small ones that were read together with it.
  peer.when_frame = [&](Channel&, const Received& received) {
    if (received.header.sequence != 0) return;
    Channel* const before = peer.channel.get();
    peer.channel = server_.to_io_thread(std::move(peer.channel), peer);
    moved = peer.channel.get() != before;
  };
  constexpr std::uint64_t kFrames = 500;
  for (std::uint64_t i = 0; i < kFrames; ++i) client_peer_.channel->send_copy(header_of(i), pattern(i % 90, i));
  ASSERT_TRUE(run_until([&] { return peer.frames.size() == kFrames; }));
  EXPECT_TRUE(moved);
  for (std::uint64_t i = 0; i < kFrames; ++i) {
    EXPECT_EQ(peer.frames[i].header.sequence, i);
    EXPECT_EQ(peer.frames[i].payload, pattern(i % 90, i));
  }
  peer.channel->send_copy(header_of(1000), pattern(10, 1));
  ASSERT_TRUE(run_until([&] { return client_peer_.frames.size() == 1; }));
  client_peer_.channel.reset();
  ASSERT_TRUE(run_until([&] { return peer.closed.has_value(); }));
}

TEST_F(IoThreads, WriteToNoMemoryAfterAClose) {
  for (int attempt = 0; attempt < 50; ++attempt) {
    Peer receiver;
    receiver.channel = client_.io_way().connect(listener_->local(), receiver, 10s);
    const std::size_t number = acceptor_.peers.size();
    ASSERT_TRUE(run_until([&] { return receiver.opened && acceptor_.peers.size() == number + 1; }));
    constexpr std::size_t kFrames = 8, kBytes = 200'000;
    std::vector<std::vector<std::byte>> places(kFrames, std::vector<std::byte>(kBytes));
    for (std::size_t i = 0; i < kFrames; ++i) {
      FrameHeader header = header_of(i);
      header.payload_bytes = kBytes;
      receiver.channel->expect(header, places[i]);
    }
    client_.poll({});  // the announcements are on their way
    receiver.place = [&](Channel&, const FrameHeader& header) -> Placement { return Accept{places[header.sequence]}; };
    const auto payload = pattern(kBytes, 3);
    for (std::size_t i = 0; i < kFrames; ++i)
      ASSERT_TRUE(acceptor_.peers.back()->channel->send(header_of(i), payload, i));
    server_.poll({});
    std::this_thread::sleep_for(std::chrono::microseconds(100 * (attempt % 5)));
    receiver.channel->close();
    const std::vector<std::byte> untouched(kBytes, std::byte{0x55});
    std::ranges::fill(places, untouched);
    acceptor_.peers.back()->channel->close();
    std::this_thread::sleep_for(1ms);
    EXPECT_EQ(std::ranges::count(places, untouched), static_cast<std::ptrdiff_t>(kFrames)) << attempt;
  }
}

TEST_F(IoThreads, EndWithTheTransportAndChannelsMayEndLater) {
  auto transport = std::make_unique<IoThreadsTransport>(over_tcp(), 3);
  Peer peer;
  peer.channel = transport->io_way().connect(listener_->local(), peer, 10s);
  const auto payload = pattern(1000, 1);
  ASSERT_TRUE(peer.channel->send(header_of(0), payload, 0));
  transport.reset();
  EXPECT_TRUE(peer.channel->closed());
  EXPECT_FALSE(peer.channel->send(header_of(1), payload, 1));
  peer.channel.reset();
  EXPECT_FALSE(peer.closed.has_value());
}

TEST_F(IoThreads, AHandlerMayConnectOnAThreadThatHasNotBegun) {
  IoThreadsTransport client(over_tcp(), 3);
  std::array<Peer, 3> ours;
  const auto connect = [&](std::size_t i) {
    ours[i].channel = client.io_way().connect(listener_->local(), ours[i], 10s);
  };
  const auto comes = [&](const std::function<bool()>& done) {
    return run_until([&] { return client.poll({}) == 0 && done(); });
  };
  for (std::size_t i = 0; i < 2; ++i) {
    connect(i);
    ASSERT_TRUE(comes([&] { return ours[i].opened && acceptor_.peers.size() == i + 2; }));
  }
  ours[0].when_frame = [&](Channel&, const Received&) { connect(2); };
  for (std::size_t i = 0; i < 2; ++i) acceptor_.peers[i + 1]->channel->send_copy(header_of(i), pattern(10, i));
  ASSERT_TRUE(comes([&] { return ours[1].frames.size() == 1 && ours[2].opened; }));
  EXPECT_EQ(ours[0].frames.size(), 1U);
}

TEST(HandOver, KeepsTheOrderWhereTheRingIsFull) {
  io_threads::HandOver<int> ring(4);
  std::vector<int> taken;
  const auto take = [&](int item) { taken.push_back(item); };
  for (int i = 0; i < 10; ++i) ring.put(i);
  EXPECT_TRUE(ring.keeps_some());
  EXPECT_EQ(ring.take(take), 4U);
  ring.put(10);  // this item goes behind those that found no room
  while (ring.keeps_some() || !ring.empty()) {
    ring.flush();
    ring.take(take);
  }
  std::vector<int> all(11);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(taken, all);
}

TEST(HandOver, LosesNothingBetweenTwoThreads) {
  io_threads::HandOver<std::uint64_t> ring(64);
  constexpr std::uint64_t kItems = 50'000;
  std::thread giver([&] {
    for (std::uint64_t i = 0; i < kItems; ++i) ring.put(i);
    while (ring.keeps_some()) ring.flush();
  });
  std::uint64_t next = 0;
  while (next < kItems) {
    ring.take([&](std::uint64_t item) {
      ASSERT_EQ(item, next);
      ++next;
    });
  }
  giver.join();
  EXPECT_TRUE(ring.empty());
}

}  // namespace
}  // namespace tributary::transport::test
