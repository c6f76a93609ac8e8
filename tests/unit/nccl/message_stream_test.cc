#include "client/plugins/nccl/p2p/sockets/message_stream.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace tributary::nccl {
namespace {

TEST(MessageHead, ComesBackAsItWas) {
  const MessageHead head{.number = 77, .bytes = std::uint32_t{1} << 30, .tag = -5};
  const auto read = decode_head(encode(head));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->number, head.number);
  EXPECT_EQ(read->bytes, head.bytes);
  EXPECT_EQ(read->tag, head.tag);
}

TEST(MessageHead, AHeadOfAnotherFormIsRefused) {
  HeadBytes bytes = encode(MessageHead{.bytes = 1});
  bytes[0] ^= std::byte{1};
  EXPECT_FALSE(decode_head(bytes));
}

struct Dealt {
  std::uint32_t socket;
  std::size_t at, bytes;
};

TEST(Dealer, CoversEachMessageOnceWithAtMostOnePieceOnEachSocket) {
  for (const std::uint32_t sockets : {1U, 3U, 4U, 16U, 64U}) {
    Dealer dealer(sockets);
    std::uint32_t next = 0;
    for (const std::size_t bytes : {65'536UL, 65'537UL, 131'072UL, 1'000'003UL, 4'194'304UL, 64'000'000UL}) {
      ASSERT_TRUE(dealer.deals(bytes));
      std::vector<Dealt> pieces;
      const std::uint32_t expected = dealer.pieces_of(bytes);
      dealer.deal(
          bytes, [&](std::uint32_t socket, std::size_t at, std::size_t size) { pieces.push_back({socket, at, size}); });
      EXPECT_EQ(pieces.size(), expected);
      std::size_t end = 0;
      std::set<std::uint32_t> used;
      for (const Dealt& piece : pieces) {
        EXPECT_EQ(piece.at, end);
        EXPECT_EQ(piece.socket, next) << "the sockets take turns from message to message";
        EXPECT_TRUE(piece.bytes >= kPieceBytesMin || piece.at + piece.bytes == bytes);
        EXPECT_GT(piece.bytes, 0U);
        EXPECT_TRUE(used.insert(piece.socket).second);
        end += piece.bytes;
        next = (next + 1) % sockets;
      }
      EXPECT_EQ(end, bytes);
    }
  }
}

TEST(Dealer, LeavesSmallMessagesAndConnectionsOfOneSocketAlone) {
  EXPECT_FALSE(Dealer(4).deals(kPieceBytesMin - 1));
  EXPECT_FALSE(Dealer(0).deals(kPieceBytesMin * 100));
}

}  // namespace
}  // namespace tributary::nccl
