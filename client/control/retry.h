#pragma once
// Decides when to try again to make a connection that has failed, or that ended before both sides had proved
// themselves. The first attempts follow soon, later attempts after longer and longer pauses. The caller decides when to
// stop.
#include <algorithm>
#include <cstdint>

#include "tributary/transport/channel.h"

namespace tributary::client {

class Retry {
 public:
  Retry(transport::Duration first, transport::Duration last) : next_(first), last_(last) {}
  /// Notes that an attempt has failed.
  void failed(transport::TimePoint now) noexcept {
    due_ = now + next_;
    next_ = std::min(2 * next_, last_);
    ++failures_;
  }
  /// Returns true once when the time for the next attempt has come.
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
