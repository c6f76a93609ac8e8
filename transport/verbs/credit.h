#pragma once
// The number of messages that may be under way, and the acknowledgements that are due for received messages.
//
// Why a receive is always posted before it can be needed. Let D be the receives that the other side posted, on each
// queue pair, before the connection was open (its Greeting). Every message uses one receive. So does a payload that is
// written to its place, which counts as a message here. Every message also carries the number of the other side's
// messages that were consumed. A message counts as consumed only after its receive was posted again, on the same queue
// pair. The receive that a write used is posted again in the order of the numbers, because its buffer was not used. So
// on queue pair q
//     posted there = D + consumed there(q),   needed there = sent here(q).
// The sum over all q of sent(q) - consumed(q) is sent - consumed, and no term is negative. So no term is greater than D
// as long as
//     sent - (consumed, as told) <= D
// This is the only rule: may_send() says whether another message keeps it, and send() checks it. The count that the
// peer was told is never greater than the true count. A number is consumed only when all lower numbers have come, so
// the numbers that can come next are also fewer than D apart.
//
// Why it never stops. Messages stop when both sides have sent D messages that are not acknowledged. Only a message that
// acknowledges a new message may use the last of the D places (may_send()). Suppose that both sides have used the last
// place, a with message A, b with message B, that all messages are consumed, and that none is under way. If B was sent
// after b consumed A, B acknowledged all messages of a: a is free to send. If A was sent after a consumed B, b is free.
// In the third case A acknowledged a new message to b, and b has sent no message since, because B was its last: b is
// free. The side that is free, and owes an acknowledgement of half of D or more, sends one by itself.
#include <algorithm>
#include <cstdint>
#include <optional>

#include "tributary/protocol/assert.h"

namespace tributary::transport::verbs {

class Credit {
 public:
  /// This side posts `depth` receives on each queue pair, before the connection is open.
  void post(std::uint32_t depth) noexcept { depth_ = depth; }
  [[nodiscard]] std::uint32_t depth() const noexcept { return depth_; }
  /// Sets the number of the peer's receives that this side may use: `peer_depth`. It is not greater than this side's
  /// own receives, because the send ring has only that many places.
  void open(std::uint32_t peer_depth) noexcept {
    TRIBUTARY_ASSERT(peer_depth > 0 && peer_depth <= depth_, "the peer's {} receives are used with {} of ours",
                     peer_depth, depth_);
    peer_depth_ = peer_depth;
  }

  // ---- Messages to the peer
  /// True if a message may be sent. The last place is for a message that acknowledges a new message.
  [[nodiscard]] bool may_send() const noexcept {
    return sent_ - peer_consumed_ < (consumed_ != consumed_told_ ? peer_depth_ : peer_depth_ - 1);
  }
  /// The number of the next message.
  [[nodiscard]] std::uint32_t number() const noexcept { return sent_; }
  void send() noexcept {
    ++sent_;
    TRIBUTARY_ASSERT(sent_ - peer_consumed_ <= peer_depth_,
                     "message {} is sent while the peer has told of {} and has receives for {}", sent_, peer_consumed_,
                     peer_depth_);
  }
  /// Notes that a message offers a payload for the peer to fetch.
  void offer() noexcept { ++offered_; }

  // ---- Messages from the peer
  /// Notes that the receives of this number of messages were posted again.
  void consume(std::uint32_t messages) noexcept { consumed_ += messages; }
  void fetch() noexcept { ++fetched_; }
  /// True if an acknowledgement must be sent, even if there is no frame to send.
  [[nodiscard]] bool owes_word() const noexcept {
    return fetched_ != fetched_told_ || consumed_ - consumed_told_ >= std::max(1U, depth_ / 2);
  }
  /// The count for a message or a write that is made now.
  [[nodiscard]] std::uint32_t tell_consumed() noexcept { return consumed_told_ = consumed_; }
  [[nodiscard]] std::uint32_t tell_fetched() noexcept { return fetched_told_ = fetched_; }

  struct Heard {
    std::uint32_t consumed = 0;  // messages that the peer has consumed since the last call
    std::uint32_t fetched = 0;
  };
  /// Takes the peer's counts of messages that it has consumed, and of payloads that it has fetched, since the
  /// beginning. Returns none if the counts are impossible.
  [[nodiscard]] std::optional<Heard> hear(std::uint32_t consumed, std::uint32_t fetched) noexcept {
    const Heard heard{.consumed = consumed - peer_consumed_, .fetched = fetched - peer_fetched_};
    if (heard.consumed > sent_ - peer_consumed_ || heard.fetched > offered_ - peer_fetched_) return std::nullopt;
    peer_consumed_ = consumed;
    peer_fetched_ = fetched;
    return heard;
  }
  /// Restores a whole count. The peer has sent only the bits in `mask`.
  [[nodiscard]] std::uint32_t whole_consumed(std::uint32_t bits, std::uint32_t mask) const noexcept {
    return peer_consumed_ + ((bits - peer_consumed_) & mask);
  }
  [[nodiscard]] std::uint32_t peer_fetched() const noexcept { return peer_fetched_; }

 private:
  std::uint32_t depth_ = 0;       // receives posted on this side, and places in the send ring
  std::uint32_t peer_depth_ = 0;  // receives of the peer that this side uses
  // Counts since the beginning, modulo 2^32. All differences are small.
  std::uint32_t sent_ = 0;           // messages that this side has sent
  std::uint32_t peer_consumed_ = 0;  // messages that the peer has acknowledged
  std::uint32_t offered_ = 0;        // payloads that the peer was asked to fetch
  std::uint32_t peer_fetched_ = 0;   // fetches that the peer has acknowledged
  std::uint32_t consumed_ = 0;       // messages from the peer whose receives were posted again
  std::uint32_t consumed_told_ = 0;
  std::uint32_t fetched_ = 0;  // payloads of the peer that were fetched
  std::uint32_t fetched_told_ = 0;
};

}  // namespace tributary::transport::verbs
