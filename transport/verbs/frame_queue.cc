#include "transport/verbs/frame_queue.h"

#include <utility>

#include "tributary/protocol/assert.h"

namespace tributary::transport::verbs {
namespace {

/// Size in bytes. A copy buffer that is larger is freed after its control frame was sent.
constexpr std::size_t kCopyBytesKept = 65536;

}  // namespace

void FrameQueue::grow() {
  std::vector<Frame> larger(frames_.empty() ? 8 : frames_.size() * 2);
  for (std::uint64_t i = told_; i < tail_; ++i) larger[i & (larger.size() - 1)] = std::move(at(i));
  frames_ = std::move(larger);
}

FrameQueue::Frame& FrameQueue::push(const FrameHeader& header) {
  TRIBUTARY_ASSERT(told_ <= sent_ && sent_ <= tail_, "{} frames are reported, {} sent, {} queued", told_, sent_, tail_);
  if (tail_ - told_ == frames_.size()) grow();
  Frame& frame = at(tail_++);
  frame.header = header;
  frame.payload = {};
  frame.borrowed = false;
  frame.fetching = frame.writing = false;
  frame.parted = 0;
  return frame;
}

void FrameQueue::sent(bool fetching) noexcept {
  TRIBUTARY_ASSERT(sent_ < tail_, "frame {} is sent, and {} were queued", sent_, tail_);
  at(sent_++).fetching = fetching;
  if (fetching) ++being_fetched_;
}

void FrameQueue::written(std::uint32_t queue_pair, std::uint32_t position) noexcept {
  TRIBUTARY_ASSERT(sent_ < tail_, "frame {} is written, and {} were queued", sent_, tail_);
  Frame& frame = at(sent_++);
  frame.writing = true;
  frame.written_on = queue_pair;
  frame.written_at = position;
}

void FrameQueue::fetched() noexcept {
  TRIBUTARY_ASSERT(being_fetched_ > 0, "a payload was fetched, and none of {} frames was offered", sent_);
  while (!at(fetched_).fetching) ++fetched_;
  Frame& frame = at(fetched_++);
  frame.fetching = false;
  frame.registration.reset();
  --being_fetched_;
}

FrameQueue::Done FrameQueue::take_oldest() noexcept {
  TRIBUTARY_ASSERT(told_ < sent_, "frame {} is reported, and {} were sent", told_, sent_);
  Frame& frame = at(told_++);
  if (fetched_ < told_) fetched_ = told_;
  frame.registration.reset();
  if (frame.copy.capacity() > kCopyBytesKept) std::vector<std::byte>().swap(frame.copy);
  if (!frame.borrowed) return Done{};
  TRIBUTARY_ASSERT(borrowed_ > 0, "frame {} is reported as sent, and none is borrowed", told_ - 1);
  --borrowed_;
  return Done{frame.cookie};
}

void FrameQueue::clear() noexcept {
  for (Frame& frame : frames_) frame.registration.reset();
  told_ = fetched_ = sent_ = tail_;
  borrowed_ = being_fetched_ = 0;
}

}  // namespace tributary::transport::verbs
