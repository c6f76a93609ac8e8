#pragma once
// The format of the bytes that a connection sends over sockets, after both ends are proved.
//
// The first socket carries a head of 16 bytes for each message, in the order of the sends. The message's own bytes
// follow its head. If the connection has data sockets and the message is not small, pieces of the message go over the
// data sockets instead. The pieces need no heads, because both ends compute the same sizes of pieces.
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "tributary/protocol/assert.h"
#include "tributary/protocol/error.h"

namespace tributary::nccl {

struct MessageHead {
  std::uint32_t mark = kMark;
  std::uint32_t number = 0;  // number of the message in its connection, from 0; after 2^32 messages from 0 again
  std::uint32_t bytes = 0;
  std::int32_t tag = 0;

  static constexpr std::uint32_t kMark = 0x4d425254;  // "TRBM"
};
inline constexpr std::size_t kHeadBytes = 16;
static_assert(sizeof(MessageHead) == kHeadBytes && std::endian::native == std::endian::little,
              "the wire is little-endian and so are all supported hosts");

using HeadBytes = std::array<std::byte, kHeadBytes>;
[[nodiscard]] inline HeadBytes encode(const MessageHead& head) noexcept {
  return std::bit_cast<HeadBytes>(head);
}
/// Returns Errc::corrupt if the bytes are no head: they come from another program, or from the middle of a message.
[[nodiscard]] inline Result<MessageHead> decode_head(std::span<const std::byte, kHeadBytes> bytes) {
  HeadBytes copy;
  std::ranges::copy(bytes, copy.begin());
  const auto head = std::bit_cast<MessageHead>(copy);
  if (head.mark != MessageHead::kMark) return fail(Errc::corrupt, "what is no message");
  return head;
}

/// Smaller messages go over the first socket. NCCL's own socket transport has the same smallest piece.
inline constexpr std::size_t kPieceBytesMin = std::size_t{64} << 10;

/// Deals the bytes of a connection's messages to its data sockets in turn, in pieces of equal size. A message begins at
/// the socket after the last socket of the message before it. It has at most one piece on each socket.
class Dealer {
 public:
  explicit Dealer(std::uint32_t sockets) : sockets_(sockets) {}

  /// Returns false if the first socket carries all bytes of the message.
  [[nodiscard]] bool deals(std::size_t bytes) const noexcept { return sockets_ > 0 && bytes >= kPieceBytesMin; }
  [[nodiscard]] std::uint32_t pieces_of(std::size_t bytes) const noexcept {
    return static_cast<std::uint32_t>((bytes + piece_bytes(bytes) - 1) / piece_bytes(bytes));
  }
  /// Calls give(socket, offset, bytes) for each piece of the next message. deals() must be true for its size.
  template <class Give>
  void deal(std::size_t bytes, Give&& give) {
    TRIBUTARY_ASSERT(deals(bytes) && pieces_of(bytes) <= sockets_, "{} bytes are dealt to {} sockets", bytes, sockets_);
    const std::size_t piece = piece_bytes(bytes);
    for (std::size_t at = 0; at < bytes; at += piece) {
      TRIBUTARY_ASSERT(next_ < sockets_, "data socket {} of {}", next_, sockets_);
      give(next_, at, std::min(piece, bytes - at));
      next_ = (next_ + 1) % sockets_;
    }
  }

 private:
  /// Returns a multiple of the page size, so that no two sockets share a page.
  [[nodiscard]] std::size_t piece_bytes(std::size_t bytes) const noexcept {
    constexpr std::size_t kPage = 4096;
    const std::size_t even = (bytes + sockets_ - 1) / sockets_;
    return std::max(kPieceBytesMin, (even + kPage - 1) / kPage * kPage);
  }

  std::uint32_t sockets_;
  std::uint32_t next_ = 0;
};

}  // namespace tributary::nccl
