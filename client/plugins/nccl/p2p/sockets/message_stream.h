#pragma once
// The language of two ends of a connection over sockets, once they are proved.
//
// The first socket carries, for each message in the order of the sends, a head of 16 bytes, and the message's own bytes
// behind it. But where the connection has data sockets and the message is not small, its bytes are dealt to these in
// pieces, without a word more, because both ends deal alike.
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "tributary/protocol/error.h"

namespace tributary::nccl {

struct MessageHead {
  std::uint32_t mark = kMark;
  std::uint32_t number = 0;  // the connection's messages are counted from 0, and after 2^32 from 0 again
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
/// Errc::corrupt: what another program says, or what stands in the middle of a message.
[[nodiscard]] inline Result<MessageHead> decode_head(std::span<const std::byte, kHeadBytes> bytes) {
  HeadBytes copy;
  std::ranges::copy(bytes, copy.begin());
  const auto head = std::bit_cast<MessageHead>(copy);
  if (head.mark != MessageHead::kMark) return fail(Errc::corrupt, "what is no message");
  return head;
}

/// NCCL's own socket transport makes no smaller pieces, either: what is smaller goes over the first socket.
inline constexpr std::size_t kPieceBytesMin = std::size_t{64} << 10;

/// Deals the bytes of a connection's messages to its data sockets: in pieces of equal size, in turn, going on with each
/// message where the one before has ended. A message has at most one piece on each socket.
class Dealer {
 public:
  explicit Dealer(std::uint32_t sockets) : sockets_(sockets) {}

  /// False: all of the message's bytes go over the first socket.
  [[nodiscard]] bool deals(std::size_t bytes) const noexcept { return sockets_ > 0 && bytes >= kPieceBytesMin; }
  [[nodiscard]] std::uint32_t pieces_of(std::size_t bytes) const noexcept {
    return static_cast<std::uint32_t>((bytes + piece_bytes(bytes) - 1) / piece_bytes(bytes));
  }
  /// Calls give(socket, offset, bytes) for each piece of the next message that deals() is true for.
  template <class Give>
  void deal(std::size_t bytes, Give&& give) {
    const std::size_t piece = piece_bytes(bytes);
    for (std::size_t at = 0; at < bytes; at += piece) {
      give(next_, at, std::min(piece, bytes - at));
      next_ = (next_ + 1) % sockets_;
    }
  }

 private:
  /// Whole pages, so that no two sockets share one.
  [[nodiscard]] std::size_t piece_bytes(std::size_t bytes) const noexcept {
    constexpr std::size_t kPage = 4096;
    const std::size_t even = (bytes + sockets_ - 1) / sockets_;
    return std::max(kPieceBytesMin, (even + kPage - 1) / kPage * kPage);
  }

  std::uint32_t sockets_;
  std::uint32_t next_ = 0;
};

}  // namespace tributary::nccl
