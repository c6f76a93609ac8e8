// Connections of several sockets and helper threads, both ends in this process: NCCL_SOCKET_NTHREADS=2 and
// NCCL_NSOCKS_PERTHREAD=2 in the environment.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <deque>
#include <random>
#include <thread>
#include <vector>

#include "client/plugins/nccl/devices.h"
#include "tests/system/nccl/listening.h"
#include "tributary/transport/tcp.h"

namespace tributary::nccl {
namespace {

using enum abi::Result;
using Bytes = std::vector<std::uint8_t>;

constexpr SocketCounts kCounts{.threads = 2, .sockets = 4};

struct Pair {
  explicit Pair(Listening& at) {
    HandleBytes handle = at.bytes();
    until("the connection", [&] {
      if (sending == nullptr) {
        EXPECT_EQ(net::connect(nullptr, 0, handle.data(), &sending), success);
      }
      if (receiving == nullptr) receiving = at.accept_now();
      return sending != nullptr && receiving != nullptr;
    });
  }
  void* sending = nullptr;
  void* receiving = nullptr;
};

Bytes random_bytes(std::size_t count, unsigned int seed) {
  std::minstd_rand random(seed + 1);
  Bytes bytes(count);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random() >> 8);
  return bytes;
}

void* send(void* comm, const Bytes& data, int tag) {
  void* request = nullptr;
  EXPECT_EQ(net::send(comm, const_cast<std::uint8_t*>(data.data()), data.size(), tag, &request), success);
  return request;
}
void* receive(void* comm, Bytes& into, int tag) {
  void* request = nullptr;
  void* data = into.data();
  const std::size_t size = into.size();
  EXPECT_EQ(net::receive(comm, 1, &data, &size, &tag, &request), success);
  return request;
}

/// A request, until it has ended with or without an error.
struct Ending {
  explicit Ending(void* of) : request(of) {}
  bool ended() {
    if (over) return true;
    int done = 0;
    result = net::test(request, &done, &bytes);
    return over = done != 0 || result != success;
  }
  void* request;
  bool over = false;
  abi::Result result = success;
  int bytes = -1;
};

TEST(Sockets, CarryEveryBitOfMessagesOfAllSizesThatAreUnderWayTogether) {
  Listening at;
  ASSERT_EQ(at.handle().counts, kCounts) << "the handle has the numbers from the environment";
  const Pair pair(at);
  const std::vector<std::size_t> sizes{0,         1,         65'535,  65'536, 65'537,     131'073,   262'144,
                                       1'000'003, 4'194'304, 300'001, 64,     20'000'000, 4'194'305, 65'536};
  for (unsigned int round = 0; round < 3; ++round) {
    std::vector<Bytes> data, into;
    std::deque<Ending> endings;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      data.push_back(random_bytes(sizes[i], round * 100 + static_cast<unsigned int>(i)));
      into.emplace_back(sizes[i] + 7);
    }
    // Post the last receive first: each message finds the buffer of its tag.
    for (std::size_t i = sizes.size(); i-- > 0;)
      endings.emplace_back(receive(pair.receiving, into[i], static_cast<int>(i)));
    for (std::size_t i = 0; i < sizes.size(); ++i)
      endings.emplace_back(send(pair.sending, data[i], static_cast<int>(i)));
    until("a message", [&] {
      bool all = true;
      for (Ending& one : endings) all &= one.ended();
      return all;
    });
    for (const Ending& one : endings) EXPECT_EQ(one.result, success);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      EXPECT_EQ(endings[sizes.size() - 1 - i].bytes, static_cast<int>(sizes[i]));
      into[i].resize(sizes[i]);
      EXPECT_TRUE(into[i] == data[i]) << "message " << i << " of " << sizes[i] << " bytes";
    }
  }
  EXPECT_EQ(net::close_send(pair.sending), success);
  EXPECT_EQ(net::close_receive(pair.receiving), success);
}

/// Returns the sockets of this process that are connected to `port`, the oldest first.
std::vector<int> sockets_to(std::uint32_t port) {
  std::vector<int> found;
  for (int descriptor = 0; descriptor < 4096; ++descriptor) {
    sockaddr_in peer{};
    socklen_t length = sizeof peer;
    if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &length) == 0 && peer.sin_family == AF_INET &&
        ntohs(peer.sin_port) == port)
      found.push_back(descriptor);
  }
  return found;
}

// Post the receive after the break, so that the message cannot end before it.
TEST(Sockets, FailBothEndsWhenOneOfAMessagesSocketsBreaks) {
  for (std::size_t broken = 1; broken <= kCounts.sockets; ++broken) {
    Listening at;
    const Pair pair(at);
    const std::vector<int> sockets = sockets_to(at.handle().port);
    ASSERT_EQ(sockets.size(), 1U + kCounts.sockets);
    const Bytes data = random_bytes(64'000'000, 1);
    Bytes into(data.size());
    Ending sent(send(pair.sending, data, 1));
    ASSERT_EQ(shutdown(sockets[broken], SHUT_RDWR), 0);
    Ending posted(receive(pair.receiving, into, 1));
    until("the failure", [&] {
      const bool here = posted.ended(), there = sent.ended();
      return here && there;
    });
    EXPECT_EQ(posted.result, remote_error) << "socket " << broken;
    EXPECT_EQ(sent.result, remote_error) << "socket " << broken;
    EXPECT_EQ(net::close_send(pair.sending), success);
    EXPECT_EQ(net::close_receive(pair.receiving), success);
  }
}

TEST(Sockets, TheFirstSocketThatBreaksEndsAllMessagesAtBothEnds) {
  Listening at;
  const Pair pair(at);
  const Bytes data = random_bytes(64'000'000, 1), small(1000);
  Bytes into(data.size()), room(small.size());
  Ending posted(receive(pair.receiving, into, 1)), sent(send(pair.sending, data, 1));
  for (int turn = 0; turn < 20; ++turn) (void)(posted.ended() || sent.ended());
  ASSERT_EQ(shutdown(sockets_to(at.handle().port).at(0), SHUT_RDWR), 0);
  Ending lost(receive(pair.receiving, room, 2)), refused(send(pair.sending, small, 2));
  until("the wait for all requests", [&] {
    bool all = posted.ended();
    for (Ending* one : {&sent, &lost, &refused}) all &= one->ended();
    return all;
  });
  // The message's head had come before the break. Its bytes come on the other sockets: either all of them, or none.
  EXPECT_TRUE(posted.result == remote_error || into == data);
  EXPECT_EQ(lost.result, remote_error);
  EXPECT_EQ(refused.result, remote_error);
  EXPECT_EQ(net::close_send(pair.sending), success);
  EXPECT_EQ(net::close_receive(pair.receiving), success);
}

// Post the receive late or never, so that the message cannot end before the break.
TEST(Sockets, FailRequestsInFlightWhenEitherEndCloses) {
  for (const bool sender : {true, false}) {
    Listening at;
    const Pair pair(at);
    const Bytes data = random_bytes(64'000'000, 2);
    Bytes into(data.size());
    Ending sent(send(pair.sending, data, 1));
    EXPECT_FALSE(sent.ended());
    EXPECT_EQ(sender ? net::close_send(pair.sending) : net::close_receive(pair.receiving), success);
    Ending left = sender ? Ending(receive(pair.receiving, into, 1)) : sent;
    until("the failure", [&] { return left.ended(); });
    EXPECT_EQ(left.result, remote_error);
    EXPECT_EQ(sender ? net::close_receive(pair.receiving) : net::close_send(pair.sending), success);
  }
}

TEST(Sockets, TouchNoBufferAnyMoreOnceTheirEndIsClosed) {
  for (const bool sender : {true, false}) {
    Listening at;
    const Pair pair(at);
    auto data = std::make_unique<Bytes>(random_bytes(64'000'000, 3)), into = std::make_unique<Bytes>(data->size());
    Ending posted(receive(pair.receiving, *into, 1)), sent(send(pair.sending, *data, 1));
    for (int turn = 0; turn < 20; ++turn) (void)(posted.ended() || sent.ended());
    EXPECT_EQ(sender ? net::close_send(pair.sending) : net::close_receive(pair.receiving), success);
    (sender ? data : into).reset();
    Ending& left = sender ? posted : sent;
    until("the wait for the other end's request", [&] { return left.ended(); });
    EXPECT_TRUE(left.result == success || left.result == remote_error);
    EXPECT_EQ(sender ? net::close_receive(pair.receiving) : net::close_send(pair.sending), success);
  }
}

TEST(Sockets, KeepToTheHandlesNumbersAndRefuseOthers) {
  Listening at;
  NetHandle wrong = at.handle();
  wrong.counts = {.threads = 1, .sockets = 2};
  HandleBytes bytes = bytes_of(wrong);
  void* sending = nullptr;
  abi::Result result = success;
  until("the refusal", [&] {
    result = net::connect(nullptr, 0, bytes.data(), &sending);
    EXPECT_EQ(at.accept_now(), nullptr);
    return sending != nullptr || result != success;
  });
  EXPECT_EQ(result, remote_error);
  EXPECT_EQ(sending, nullptr);

  const Pair pair(at);
  EXPECT_EQ(net::close_send(pair.sending), success);
  EXPECT_EQ(net::close_receive(pair.receiving), success);
}

TEST(Sockets, ImpossibleNumbersMakeAHandleInvalid) {
  Listening at;
  for (const SocketCounts& bad : {SocketCounts{17, 17}, SocketCounts{1, 65}, SocketCounts{0, 1}, SocketCounts{4, 2},
                                  SocketCounts{3, 4}, SocketCounts{65'535, 65'535}}) {
    NetHandle wrong = at.handle();
    wrong.counts = bad;
    HandleBytes bytes = bytes_of(wrong);
    void* sending = nullptr;
    EXPECT_EQ(net::connect(nullptr, 0, bytes.data(), &sending), invalid_usage);
    EXPECT_EQ(sending, nullptr);
  }
}

// Strangers also connect between the sockets of one connection: more strangers than a listener keeps.
TEST(Sockets, ComeTogetherThoughStrangersComeBetweenThem) {
  Listening at;
  transport::TcpTransport transport;
  struct Silent final : transport::ChannelHandler {
    transport::Placement on_header(transport::Channel&, const FrameHeader&) override { return transport::NotYet{}; }
    void on_frame(transport::Channel&, const FrameHeader&, std::span<std::byte>) override {}
    void on_closed(transport::Channel&, const Error&) override {}
  } silent;
  std::vector<std::unique_ptr<transport::Channel>> strangers;
  HandleBytes handle = at.bytes();
  void* sending = nullptr;
  void* receiving = nullptr;
  until("the connection", [&] {
    for (int i = 0; i < 10 && strangers.size() < 300; ++i)
      strangers.push_back(transport.connect(at.handle().endpoint(), silent, kLimit));
    transport.poll({});
    if (sending == nullptr) {
      EXPECT_EQ(net::connect(nullptr, 0, handle.data(), &sending), success);
    }
    if (receiving == nullptr) receiving = at.accept_now();
    return sending != nullptr && receiving != nullptr;
  });
  ASSERT_TRUE(sending != nullptr && receiving != nullptr);
  const Bytes data = random_bytes(5'000'000, 3);
  Bytes into(data.size());
  Ending posted(receive(receiving, into, 1)), sent(send(sending, data, 1));
  until("the message", [&] {
    const bool here = posted.ended(), there = sent.ended();
    return here && there;
  });
  EXPECT_TRUE(into == data);
  EXPECT_EQ(net::close_send(sending), success);
  EXPECT_EQ(net::close_receive(receiving), success);
}

}  // namespace
}  // namespace tributary::nccl
