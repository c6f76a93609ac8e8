#pragma once
// The frames of one channel, from send() to on_sent(): frames that wait to be sent, frames whose payload must still be
// fetched or written, and frames that are done but not reported. A ring with three marks, told <= sent <= tail, holds
// the frames; it grows when it is full, and never shrinks.
#include <cstdint>
#include <optional>
#include <vector>

#include "transport/verbs/registrations.h"
#include "tributary/protocol/frame.h"

namespace tributary::transport::verbs {

class FrameQueue {
 public:
  struct Frame {
    FrameHeader header;
    std::span<const std::byte> payload;
    std::uint64_t cookie = 0;
    bool borrowed = false;
    bool fetching = false;         // the frame is sent, but its payload is not fetched yet
    bool writing = false;          // the frame is sent, but its payload is still being written
    std::size_t parted = 0;        // bytes of the payload that messages have, of a frame that is not sent yet
    std::uint32_t written_at = 0;  // if written: the position of the work request in the send queue
    std::uint32_t written_on = 0;  // if written: the queue pair
    RegistrationPtr registration;  // registration of a payload that is fetched or written
    std::vector<std::byte> copy;
  };

  Frame& push(const FrameHeader& header);
  /// The number of send() calls whose cookie take_done() has not returned.
  [[nodiscard]] std::uint32_t borrowed() const noexcept { return borrowed_; }
  void count_borrowed() noexcept { ++borrowed_; }

  /// The next frame to send; nullptr if there is none.
  [[nodiscard]] Frame* next() noexcept { return sent_ == tail_ ? nullptr : &at(sent_); }
  [[nodiscard]] const Frame* first() const noexcept {
    return told_ == tail_ ? nullptr : &frames_[told_ & (frames_.size() - 1)];
  }
  /// Notes that the next frame was sent. `fetching`: the frame is done only after fetched().
  void sent(bool fetching) noexcept;
  /// Notes that a write sent the next frame. The frame is done when the queue pair's send queue has reached `position`.
  void written(std::uint32_t queue_pair, std::uint32_t position) noexcept;
  [[nodiscard]] std::uint32_t being_fetched() const noexcept { return being_fetched_; }
  /// Notes that the peer has fetched the oldest payload that it was fetching. There must be such a payload.
  void fetched() noexcept;

  /// Takes the oldest frame out if it is done; `retired` gives the last position that is done in a queue pair's send
  /// queue. Returns the cookie of a send().
  struct Done {
    std::optional<std::uint64_t> cookie;
  };
  template <class Retired>
  [[nodiscard]] std::optional<Done> take_done(Retired retired) noexcept {
    if (told_ == sent_) return std::nullopt;
    const Frame& frame = at(told_);
    if (frame.fetching) return std::nullopt;
    if (frame.writing && static_cast<std::int32_t>(retired(frame.written_on) - frame.written_at) < 0)
      return std::nullopt;
    return take_oldest();
  }
  /// True if all frames were sent, and all payloads fetched.
  [[nodiscard]] bool all_done() const noexcept { return sent_ == tail_ && being_fetched_ == 0; }
  void clear() noexcept;

 private:
  Frame& at(std::uint64_t number) noexcept { return frames_[number & (frames_.size() - 1)]; }
  void grow();
  [[nodiscard]] Done take_oldest() noexcept;

  std::vector<Frame> frames_;
  std::uint64_t told_ = 0;
  std::uint64_t fetched_ = 0;  // frames before this number are fetched, or need no fetch
  std::uint64_t sent_ = 0;
  std::uint64_t tail_ = 0;
  std::uint32_t borrowed_ = 0;
  std::uint32_t being_fetched_ = 0;
};

}  // namespace tributary::transport::verbs
