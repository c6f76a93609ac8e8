#pragma once
// What was sent on a channel that may break while the other side lives on. Frames stay here until the other side has
// said that it has taken them, so that another channel can go on where this one ends: no frame is lost, none comes
// twice.
//
// A payload is the caller's until it is told that it is sent. A transport that tells this before the other side has
// taken the payload does so for short ones alone; of those, copies are kept.
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "tributary/protocol/frame.h"

namespace tributary::client {

/// On its way to a channel, or handed to one.
struct PeerFrame {
  FrameHeader header;
  std::span<const std::byte> payload;
  std::uint64_t cookie = 0;       // the caller's
  bool told = false;              // that it is sent: `payload` is `kept`, or the other side has it
  std::vector<std::byte> kept{};  // a copy of the payload
};

class SentFrames {
 public:
  /// Payloads up to so long may be told sent before they are taken.
  explicit SentFrames(std::uint32_t early_bytes_max) : early_bytes_max_(early_bytes_max) {}

  /// The channel has it now.
  void handed_over(PeerFrame frame) { frames_.push_back(std::move(frame)); }
  /// The channel has sent its next one. Its cookie, with which the caller is to be told.
  [[nodiscard]] std::uint64_t sent();
  /// The other side has taken so many, of all that were ever handed over. False: it cannot have.
  [[nodiscard]] bool taken(std::uint64_t count);
  /// The same, of which only so much is known.
  [[nodiscard]] bool taken_low_bits(std::uint32_t count) {
    return taken(first_ + (count - static_cast<std::uint32_t>(first_)));
  }
  /// The channel is gone, and the other side has taken so many. What it has not goes to the front of `pending`, to be
  /// sent by the next channel. The cookies of those that it has, and whose caller does not know yet; none: it cannot
  /// have taken so many, or so few.
  [[nodiscard]] std::optional<std::vector<std::uint64_t>> go_on_from(std::uint64_t count,
                                                                     std::deque<PeerFrame>& pending);
  [[nodiscard]] std::size_t size() const noexcept { return frames_.size(); }

 private:
  void forget_taken();

  const std::uint32_t early_bytes_max_;
  std::deque<PeerFrame> frames_;
  std::uint64_t first_ = 0;                    // which is frames_.front()
  std::uint64_t taken_ = 0;                    // by the other side, as far as is known
  std::size_t confirmed_ = 0;                  // of frames_: the channel has sent them
  std::vector<std::vector<std::byte>> spare_;  // memory of copies
};

}  // namespace tributary::client
