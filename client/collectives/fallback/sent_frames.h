#pragma once
// The frames sent on a channel that may break while the other side lives on. A frame stays here until the other side
// has said that it has taken the frame. So another channel can go on where this channel ended: no frame is lost, and no
// frame comes twice.
//
// A payload belongs to the caller until the caller is told that it was sent. A transport may say so before the other
// side has taken the payload, but only for short payloads; this class copies such payloads.
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
  std::uint64_t cookie = 0;       // the caller's cookie
  bool told = false;              // on_sent was reported: `payload` is in `kept`, or the other side has it
  std::vector<std::byte> kept{};  // a copy of the payload
};

class SentFrames {
 public:
  /// `early_bytes_max`: the transport may report payloads of up to this many bytes as sent before they are taken.
  explicit SentFrames(std::uint32_t early_bytes_max) : early_bytes_max_(early_bytes_max) {}

  /// Notes that the channel has the frame now.
  void handed_over(PeerFrame frame) { frames_.push_back(std::move(frame)); }
  /// Notes that the channel has sent the next of its frames. Returns the cookie for the report to the caller.
  [[nodiscard]] std::uint64_t sent();
  /// Notes that the other side has taken `count` of all frames that were ever handed over. Returns false if this count
  /// is impossible.
  [[nodiscard]] bool taken(std::uint64_t count);
  /// Does the same as taken(), if only the low 32 bits of the count are known.
  [[nodiscard]] bool taken_low_bits(std::uint32_t count) {
    return taken(first_ + (count - static_cast<std::uint32_t>(first_)));
  }
  /// Notes that the channel is gone, and that the other side has taken `count` frames. Moves the other frames to the
  /// front of `pending`, for the next channel to send. Returns the cookies of the frames that the other side has
  /// taken before their caller was told that they were sent; nullopt if the count is impossible.
  [[nodiscard]] std::optional<std::vector<std::uint64_t>> go_on_from(std::uint64_t count,
                                                                     std::deque<PeerFrame>& pending);
  [[nodiscard]] std::size_t size() const noexcept { return frames_.size(); }

 private:
  void forget_taken();

  const std::uint32_t early_bytes_max_;
  std::deque<PeerFrame> frames_;
  std::uint64_t first_ = 0;                    // the number of frames_.front()
  std::uint64_t taken_ = 0;                    // number of frames that the other side has confirmed
  std::size_t confirmed_ = 0;                  // how many of frames_ the channel has sent
  std::vector<std::vector<std::byte>> spare_;  // memory for further copies
};

}  // namespace tributary::client
