#pragma once
// Decides when to try a connection again that could not be made, or ended before both sides had proved themselves: soon
// at first, then ever more rarely. The caller decides when to stop.
#include <algorithm>
#include <cstdint>

#include "tributary/transport/channel.h"

namespace tributary::client {

class Retry {
 public:
  Retry(transport::Duration first, transport::Duration last) : next_(first), last_(last) {}
  /// Call when an attempt has failed.
  void failed(transport::TimePoint now) noexcept {
    due_ = now + next_;
    next_ = std::min(2 * next_, last_);
    ++failures_;
  }
  /// Returns true once when it is time for the next attempt.
  [[nodiscard]] bool take_due(transport::TimePoint now) noexcept {
    if (now < due_) return false;
    due_ = transport::TimePoint::max();
    return true;
  }
  [[nodiscard]] std::uint32_t failures() const noexcept { return failures_; }

 private:
  transport::Duration next_;
  transport::Duration last_;
  transport::TimePoint due_ = transport::TimePoint::max();
  std::uint32_t failures_ = 0;
};

}  // namespace tributary::client
