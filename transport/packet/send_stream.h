#pragma once
// The frames of one channel as one stream of bytes: header, payload, header, payload, ... Every range of the stream
// that is not acknowledged can be read again, and so sent again. A ring with three marks, told <= acknowledged <= tail,
// holds the frames. The ring grows when it is full, and never shrinks.
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tributary/protocol/frame.h"

namespace tributary::transport::packet {

/// A frame whose payload is sent from where it lies.
struct WholeFrame {
  std::span<const std::byte, kFrameHeaderBytes> header;
  std::span<const std::byte> payload;
  [[nodiscard]] std::size_t bytes() const noexcept { return kFrameHeaderBytes + payload.size(); }
};

class SendStream {
 public:
  void push_borrowed(const FrameHeader& header, std::span<const std::byte> payload, std::uint64_t cookie);
  void push_copy(const FrameHeader& header, std::span<const std::byte> payload);

  /// The offset behind all queued frames.
  [[nodiscard]] std::uint64_t end() const noexcept { return end_; }
  /// The offset below which the other side has all bytes.
  [[nodiscard]] std::uint64_t acknowledged() const noexcept { return acknowledged_; }
  /// The number of send() calls whose cookie next_sent() has not returned.
  [[nodiscard]] std::uint32_t borrowed() const noexcept { return borrowed_; }

  /// A range of the stream: `copied` bytes at the place that the caller gave, then `rest` in the sender's memory.
  struct Part {
    std::size_t copied = 0;
    std::span<const std::byte> rest;
    [[nodiscard]] std::size_t bytes() const noexcept { return copied + rest.size(); }
  };
  /// Returns a part of at most `bytes_max` from `offset` on. The part must not be acknowledged yet. It copies headers
  /// and small payloads to `place`, so that one part holds many small frames; a large payload ends the part.
  [[nodiscard]] Part part(std::uint64_t offset, std::size_t bytes_max, std::span<std::byte> place) const noexcept;

  /// Returns the frame behind the last part, if it begins at `offset` and fits into a part of at most `bytes_max`
  /// bytes.
  [[nodiscard]] std::optional<WholeFrame> whole(std::uint64_t offset, std::size_t bytes_max) const noexcept {
    const std::uint64_t number = last_part_ + 1;
    if (number < done_ || number >= tail_) return std::nullopt;
    const Frame& frame = at(number);
    const bool alone = frame.begin == offset && frame.payload_bytes > kSmallBytes;
    if (!alone || kFrameHeaderBytes + frame.payload_bytes > bytes_max) return std::nullopt;
    last_part_ = number;
    return WholeFrame{frame.header, {frame.payload, frame.payload_bytes}};
  }

  /// Notes that the other side has all bytes below `to`. Returns the number of frames that are complete by this.
  std::size_t acknowledge(std::uint64_t to) noexcept;
  /// Returns the next cookie to report.
  [[nodiscard]] std::optional<std::uint64_t> next_sent() noexcept;
  /// The header of the first frame that is not acknowledged.
  [[nodiscard]] std::optional<FrameHeader> first() const noexcept;
  /// True if the user's memory is still needed, because a borrowed frame is not acknowledged.
  [[nodiscard]] bool needs_borrowed() const noexcept;
  /// Forgets all frames; none is reported.
  void clear() noexcept;

 private:
  /// Bytes. A payload up to this length is copied into the packet with its header, and more frames may follow.
  static constexpr std::size_t kSmallBytes = 256;
  struct Frame {
    alignas(64) FrameBytes header;
    const std::byte* payload = nullptr;
    std::size_t payload_bytes = 0;
    std::uint64_t begin = 0;  // offset in the stream
    std::uint64_t cookie = 0;
    bool borrowed = true;
    std::vector<std::byte> copy;
    [[nodiscard]] std::uint64_t end() const noexcept { return begin + kFrameHeaderBytes + payload_bytes; }
  };
  [[nodiscard]] const Frame& at(std::uint64_t number) const noexcept { return frames_[number & (frames_.size() - 1)]; }
  [[nodiscard]] Frame& at(std::uint64_t number) noexcept { return frames_[number & (frames_.size() - 1)]; }
  [[nodiscard]] std::uint64_t frame_of(std::uint64_t offset) const noexcept;
  [[nodiscard]] bool holds(std::uint64_t number, std::uint64_t offset) const noexcept;
  Frame& push(const FrameHeader& header, std::span<const std::byte> payload);
  void grow();

  std::vector<Frame> frames_;
  mutable std::uint64_t last_part_ = 0;  // number of the frame in which the last part ended, and the next begins
  std::uint64_t told_ = 0;               // numbers of the next frames to report, to acknowledge and to send
  std::uint64_t done_ = 0;
  std::uint64_t tail_ = 0;
  std::uint64_t acknowledged_ = 0;  // bytes that the other side has acknowledged
  std::uint64_t end_ = 0;
  std::uint32_t borrowed_ = 0;
};

}  // namespace tributary::transport::packet
