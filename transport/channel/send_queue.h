#pragma once
// The frames of one channel that wait to be written, and the frames that were written but not reported yet. A ring with
// three marks, told <= written <= tail, holds them. The ring grows when it is full, and never
// shrinks.
#include <sys/uio.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tributary/protocol/assert.h"
#include "tributary/protocol/frame.h"

namespace tributary::transport {

class SendQueue {
 public:
  void push_borrowed(const FrameHeader& header, std::span<const std::byte> payload, std::uint64_t cookie);
  void push_copy(const FrameHeader& header, std::span<const std::byte> payload);

  /// True when every queued frame was written.
  [[nodiscard]] bool empty() const noexcept { return written_ == tail_; }
  /// The number of send() calls whose cookie next_sent() has not returned.
  [[nodiscard]] std::uint32_t borrowed() const noexcept { return borrowed_; }

  struct Gathered {
    std::size_t vectors = 0;
    std::size_t bytes = 0;
  };
  /// Fills `out` with the bytes to write next, at most `bytes_max` of them.
  [[nodiscard]] Gathered gather(std::span<iovec> out, std::size_t bytes_max) noexcept;
  struct Next {
    std::span<const std::byte> header;
    std::span<const std::byte> payload;
    std::size_t offset;  // bytes of header and payload that were written already
    bool borrowed;       // next_sent() will report it
  };
  /// The frame to write next. Do not call it when empty().
  [[nodiscard]] Next next() noexcept {
    TRIBUTARY_ASSERT(!empty(), "the next of {} frames is asked for, and all are written", tail_);
    const Frame& frame = at(written_);
    return {frame.header, {frame.payload, frame.payload_bytes}, offset_, frame.borrowed};
  }
  /// Notes that the first `bytes` of the unwritten bytes were written. Returns how many frames that completed.
  std::size_t consume(std::size_t bytes) noexcept;
  /// Returns the next cookie to report.
  [[nodiscard]] std::optional<std::uint64_t> next_sent() noexcept;
  [[nodiscard]] bool all_told() const noexcept { return told_ == written_; }
  /// Forgets all frames; none is reported.
  void clear() noexcept;

 private:
  struct Frame {
    FrameBytes header;
    const std::byte* payload = nullptr;
    std::size_t payload_bytes = 0;
    std::uint64_t cookie = 0;
    bool borrowed = true;
    std::vector<std::byte> copy;
  };
  Frame& at(std::uint64_t number) noexcept { return frames_[number & (frames_.size() - 1)]; }
  Frame& push(const FrameHeader& header, std::span<const std::byte> payload);
  void grow();

  std::vector<Frame> frames_;
  std::uint64_t told_ = 0;
  std::uint64_t written_ = 0;
  std::uint64_t tail_ = 0;
  std::size_t offset_ = 0;  // bytes of frame `written_` that are out, header included
  std::uint32_t borrowed_ = 0;
};

}  // namespace tributary::transport
