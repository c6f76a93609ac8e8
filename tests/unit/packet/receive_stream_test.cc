// A stream keeps as many bytes as the receiver has ever promised, and none after its end.
#include "transport/packet/receive_stream.h"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>

namespace tributary::transport::packet {
namespace {

using Outcome = ReceiveStream::Outcome;

std::byte byte_at(std::uint64_t offset) {
  return static_cast<std::byte>(offset * 31 / 7);
}

/// A reader that takes bytes when the test says so, and checks each.
class Reader final : public StreamReader {
 public:
  std::size_t take(std::span<const std::byte> bytes) override {
    if (before) before();
    const std::size_t count = wants ? bytes.size() : 0;
    for (std::size_t i = 0; i < count; ++i) wrong += bytes[i] != byte_at(taken++) ? 1U : 0U;
    return count;
  }
  std::function<void()> before;
  std::uint64_t taken = 0;
  std::uint64_t wrong = 0;
  bool wants = true;
};

class ReceiveStreamTest : public ::testing::Test {
 protected:
  Outcome receive(std::uint64_t offset, std::size_t count, std::size_t window) {
    std::vector<std::byte> bytes(count);
    for (std::size_t i = 0; i < count; ++i) bytes[i] = byte_at(offset + i);
    return stream.receive(offset, bytes, window, reader);
  }
  ChunkPool pool{4U << 20U};
  ReceiveStream stream{pool};
  Reader reader;
};

TEST_F(ReceiveStreamTest, HoldsAWindowThatHasGrownSinceTheFirstPieceWasKept) {
  constexpr std::size_t kSmall = 32768, kLarge = 1U << 20U, kPiece = 1000;
  EXPECT_EQ(receive(kPiece, kPiece, kSmall), Outcome::early);
  EXPECT_EQ(receive(0, kPiece, kSmall), Outcome::in_order);
  reader.wants = false;  // from now on the stream keeps every byte
  for (std::uint64_t offset = 2 * kPiece; offset + kPiece <= kLarge; offset += kPiece) {
    ASSERT_EQ(receive(offset, kPiece, offset < kSmall ? kSmall : kLarge), Outcome::in_order) << offset;
  }
  reader.wants = true;
  stream.read_on(reader);
  EXPECT_EQ(reader.taken, kLarge / kPiece * kPiece);
  EXPECT_EQ(reader.wrong, 0U) << "the ring grew while chunks were in it";
  EXPECT_EQ(pool.in_use(), 0U);
}

TEST_F(ReceiveStreamTest, GrowsInTheMiddleOfAStreamWithAGapInIt) {
  constexpr std::size_t kChunk = kChunkBytes;
  ASSERT_EQ(receive(0, 5 * kChunk + 77, 32768), Outcome::in_order);
  const std::uint64_t at = reader.taken;
  ASSERT_EQ(receive(at + 100, 2 * kChunk, 3 * kChunk), Outcome::early);
  ASSERT_EQ(receive(at + 10 * kChunk, kChunk, 40 * kChunk), Outcome::early);
  ASSERT_EQ(receive(at + 30 * kChunk, kChunk, 40 * kChunk), Outcome::early);
  ASSERT_EQ(receive(at, 100, 40 * kChunk), Outcome::in_order);
  EXPECT_EQ(reader.taken, at + 100 + 2 * kChunk);
  ASSERT_EQ(receive(reader.taken, at + 10 * kChunk - reader.taken, 40 * kChunk), Outcome::in_order);
  ASSERT_EQ(receive(reader.taken, at + 30 * kChunk - reader.taken, 40 * kChunk), Outcome::in_order);
  EXPECT_EQ(reader.taken, at + 31 * kChunk);
  EXPECT_EQ(reader.wrong, 0U);
  EXPECT_EQ(pool.in_use(), 0U);
}

TEST_F(ReceiveStreamTest, KeepsNothingWhenTheReaderEndsItInTheMiddle) {
  reader.wants = false;
  reader.before = [&] { stream.clear(); };
  static_cast<void>(receive(0, 1000, 32768));
  EXPECT_EQ(pool.in_use(), 0U);
}

TEST_F(ReceiveStreamTest, KnowsWhichBytesHaveCome) {
  ASSERT_EQ(receive(0, 100, 32768), Outcome::in_order);
  ASSERT_EQ(receive(200, 100, 32768), Outcome::early);
  ASSERT_EQ(receive(400, 100, 32768), Outcome::early);
  for (const auto& [begin, end] : {std::pair{0U, 100U}, {10U, 20U}, {200U, 300U}, {250U, 260U}, {400U, 500U}}) {
    EXPECT_TRUE(stream.has(begin, end)) << begin;
  }
  for (const auto& [begin, end] : {std::pair{0U, 101U}, {100U, 200U}, {150U, 250U}, {200U, 301U}, {300U, 500U}}) {
    EXPECT_FALSE(stream.has(begin, end)) << begin;
  }
}

}  // namespace
}  // namespace tributary::transport::packet
