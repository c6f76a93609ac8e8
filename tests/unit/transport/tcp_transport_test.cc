// Promises of TcpTransport beyond the contract, about strangers on the socket, threads, hand-over, names and limits.
#include "tributary/transport/tcp.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/unit/transport/allocations.h"
#include "tests/unit/transport/peer.h"

namespace tributary::transport::test {
namespace {

using namespace std::chrono_literals;

/// A stranger's socket.
class RawSocket {
 public:
  explicit RawSocket(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  ~RawSocket() { close(); }
  RawSocket(const RawSocket&) = delete;
  RawSocket& operator=(const RawSocket&) = delete;

  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t wrote = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      ASSERT_GT(wrote, 0);
      bytes = bytes.subspan(static_cast<std::size_t>(wrote));
    }
  }
  void write(const FrameHeader& header) {
    FrameBytes bytes;
    encode(header, bytes);
    write(bytes);
  }
  void write_urgent() { EXPECT_EQ(::send(socket_, "!", 1, MSG_OOB | MSG_NOSIGNAL), 1); }
  void close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }
  /// Closes with a reset instead of an orderly end.
  void reset() {
    const linger now{1, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close();
  }

 private:
  int socket_;
};

/// Prevents the process from opening any descriptor during its own lifetime.
class NoDescriptors {
 public:
  NoDescriptors() {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit none{3, before_.rlim_max};  // all lower numbers are in use
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  ~NoDescriptors() { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before_), 0); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

std::size_t open_descriptors() {
  std::size_t count = 0;
  DIR* directory = ::opendir("/proc/self/fd");
  while (::readdir(directory) != nullptr) ++count;
  ::closedir(directory);
  return count;
}

class TcpTransportTest : public ::testing::Test {
 protected:
  bool run_until(const std::function<bool()>& done, Duration limit = 20s) {
    for (const TimePoint end = Clock::now() + limit; !done();) {
      if (Clock::now() > end) return false;
      if (server_.poll(0ns) + client_.poll(0ns) == 0) server_.poll(100us);
    }
    return true;
  }
  std::uint16_t listen() {
    listener_ = server_.listen({"127.0.0.1", 0}, acceptor_).value();
    return listener_->local().port;
  }
  void connect() {
    listen();
    peer_.channel = client_.connect(listener_->local(), peer_, 5s);
    ASSERT_TRUE(run_until([&] { return peer_.opened && acceptor_.peers.size() == 1; }));
  }
  /// Opens and accepts a stranger's connection.
  Peer& accept() {
    const std::size_t before = acceptor_.peers.size();
    EXPECT_TRUE(run_until([&] { return acceptor_.peers.size() == before + 1; }));
    return *acceptor_.peers.back();
  }
  Peer& server() { return *acceptor_.peers.front(); }

  TcpTransport server_, client_;
  PeerAcceptor acceptor_;
  Peer peer_;
  std::unique_ptr<Listener> listener_;
};

FrameHeader with_payload(std::uint32_t bytes) {
  FrameHeader header = header_of(1);
  header.payload_bytes = bytes;
  return header;
}

}  // namespace

// ---- strangers

TEST_F(TcpTransportTest, ClosesOnGarbageAndCountsWhy) {
  RawSocket stranger(listen());
  Peer& peer = accept();
  stranger.write(pattern(200, 5));
  ASSERT_TRUE(run_until([&] { return peer.closed.has_value(); }));
  EXPECT_EQ(peer.closed->code, Errc::corrupt);
  EXPECT_NE(peer.closed->message.find("127.0.0.1:"), std::string::npos) << peer.closed->message;
  EXPECT_NE(peer.closed->message.find("magic"), std::string::npos) << peer.closed->message;
  EXPECT_EQ(server_.statistics().rejects[static_cast<std::size_t>(FrameReject::magic)], 1U);
}

TEST_F(TcpTransportTest, ClosesOnOneWrongFieldAfterGoodFrames) {
  RawSocket stranger(listen());
  Peer& peer = accept();
  stranger.write(header_of(0));
  FrameHeader wrong = header_of(1);
  wrong.lane = 200;
  stranger.write(wrong);
  ASSERT_TRUE(run_until([&] { return peer.closed.has_value(); }));
  EXPECT_EQ(peer.frames.size(), 1U);
  EXPECT_EQ(server_.statistics().rejects[static_cast<std::size_t>(FrameReject::lane)], 1U);
}

TEST_F(TcpTransportTest, NeverAsksForAPlaceForAnOversizedPayload) {
  RawSocket stranger(listen());
  Peer& peer = accept();
  stranger.write(with_payload(0xFFFFFFFF));
  ASSERT_TRUE(run_until([&] { return peer.closed.has_value(); }));
  EXPECT_EQ(peer.headers, 0U);
  EXPECT_EQ(server_.statistics().rejects[static_cast<std::size_t>(FrameReject::payload_too_long)], 1U);
}

TEST_F(TcpTransportTest, WaitsForAHeaderThatComesByteByByte) {
  RawSocket stranger(listen());
  Peer& peer = accept();
  FrameBytes bytes;
  encode(with_payload(3), bytes);
  for (const std::byte b : bytes) {
    stranger.write({&b, 1});
    server_.poll(0ns);
  }
  stranger.write(pattern(3, 1));
  ASSERT_TRUE(run_until([&] { return peer.frames.size() == 1; }));
  EXPECT_EQ(peer.frames[0].payload, pattern(3, 1));
}

TEST_F(TcpTransportTest, TellsPeerGoneWhenAHeaderIsCutShort) {
  RawSocket stranger(listen());
  Peer& peer = accept();
  FrameBytes bytes;
  encode(header_of(1), bytes);
  stranger.write(std::span(bytes).first(63));
  stranger.close();
  ASSERT_TRUE(run_until([&] { return peer.closed.has_value(); }));
  EXPECT_EQ(peer.closed->code, Errc::peer_gone);
  EXPECT_EQ(peer.headers, 0U);
}

TEST_F(TcpTransportTest, LeavesThePlaceHalfWrittenWhenAPayloadIsCutShort) {
  for (const bool reset : {false, true}) {
    RawSocket stranger(reset ? listener_->local().port : listen());
    Peer& peer = accept();
    stranger.write(with_payload(10'000));
    stranger.write(pattern(6000, 1));
    ASSERT_TRUE(run_until([&] { return peer.headers == 1 && peer.buffer[5999] == pattern(6000, 1)[5999]; }));
    reset ? stranger.reset() : stranger.close();
    ASSERT_TRUE(run_until([&] { return peer.closed.has_value(); }));
    EXPECT_EQ(peer.closed->code, Errc::peer_gone);
    EXPECT_TRUE(peer.frames.empty());
    EXPECT_TRUE(std::ranges::equal(std::span(peer.buffer).first(6000), pattern(6000, 1)));
    EXPECT_EQ(peer.buffer[6000], std::byte{0xEE});
  }
}

TEST_F(TcpTransportTest, SeesAResetWhileItDoesNotRead) {
  RawSocket stranger(listen());
  Peer& peer = accept();
  peer.place = [](Channel&, const FrameHeader&) -> Placement { return NotYet{}; };
  stranger.write(with_payload(100));
  ASSERT_TRUE(run_until([&] { return peer.headers == 1; }));
  stranger.reset();
  ASSERT_TRUE(run_until([&] { return peer.closed.has_value(); }));
  EXPECT_EQ(peer.closed->code, Errc::peer_gone);
}

TEST_F(TcpTransportTest, ReadsOnAfterUrgentData) {
  RawSocket stranger(listen());
  Peer& peer = accept();
  for (std::uint64_t i = 0; i < 3; ++i) {
    stranger.write_urgent();
    stranger.write(header_of(i));
    ASSERT_TRUE(run_until([&] { return peer.frames.size() == i + 1; }));
  }
  EXPECT_FALSE(peer.closed.has_value());
}

TEST_F(TcpTransportTest, ServesTheBytesBehindUrgentDataOfTheSameRead) {
  RawSocket stranger(listen());
  Peer& peer = accept();
  ASSERT_EQ(server_.poll(5ms), 0U);
  stranger.write(header_of(0));
  stranger.write_urgent();
  stranger.write(header_of(1));  // no later event wakes the server again
  ASSERT_TRUE(run_until([&] { return peer.frames.size() == 2; }));
}

TEST_F(TcpTransportTest, SeesAnEndThatComesTogetherWithTheLastBytes) {
  RawSocket stranger(listen());
  Peer& peer = accept();
  ASSERT_EQ(server_.poll(5ms), 0U);
  stranger.write(with_payload(10));
  stranger.write(pattern(10, 1));
  stranger.close();
  ASSERT_TRUE(run_until([&] { return peer.closed.has_value(); }));
  EXPECT_EQ(peer.frames.size(), 1U);
  EXPECT_EQ(peer.closed->code, Errc::peer_gone);
}

// ---- limits

TEST_F(TcpTransportTest, ClosesConnectionsAboveItsLimitAtOnce) {
  TcpTransport small({.connections_max = 2});
  PeerAcceptor acceptor;
  const auto listener = small.listen({"127.0.0.1", 0}, acceptor).value();
  std::vector<std::unique_ptr<Peer>> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(std::make_unique<Peer>());
    clients.back()->channel = client_.connect(listener->local(), *clients.back(), 5s);
  }
  const auto closed = [&] {
    return std::ranges::count_if(clients, [](const auto& c) { return c->closed.has_value(); });
  };
  ASSERT_TRUE(run_until([&] {
    small.poll(0ns);
    return closed() == 2;
  }));
  EXPECT_EQ(acceptor.accepted, 2U);
  EXPECT_EQ(small.statistics().refused_full, 2U);
  EXPECT_EQ(small.statistics().connections, 2U);
}

TEST_F(TcpTransportTest, PausesInsteadOfSpinningWhenDescriptorsRunOutAndGoesOnLater) {
  const std::uint16_t port = listen();
  const RawSocket stranger(port);
  Peer refused;
  {
    const NoDescriptors none;
    const TimePoint before = Clock::now();
    EXPECT_TRUE(run_until([&] { return server_.statistics().accept_pauses == 1; }));
    refused.channel = client_.connect(listener_->local(), refused, 5s);
    EXPECT_TRUE(run_until([&] { return refused.closed.has_value(); }));
    EXPECT_LE(server_.statistics().accept_pauses, 2 + static_cast<std::uint64_t>((Clock::now() - before) / 50ms));
  }
  ASSERT_TRUE(refused.closed.has_value());
  EXPECT_EQ(refused.closed->code, Errc::exhausted);
  accept();
}

TEST_F(TcpTransportTest, LeaksNoDescriptor) {
  connect();
  const std::size_t before = open_descriptors();
  for (int round = 0; round < 5; ++round) {
    std::vector<std::unique_ptr<Peer>> clients;
    for (int i = 0; i < 20; ++i) {
      clients.push_back(std::make_unique<Peer>());
      clients.back()->channel = client_.connect(listener_->local(), *clients.back(), 5s);
      if (i % 4 == 0) clients.back()->channel->send_copy(header_of(0), pattern(5000, 1));
      if (i % 4 == 1) clients.back()->channel->close_after_flush(1s);
    }
    run_until([&] { return acceptor_.peers.size() == 21; }, 200ms);
    clients.clear();
    acceptor_.peers.resize(1);
    ASSERT_TRUE(run_until([&] {
      acceptor_.peers.resize(1);
      return server_.statistics().connections == 1 && client_.statistics().connections == 1;
    }));
    acceptor_.peers.resize(1);
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(TcpTransportTest, GathersManyFramesInFewCallsAndAllocatesNothingOnceWarm) {
  connect();
  std::vector<std::byte> place(64);
  std::size_t received = 0;
  class Counting : public ChannelHandler {
   public:
    Counting(std::vector<std::byte>& place, std::size_t& received) : place_(place), received_(received) {}
    Placement on_header(Channel&, const FrameHeader&) override { return Accept{place_}; }
    void on_frame(Channel&, const FrameHeader&, std::span<std::byte>) override { ++received_; }
    void on_closed(Channel&, const Error&) override {}

   private:
    std::vector<std::byte>& place_;
    std::size_t& received_;
  } counting(place, received);
  std::unique_ptr<Channel> sender = client_.connect(listener_->local(), counting, 5s);
  ASSERT_TRUE(run_until([&] { return acceptor_.peers.size() == 2; }));
  auto& receiver = *acceptor_.peers.back();
  const int socket = server_.release(*receiver.channel).value();
  const auto channel = server_.adopt(socket, counting);
  const auto payload = pattern(64, 1);
  std::uint64_t allocations = 0;
  std::uint64_t calls = 0;
  for (int round = 0; round < 40; ++round) {
    if (round == 20) {
      allocations = allocations_so_far();
      calls = client_.statistics().write_calls;
    }
    const std::size_t target = received + 500;
    for (std::uint64_t i = 0; i < 500; ++i) ASSERT_TRUE(sender->send(header_of(i), payload, i));
    const auto all_came = [&] { return received >= target; };
    while (!all_came()) {
      client_.poll(0ns);
      server_.poll(0ns);
    }
  }
  EXPECT_EQ(allocations_so_far() - allocations, 0U);
  EXPECT_LE(client_.statistics().write_calls - calls, 20U * 6U) << "few calls write 10,000 frames";
}

TEST_F(TcpTransportTest, WritesAtMostItsShareInATurn) {
  constexpr std::size_t kShare = 10'000;
  listen();
  TcpTransport writer(TcpSettings{.poll_bytes_max = kShare});
  Peer sender;
  sender.channel = writer.connect(listener_->local(), sender, 5s);
  ASSERT_TRUE(run_until([&] { return writer.poll(0ns), sender.opened && acceptor_.peers.size() == 1; }));
  const auto payload = pattern(40'000, 1);
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(sender.channel->send(header_of(i), payload, i));
  // A frame that is cut within its header or its payload arrives whole on the other side.
  while (sender.sent.size() < 3) {
    const std::uint64_t before = writer.statistics().bytes_sent;
    writer.poll(0ns);
    server_.poll(0ns);
    // One turn handles the events, and the next turn sends the frames that were queued since.
    ASSERT_LE(writer.statistics().bytes_sent - before, 2 * kShare);
  }
  ASSERT_TRUE(run_until([&] { return server().frames.size() == 3; }));
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(server().frames[i].header.sequence, i);
    EXPECT_EQ(server().frames[i].payload, payload);
  }
}

// ---- names and addresses

TEST_F(TcpTransportTest, ConnectsByName) {
  listen();
  peer_.channel = client_.connect({"localhost", listener_->local().port}, peer_, 10s);
  EXPECT_TRUE(peer_.channel->send(header_of(0), {}, 0));
  ASSERT_TRUE(run_until([&] { return !acceptor_.peers.empty() && server().frames.size() == 1; }));
  EXPECT_EQ(peer_.channel->peer(), "localhost:" + std::to_string(listener_->local().port));
}

TEST_F(TcpTransportTest, SaysThatANameIsUnknown) {
  peer_.channel = client_.connect({"no-such-host.invalid", 7471}, peer_, 20s);
  ASSERT_TRUE(run_until([&] { return peer_.closed.has_value(); }, 25s));
  EXPECT_EQ(peer_.closed->code, Errc::unreachable);
  EXPECT_NE(peer_.closed->message.find("no-such-host.invalid:7471"), std::string::npos) << peer_.closed->message;
}

TEST_F(TcpTransportTest, GivesUpConnectingAtTheLimit) {
  const int silent = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);  // this listener never accepts, and its queue is
                                                                        // full
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof address;
  ASSERT_EQ(::bind(silent, reinterpret_cast<const sockaddr*>(&address), bytes), 0);
  ASSERT_EQ(::listen(silent, 0), 0);
  ASSERT_EQ(::getsockname(silent, reinterpret_cast<sockaddr*>(&address), &bytes), 0);
  std::vector<std::unique_ptr<Peer>> waiting;
  for (int i = 0; i < 4; ++i) {
    waiting.push_back(std::make_unique<Peer>());
    waiting.back()->channel = client_.connect({"127.0.0.1", ntohs(address.sin_port)}, *waiting.back(), 150ms);
  }
  const TimePoint before = Clock::now();
  while (!waiting.back()->closed) client_.poll(20s);  // sleeps until the limit at most
  EXPECT_LT(Clock::now() - before, 10s);
  EXPECT_EQ(waiting.back()->closed->code, Errc::unreachable);
  EXPECT_NE(waiting.back()->closed->message.find("within 150 ms"), std::string::npos)
      << waiting.back()->closed->message;
  ::close(silent);
}

TEST_F(TcpTransportTest, ListensOnBothFamiliesForAnEmptyHost) {
  listener_ = server_.listen({"", 0}, acceptor_).value();
  const std::uint16_t port = listener_->local().port;
  Peer six;
  peer_.channel = client_.connect({"127.0.0.1", port}, peer_, 5s);
  six.channel = client_.connect({"::1", port}, six, 5s);
  ASSERT_TRUE(run_until([&] { return peer_.opened && six.opened && acceptor_.peers.size() == 2; }));
  for (const auto& peer : acceptor_.peers) {
    const std::string name = peer->channel->peer();
    EXPECT_TRUE(name.starts_with("127.0.0.1:") || name.starts_with("[::1]:")) << name;
  }
}

TEST_F(TcpTransportTest, ConnectsFromTheAddressItIsBoundTo) {
  listener_ = server_.listen({"127.0.0.1", 0}, acceptor_).value();
  TcpTransport bound({.bind_address = "127.0.0.5"});
  peer_.channel = bound.connect(listener_->local(), peer_, 5s);
  ASSERT_TRUE(run_until([&] {
    bound.poll(0ns);
    return peer_.opened && acceptor_.peers.size() == 1;
  }));
  EXPECT_TRUE(server().channel->peer().starts_with("127.0.0.5:")) << server().channel->peer();
  peer_.channel.reset();
}

TEST_F(TcpTransportTest, RefusesToListenOnAForeignAddress) {
  const auto listener = server_.listen({"192.0.2.1", 7471}, acceptor_);
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().code, Errc::io);
  EXPECT_NE(listener.error().message.find("192.0.2.1:7471"), std::string::npos) << listener.error().message;
}

TEST_F(TcpTransportTest, FindsTheAddressOfAnInterface) {
  EXPECT_EQ(address_of_interface("lo").value(), "127.0.0.1");
  EXPECT_EQ(address_of_interface("no-such-interface").error().code, Errc::bad_config);
}

// ---- threads

TEST_F(TcpTransportTest, WakesAWaitingPollByAPostFromAnotherThread) {
  const TimePoint before = Clock::now();
  std::atomic<bool> ran = false;
  std::jthread poster([&] { server_.post([&] { ran = true; }); });
  while (!ran) server_.poll(Duration::max());
  EXPECT_LT(Clock::now() - before, 10s);
}

TEST_F(TcpTransportTest, LosesNoPostThatComesWhileItFallsAsleep) {
  for (const Duration spin : {0us, 20us}) {
    TcpTransport transport({.spin_max = spin});
    constexpr int kRounds = 3000;
    std::atomic<int> ran = 0;
    std::jthread poster([&] {
      for (int i = 0; i < kRounds; ++i) {
        transport.post([&] { ++ran; });
        while (ran <= i) std::this_thread::yield();
      }
    });
    const TimePoint before = Clock::now();
    while (ran < kRounds) transport.poll(30s);
    EXPECT_LT(Clock::now() - before, 30s) << "the thread slept through a wake-up";
  }
}

TEST_F(TcpTransportTest, RunsEveryPostOfManyThreads) {
  std::size_t ran = 0;
  {
    std::vector<std::jthread> posters;
    for (int t = 0; t < 4; ++t) {
      posters.emplace_back([&] {
        for (int i = 0; i < 1000; ++i) server_.post([&] { ++ran; });
      });
    }
    ASSERT_TRUE(run_until([&] { return ran == 4000; }));
  }
}

TEST_F(TcpTransportTest, RunsAPostedCallThatPostsAgainInALaterPoll) {
  int runs = 0;
  std::function<void()> again = [&] {
    ++runs;
    server_.post(again);
  };
  server_.post(again);
  server_.poll(0ns);
  EXPECT_EQ(runs, 1);
  server_.poll(0ns);
  EXPECT_EQ(runs, 2);
}

TEST_F(TcpTransportTest, HandsAChannelToATransportOfAnotherThread) {
  listen();
  std::optional<int> socket;
  acceptor_.prepare = [&](Peer& peer) {
    peer.when_frame = [&](Channel& channel, const Received&) {
      const auto released = server_.release(channel);
      ASSERT_TRUE(released) << released.error().message;
      socket = *released;
    };
  };
  peer_.channel = client_.connect(listener_->local(), peer_, 5s);
  peer_.channel->send_copy(header_of(0, FrameType::join), pattern(320, 1));
  ASSERT_TRUE(run_until([&] { return socket.has_value(); }));
  EXPECT_TRUE(server().channel->closed());
  acceptor_.peers.clear();

  std::atomic<bool> stop = false;
  std::jthread worker([&, handed = *socket] {
    TcpTransport other;
    Peer echo;
    echo.when_frame = [](Channel& channel, const Received& frame) {
      channel.send_copy(header_of(frame.header.sequence, FrameType::result), frame.payload);
    };
    echo.channel = other.adopt(handed, echo);
    while (!stop) other.poll(10ms);
  });
  for (std::uint64_t i = 1; i <= 50; ++i) peer_.channel->send_copy(header_of(i), pattern(1000, i));
  EXPECT_TRUE(run_until([&] { return peer_.frames.size() == 50; }));
  for (std::uint64_t i = 0; i < peer_.frames.size(); ++i) EXPECT_EQ(peer_.frames[i].payload, pattern(1000, i + 1));
  EXPECT_FALSE(peer_.closed.has_value()) << "the other side does not notice";
  stop = true;
}

TEST_F(TcpTransportTest, RefusesToHandOverABusyChannel) {
  RawSocket stranger(listen());
  Peer& peer = accept();
  stranger.write(with_payload(1000));
  ASSERT_TRUE(run_until([&] { return peer.headers == 1; }));
  EXPECT_EQ(server_.release(*peer.channel).error().code, Errc::retry);
  stranger.write(pattern(1000, 1));
  ASSERT_TRUE(run_until([&] { return peer.frames.size() == 1; }));
  ASSERT_TRUE(peer.channel->send(header_of(0), {}, 0));
  EXPECT_EQ(server_.release(*peer.channel).error().code, Errc::retry);
  ASSERT_TRUE(run_until([&] { return peer.sent.size() == 1; }));
  EXPECT_EQ(client_.release(*peer.channel).error().code, Errc::bad_argument)
      << "the channel belongs to the other transport";
  const auto socket = server_.release(*peer.channel);
  ASSERT_TRUE(socket) << socket.error().message;
  EXPECT_EQ(server_.release(*peer.channel).error().code, Errc::bad_argument) << "the channel was released already";
  ::close(*socket);
}

// ---- lifetimes

TEST_F(TcpTransportTest, AChannelThatOutlivesItsTransportIsClosed) {
  auto transport = std::make_unique<TcpTransport>();
  listen();
  peer_.channel = transport->connect(listener_->local(), peer_, 5s);
  Peer named;
  named.channel = transport->connect({"localhost", listener_->local().port}, named, 5s);
  named.channel->send_copy(header_of(0), pattern(100, 1));
  transport->poll(1ms);
  transport.reset();
  EXPECT_TRUE(peer_.channel->closed());
  EXPECT_FALSE(peer_.channel->send(header_of(0), {}, 0));
  peer_.channel->close_after_flush(1s);
  EXPECT_FALSE(peer_.closed.has_value());
}

TEST_F(TcpTransportTest, DeliversTheLastFramesOfADestroyedChannel) {
  connect();
  const auto payload = pattern(1000, 1);
  for (std::uint64_t i = 0; i < 20; ++i) peer_.channel->send_copy(header_of(i), payload);
  client_.poll(0ns);  // the server has unread bytes, so a plain close would send a reset
  server().channel->send_copy(header_of(0, FrameType::refuse), pattern(10, 2));
  server().channel->close_after_flush(5s);
  while (server_.statistics().frames_sent == 0) server_.poll(0ns);
  acceptor_.peers.clear();
  ASSERT_TRUE(run_until([&] { return peer_.closed.has_value() && server_.statistics().connections == 0; }));
  ASSERT_EQ(peer_.frames.size(), 1U);
  EXPECT_EQ(peer_.frames[0].payload, pattern(10, 2));
}

}  // namespace tributary::transport::test
