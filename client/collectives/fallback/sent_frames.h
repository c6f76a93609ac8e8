#pragma once
// The frames sent on a channel that may break while the other side lives on. A frame stays here until the other side
// has said that it has taken it, so that another channel can go on where this one ended: no frame is lost, none comes
// twice.
//
// A payload belongs to the caller until the caller is told that it was sent. A transport may say so before the other
// side has taken the payload, but only for short payloads; this class keeps copies of those.
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "tributary/protocol/frame.h"

namespace tributary::client {

/// A frame on its way to a channel, or handed to one.
struct PeerFrame {
  FrameHeader header;
  std::span<const std::byte> payload;
  std::uint64_t cookie = 0;       // the caller's
  bool told = false;              // the caller knows that it was sent: `payload` is `kept`, or the other side has it
  std::vector<std::byte> kept{};  // a copy of the payload
};

class SentFrames {
 public:
  /// Payloads of up to this many bytes may be told as sent before they are taken.
  explicit SentFrames(std::uint32_t early_bytes_max) : early_bytes_max_(early_bytes_max) {}

  /// Notes that the channel has the frame now.
  void handed_over(PeerFrame frame) { frames_.push_back(std::move(frame)); }
  /// Notes that the channel has sent its next frame. Returns the cookie with which to tell the caller.
  [[nodiscard]] std::uint64_t sent();
  /// Notes that the other side has taken `count` of all frames that were ever handed over. Returns false if that is
  /// impossible.
  [[nodiscard]] bool taken(std::uint64_t count);
  /// Does the same, if only the low 32 bits of the count are known.
  [[nodiscard]] bool taken_low_bits(std::uint32_t count) {
    return taken(first_ + (count - static_cast<std::uint32_t>(first_)));
  }
  /// Notes that the channel is gone, and that the other side has taken `count` frames. Moves the other frames to the
  /// front of `pending`, for the next channel to send. Returns the cookies of the frames that the other side has but
  /// whose caller was not told; nullopt if the count is impossible.
  [[nodiscard]] std::optional<std::vector<std::uint64_t>> go_on_from(std::uint64_t count,
                                                                     std::deque<PeerFrame>& pending);
  [[nodiscard]] std::size_t size() const noexcept { return frames_.size(); }

 private:
  void forget_taken();

  const std::uint32_t early_bytes_max_;
  std::deque<PeerFrame> frames_;
  std::uint64_t first_ = 0;                    // the number of frames_.front()
  std::uint64_t taken_ = 0;                    // by the other side, as far as this side knows
  std::size_t confirmed_ = 0;                  // how many of frames_ the channel has sent
  std::vector<std::vector<std::byte>> spare_;  // memory for copies, used again
};

}  // namespace tributary::client
