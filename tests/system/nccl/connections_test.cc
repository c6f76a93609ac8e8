// Connections of NCCL's net table, both ends in this process: the properties that NCCL, and other users of the table,
// need. The cases come from the functional tests of aws-ofi-nccl.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "client/plugins/nccl/devices.h"
#include "tests/system/nccl/listening.h"

namespace tributary::nccl {
namespace {

using enum abi::Result;

void* connect(HandleBytes handle) {
  void* sending = nullptr;
  until("connect", [&] {
    EXPECT_EQ(net::connect(nullptr, 0, handle.data(), &sending), success);
    return sending != nullptr;
  });
  return sending;
}

using Bytes = std::vector<std::uint8_t>;
Bytes bytes_of(std::size_t count, int seed) {
  Bytes bytes(count);
  std::iota(bytes.begin(), bytes.end(), static_cast<std::uint8_t>(seed));
  return bytes;
}

void* send(void* comm, const Bytes& data, int tag) {
  void* request = nullptr;
  until("isend", [&] {
    EXPECT_EQ(net::send(comm, const_cast<std::uint8_t*>(data.data()), data.size(), tag, &request), success);
    return request != nullptr;
  });
  return request;
}
void* receive(void* comm, Bytes& into, int tag) {
  void* request = nullptr;
  void* data = into.data();
  const std::size_t size = into.size();
  until("irecv", [&] {
    EXPECT_EQ(net::receive(comm, 1, &data, &size, &tag, &request), success);
    return request != nullptr;
  });
  return request;
}
/// Returns the outcome of a request, and its size.
abi::Result outcome(void* request, int* size = nullptr) {
  abi::Result result = success;
  until("test", [&] {
    int done = 0;
    result = net::test(request, &done, size);
    return done != 0 || result != success;
  });
  return result;
}

struct Pair {
  explicit Pair(Listening& at) : sending(connect(at.bytes())), receiving(at.accept()) {}
  void* sending;
  void* receiving;
};

TEST(Connections, AreMadeAndClosedInEveryOrder) {
  Listening at;
  for (int round = 0; round < 4; ++round) {
    const Pair pair(at);
    EXPECT_EQ(round % 2 == 0 ? net::close_send(pair.sending) : net::close_receive(pair.receiving), success);
    EXPECT_EQ(round % 2 == 0 ? net::close_receive(pair.receiving) : net::close_send(pair.sending), success);
  }
}

TEST(Connections, AreAcceptedThoughThePeerHasClosedThem) {
  Listening at;
  for (int round = 0; round < 50; ++round) {
    ASSERT_EQ(net::close_send(connect(at.bytes())), success);
    void* const receiving = at.accept();
    ASSERT_NE(receiving, nullptr) << "round " << round;
    Bytes into(64);
    EXPECT_EQ(outcome(receive(receiving, into, 1)), remote_error) << "nothing was sent, and nothing can come";
    EXPECT_EQ(net::close_receive(receiving), success);
  }
}

TEST(Connections, DeliverMessagesThatWereSentBeforeTheClose) {
  Listening at;
  for (const std::size_t size : {1UL, 4096UL, 100'000UL}) {
    const Bytes first = bytes_of(size, 1), second = bytes_of(size, 2);
    void* const sending = connect(at.bytes());
    ASSERT_EQ(outcome(send(sending, first, 7)), success);
    ASSERT_EQ(outcome(send(sending, second, 8)), success);
    ASSERT_EQ(net::close_send(sending), success);
    void* const receiving = at.accept();
    ASSERT_NE(receiving, nullptr);
    Bytes into(size);
    ASSERT_EQ(outcome(receive(receiving, into, 7)), success);
    EXPECT_EQ(into, first);
    ASSERT_EQ(outcome(receive(receiving, into, 8)), success);
    EXPECT_EQ(into, second);
    EXPECT_EQ(outcome(receive(receiving, into, 9)), remote_error);
    EXPECT_EQ(net::close_receive(receiving), success);
  }
}

// NCCL's own socket net makes the same promise. Both make it only for messages whose requests were tested until their
// end.
TEST(Connections, DeliverLargeMessagesThatWereTestedToTheirEndBeforeTheClose) {
  Listening at;
  const Pair pair(at);
  const Bytes data = bytes_of(20'000'000, 6);
  Bytes into(data.size());
  void* const posted = receive(pair.receiving, into, 1);
  void* const sent = send(pair.sending, data, 1);
  bool received = false;
  until("a send", [&] {
    int done = 0;
    if (!received) {
      EXPECT_EQ(net::test(posted, &done, nullptr), success);
      received = done != 0;
    }
    done = 0;
    EXPECT_EQ(net::test(sent, &done, nullptr), success);
    return done != 0;
  });
  EXPECT_EQ(net::close_send(pair.sending), success);
  if (!received) {
    EXPECT_EQ(outcome(posted), success);
  }
  EXPECT_EQ(into, data);
  EXPECT_EQ(net::close_receive(pair.receiving), success);
}

TEST(Connections, TransferEverySizeIntoBuffersThatMayBeLarger) {
  Listening at;
  const Pair pair(at);
  for (const std::size_t size : {0UL, 1UL, 1023UL, 65'536UL, 1'000'003UL, 20'000'000UL}) {
    const Bytes data = bytes_of(size, 3);
    Bytes into(size + 100);
    void* const posted = receive(pair.receiving, into, 5);
    void* const sent = send(pair.sending, data, 5);
    int got = -1, put = -1;
    // Both ends make progress only when the test calls them, so it must not wait for only one end.
    bool here = false, there = false;
    until("a message", [&] {
      int done = 0;
      if (!here) {
        EXPECT_EQ(net::test(posted, &done, &got), success);
        here = done != 0;
      }
      done = 0;
      if (!there) {
        EXPECT_EQ(net::test(sent, &done, &put), success);
        there = done != 0;
      }
      return here && there;
    });
    EXPECT_EQ(got, static_cast<int>(size));
    EXPECT_EQ(put, static_cast<int>(size));
    EXPECT_TRUE(std::equal(data.begin(), data.end(), into.begin()));
  }
  EXPECT_EQ(net::close_send(pair.sending), success);
  EXPECT_EQ(net::close_receive(pair.receiving), success);
}

TEST(Connections, MakeARing) {
  constexpr std::size_t kNodes = 5;
  std::array<Listening, kNodes> at;
  std::array<void*, kNodes> to_next{}, from_last{};
  for (std::size_t node = 0; node < kNodes; ++node) to_next[node] = connect(at[(node + 1) % kNodes].bytes());
  for (std::size_t node = 0; node < kNodes; ++node) from_last[node] = at[node].accept();
  Bytes token = bytes_of(10'000, 1);
  for (std::size_t step = 0; step < 3 * kNodes; ++step) {
    void* const sent = send(to_next[step % kNodes], token, 1);
    Bytes into(token.size());
    ASSERT_EQ(outcome(receive(from_last[(step + 1) % kNodes], into, 1)), success);
    ASSERT_EQ(outcome(sent), success);
    ASSERT_EQ(into, token);
    for (std::uint8_t& byte : token) ++byte;
  }
  for (std::size_t node = 0; node < kNodes; ++node) {
    EXPECT_EQ(net::close_send(to_next[node]), success);
    EXPECT_EQ(net::close_receive(from_last[node]), success);
  }
}

TEST(Connections, OneListenerTakesManyConnectionsAtOnceAndOneAfterAnother) {
  Listening at;
  std::vector<Pair> pairs;
  for (int i = 0; i < 8; ++i) pairs.emplace_back(at);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const Bytes data = bytes_of(100, static_cast<int>(i));
    Bytes into(100);
    void* const sent = send(pairs[i].sending, data, 1);
    ASSERT_EQ(outcome(receive(pairs[i].receiving, into, 1)), success);
    ASSERT_EQ(outcome(sent), success);
    EXPECT_EQ(into, data) << "connection " << i;
  }
  for (const Pair& pair : pairs) {
    EXPECT_EQ(net::close_send(pair.sending), success);
    EXPECT_EQ(net::close_receive(pair.receiving), success);
  }
}

TEST(Connections, TakeAsManyReceivesInOneCallAsThePropertiesSay) {
  Listening at;
  const Pair pair(at);
  std::array<Bytes, 2> into{Bytes(10), Bytes(10)};
  std::array<void*, 2> data{into[0].data(), into[1].data()};
  const std::array<std::size_t, 2> sizes{10, 10};
  const std::array<int, 2> tags{1, 2};
  void* request = static_cast<void*>(&request);
  static_assert(kReceivesMax == 1);
  EXPECT_EQ(net::receive(pair.receiving, 2, data.data(), sizes.data(), tags.data(), &request), invalid_argument);
  EXPECT_EQ(request, nullptr);
  const Bytes sent = bytes_of(10, 4);
  void* const under_way = send(pair.sending, sent, 1);
  EXPECT_EQ(outcome(receive(pair.receiving, into[0], 1)), success) << "a refused call changes nothing";
  EXPECT_EQ(outcome(under_way), success);
  EXPECT_EQ(into[0], sent);
  EXPECT_EQ(net::close_send(pair.sending), success);
  EXPECT_EQ(net::close_receive(pair.receiving), success);
}

TEST(Connections, FailRequestsInFlightWhenTheSenderCloses) {
  Listening at;
  const Pair pair(at);
  const Bytes data = bytes_of(64'000'000, 1);
  Bytes into(data.size());
  void* const posted = receive(pair.receiving, into, 1);
  (void)send(pair.sending, data, 1);
  EXPECT_EQ(net::close_send(pair.sending), success);
  EXPECT_EQ(outcome(posted), remote_error);
  EXPECT_EQ(net::close_receive(pair.receiving), success);
}

// NCCL ends all its requests before it closes a connection; other users may not do this.
TEST(Connections, ASendThatHasNotEndedBeforeTheCloseArrivesWholeOrNotAtAll) {
  Listening at;
  for (const std::size_t size : {1UL, 4096UL, 1'000'000UL, 8'000'000UL}) {
    const Pair pair(at);
    const Bytes tested = bytes_of(100, 1), untested = bytes_of(size, 2);
    Bytes first(100), second(size);
    ASSERT_EQ(outcome(send(pair.sending, tested, 1)), success);
    (void)send(pair.sending, untested, 2);
    EXPECT_EQ(net::close_send(pair.sending), success);
    ASSERT_EQ(outcome(receive(pair.receiving, first, 1)), success) << "this message was sent";
    EXPECT_EQ(first, tested);
    int got = 0;
    const abi::Result result = outcome(receive(pair.receiving, second, 2), &got);
    EXPECT_TRUE(result == success || result == remote_error);
    if (result == success) {
      EXPECT_EQ(got, static_cast<int>(size));
      EXPECT_EQ(second, untested);
    }
    EXPECT_EQ(net::close_receive(pair.receiving), success);
  }
}

TEST(Connections, FailRequestsInFlightWhenTheReceiverCloses) {
  Listening at;
  const Pair pair(at);
  const Bytes data = bytes_of(64'000'000, 1);
  Bytes into(data.size());
  void* const sent = send(pair.sending, data, 1);
  (void)receive(pair.receiving, into, 1);
  EXPECT_EQ(net::close_receive(pair.receiving), success);
  EXPECT_EQ(outcome(sent), remote_error);
  EXPECT_EQ(net::close_send(pair.sending), success);
}

// Small messages leave before their receives are posted, and the receiver takes them in another order.
TEST(Connections, KeepEagerMessagesUntilTheirReceivesArePosted) {
  Listening at;
  const Pair pair(at);
  std::vector<Bytes> data, into;
  std::vector<void*> sent, posted;
  for (int tag = 0; tag < 16; ++tag) data.push_back(bytes_of(512, tag));
  into.assign(16, Bytes(512));
  for (int tag = 0; tag < 16; ++tag) sent.push_back(send(pair.sending, data[static_cast<std::size_t>(tag)], tag));
  for (void* request : sent) ASSERT_EQ(outcome(request), success);
  for (int tag = 15; tag >= 0; --tag)
    posted.push_back(receive(pair.receiving, into[static_cast<std::size_t>(tag)], tag));
  for (void* request : posted) ASSERT_EQ(outcome(request), success);
  EXPECT_EQ(into, data);
  EXPECT_EQ(net::close_send(pair.sending), success);
  EXPECT_EQ(net::close_receive(pair.receiving), success);
}

}  // namespace
}  // namespace tributary::nccl
