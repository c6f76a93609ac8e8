#include "client/collectives/fallback/sent_frames.h"

#include <algorithm>
#include <iterator>

#include "tributary/protocol/assert.h"

namespace tributary::client {

std::uint64_t SentFrames::sent() {
  TRIBUTARY_ASSERT(confirmed_ < frames_.size(), "frame {} of {} was sent", confirmed_, frames_.size());
  PeerFrame& frame = frames_[confirmed_];
  ++confirmed_;
  const std::uint64_t cookie = frame.cookie;
  frame.told = true;
  const bool may_be_lost = first_ + confirmed_ > taken_ && frame.payload.size() <= early_bytes_max_;
  if (may_be_lost && !frame.payload.empty()) {
    if (!spare_.empty()) {
      frame.kept = std::move(spare_.back());
      spare_.pop_back();
    }
    frame.kept.assign(frame.payload.begin(), frame.payload.end());
    frame.payload = frame.kept;
  }
  forget_taken();
  return cookie;
}

bool SentFrames::taken(std::uint64_t count) {
  if (count > first_ + frames_.size()) return false;
  taken_ = std::max(taken_, count);
  forget_taken();
  return true;
}

/// Keeps frames that the channel has not reported as sent, even if the other side has taken them: the channel may still
/// read them.
void SentFrames::forget_taken() {
  while (first_ < taken_ && confirmed_ > 0) {
    if (frames_.front().kept.capacity() > 0) spare_.push_back(std::move(frames_.front().kept));
    frames_.pop_front();
    ++first_;
    --confirmed_;
  }
}

std::optional<std::vector<std::uint64_t>> SentFrames::go_on_from(std::uint64_t count, std::deque<PeerFrame>& pending) {
  if (count < taken_ || count > first_ + frames_.size()) return std::nullopt;
  std::vector<std::uint64_t> cookies;
  for (; first_ < count; ++first_) {
    if (!frames_.front().told) cookies.push_back(frames_.front().cookie);
    frames_.pop_front();
  }
  // True if the transport has broken its promise: the caller believes that the frame is sent, but it is not kept.
  const auto lost = [](const PeerFrame& frame) { return frame.told && frame.payload.size() != frame.kept.size(); };
  if (std::ranges::any_of(frames_, lost)) return std::nullopt;
  pending.insert(pending.begin(), std::make_move_iterator(frames_.begin()), std::make_move_iterator(frames_.end()));
  frames_.clear();
  confirmed_ = 0;
  spare_.clear();
  return cookies;
}

}  // namespace tributary::client
