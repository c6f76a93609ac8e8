// The user's memory, and its registrations at the device. The end of a promise has effect from the next frame on; a
// rank can also send memory that it may only read.
#include <sys/mman.h>

#include <cstring>

#include "tests/rdma/transport/verbs_pair.h"

namespace tributary::transport::test {
namespace {

constexpr std::size_t kBytes = 1U << 18;  // long enough to be registered, not copied

class Promises : public VerbsPair {
 protected:
  void connect() { VerbsPair::connect({}, {}); }
  static std::span<std::byte> map(std::byte value, void* at = nullptr) {
    void* const memory = ::mmap(at, kBytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | (at != nullptr ? MAP_FIXED : 0), -1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    std::memset(memory, static_cast<int>(value), kBytes);
    return {static_cast<std::byte*>(memory), kBytes};
  }
  void expect_arrival(std::span<const std::byte> payload, std::uint64_t sequence) {
    ASSERT_TRUE(client_peer.channel->send(header_of(sequence), payload, sequence));
    ASSERT_TRUE(run_until([&] {
      return server_peer().closed || client_peer.closed ||
             (server_peer().frames.size() == 1 && client_peer.sent.size() == 1);
    }));
    ASSERT_FALSE(client_peer.closed) << client_peer.closed->message;
    ASSERT_FALSE(server_peer().closed) << server_peer().closed->message;
    const auto& arrived = server_peer().frames.front().payload;
    ASSERT_EQ(arrived.size(), payload.size());
    EXPECT_EQ(std::memcmp(arrived.data(), payload.data(), payload.size()), 0)
        << "the first byte is " << static_cast<int>(arrived.front());
    server_peer().frames.clear();
    client_peer.sent.clear();
  }
};

// Sends large payloads in both ways: this side writes them, or the other side fetches them.
TEST_F(Promises, EndBeforeTheNextFrameIsSent) {
  ASSERT_NO_FATAL_FAILURE(connect());
  std::span<std::byte> memory = map(std::byte{1});
  for (std::uint64_t i = 1; i < 6; ++i) {
    auto kept = client->keep_registered(memory);
    ASSERT_NO_FATAL_FAILURE(expect_arrival(memory, 3 * i));
    ASSERT_NO_FATAL_FAILURE(expect_arrival(memory, 3 * i + 1));  // the device still has a registration for it
    // The transport gets no turn from here to the next send.
    kept.reset();
    ASSERT_EQ(::munmap(memory.data(), kBytes), 0);
    memory = map(static_cast<std::byte>(10 + i), memory.data());
    ASSERT_NO_FATAL_FAILURE(expect_arrival(memory, 3 * i + 2));
  }
  ::munmap(memory.data(), kBytes);
}

TEST_F(Promises, APromiseThatEndsBeforeItIsReadLeavesNothing) {
  ASSERT_NO_FATAL_FAILURE(connect());
  std::span<std::byte> memory = map(std::byte{1});
  client->keep_registered(memory).reset();
  const auto before = client->statistics().memory_regions;
  ASSERT_NO_FATAL_FAILURE(expect_arrival(std::span(memory).first(kBytes / 2), 1));
  EXPECT_EQ(client->statistics().memory_regions, before) << "the memory was registered before, and stays so";
  ::munmap(memory.data(), kBytes);
}

TEST_F(Promises, MemoryThatMayOnlyBeReadIsSentToo) {
  ASSERT_NO_FATAL_FAILURE(connect());
  std::span<std::byte> memory = map(std::byte{3});
  ASSERT_EQ(::mprotect(memory.data(), kBytes, PROT_READ), 0);
  ASSERT_NO_FATAL_FAILURE(expect_arrival(memory, 1));
  const auto kept = client->keep_registered(memory);
  ASSERT_NO_FATAL_FAILURE(expect_arrival(std::span(memory).subspan(4096), 2));
  ::munmap(memory.data(), kBytes);
}

}  // namespace
}  // namespace tributary::transport::test
