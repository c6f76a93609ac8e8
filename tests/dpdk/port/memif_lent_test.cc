// Two processes on one wire of shared memory; one of them lends its packet buffers to the other. This is a separate
// program, because DPDK's memory must then be one file.
#include "tests/dpdk/port/memif_wire.h"

namespace tributary::transport::dpdk::test {
namespace {

/// Fills the ring while the other side sleeps, with packets of one buffer and of two, so that each possible number of
/// places is left.
TEST_F(Memif, PacketsFromLentBuffersArriveUnchangedAndInOrderEvenIfTheRingIsFull) {
  ASSERT_NO_FATAL_FAILURE(connect(",zero-copy=yes"));
  const auto number_of = [](std::span<const std::byte> bytes) {
    std::uint64_t number = 0;
    std::memcpy(&number, bytes.data(), sizeof number);
    return number;
  };
  std::vector<std::byte> payload(512);
  for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<std::byte>(i * 7);
  constexpr unsigned kAtOnce = 61;  // fills the ring in the middle of a call
  std::uint64_t next = 1;
  std::uint64_t last = 0;
  const auto send = [&](bool large) {
    std::array<std::byte, 8> head;
    std::memcpy(head.data(), &next, sizeof next);
    if (!port->send(there, head, large ? std::span<const std::byte>(payload) : std::span<const std::byte>{}))
      return false;
    ++next;
    return true;
  };
  for (unsigned round = 0; round < 14; ++round) {
    const unsigned alone = round / 2;                 // packets of one buffer at the beginning
    const unsigned every = round % 2 == 0 ? 4 : ~0U;  // after these, one of so many packets has one buffer
    drain();
    std::vector<bool> large(next + 4096);
    echo->signal(SIGSTOP);
    const std::uint64_t first = next;
    for (unsigned i = 0; i < alone; ++i) static_cast<void>(send(false));
    for (bool taken = true; taken;) {
      port->flush();
      for (unsigned i = 0; taken && i < kAtOnce; ++i) {
        large[next] = i % every != 3 || every > 64;
        taken = send(large[next]);
      }
    }
    ASSERT_GT(next, first + 256) << "the ring has a thousand places";
    echo->signal(SIGCONT);
    std::uint64_t answers = 0;
    std::array<packet::ReceivedPacket, 64> into;
    for (auto end = Clock::now() + 500ms; Clock::now() < end;) {
      port->flush();
      const std::size_t count = port->receive(into);
      for (const auto& packet : std::span(into).first(count)) {
        const std::uint64_t number = number_of(packet.bytes);
        ASSERT_GT(number, last);
        ASSERT_LT(number, next);
        ASSERT_EQ(packet.bytes.size(), large[number] ? 8 + payload.size() : 8);
        if (large[number]) {
          ASSERT_TRUE(std::ranges::equal(packet.bytes.subspan(8), payload));
        }
        last = number;
        ++answers;
      }
      if (count > 0) end = Clock::now() + 500ms;
    }
    EXPECT_GT(answers, 256U);
  }
  EXPECT_GT(port->statistics().sent_shared, 0U) << "no packet had two buffers";
}

}  // namespace
}  // namespace tributary::transport::dpdk::test
