#pragma once
// The frames of one channel, from send() to on_sent(): those that wait to be sent, those whose payload the peer must
// still fetch or the device still write, and those that are done but not reported. A ring with three marks, told <=
// sent <= tail, holds them; it grows to the most frames that were ever in it, and never shrinks.
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
    bool fetching = false;         // sent, but its payload is not fetched yet
    bool writing = false;          // sent, but its payload is still being written to the peer
    std::uint32_t written_at = 0;  // if written: the position of the work request in the send queue
    std::uint32_t written_on = 0;  // if written: the queue pair
    RegistrationPtr registration;  // registration of a payload that is fetched or written
    std::vector<std::byte> copy;
  };

  Frame& push(const FrameHeader& header);
  /// The number of send() calls whose cookie take_done() has not returned.
  [[nodiscard]] std::uint32_t borrowed() const noexcept { return borrowed_; }
  void count_borrowed() noexcept { ++borrowed_; }

  /// The next frame to send, or nullptr.
  [[nodiscard]] Frame* next() noexcept { return sent_ == tail_ ? nullptr : &at(sent_); }
  [[nodiscard]] const Frame* first() const noexcept {
    return told_ == tail_ ? nullptr : &frames_[told_ & (frames_.size() - 1)];
  }
  /// Notes that the next frame was sent. `fetching`: it is not done before fetched().
  void sent(bool fetching) noexcept;
  /// Notes that a write sent the next frame. It is done when the send queue of that queue pair has come to `position`.
  void written(std::uint32_t queue_pair, std::uint32_t position) noexcept;
  [[nodiscard]] std::uint32_t being_fetched() const noexcept { return being_fetched_; }
  /// Notes that the peer has fetched the oldest payload that it was fetching; there is one.
  void fetched() noexcept;

  /// Takes the oldest frame out if it is done; `retired` says how far a queue pair's send queue has come. Returns the
  /// cookie of a send().
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
  std::uint64_t fetched_ = 0;  // frames before it are fetched, or need not be
  std::uint64_t sent_ = 0;
  std::uint64_t tail_ = 0;
  std::uint32_t borrowed_ = 0;
  std::uint32_t being_fetched_ = 0;
};

}  // namespace tributary::transport::verbs
