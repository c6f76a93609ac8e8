#pragma once
// Remembers that rank 0 itself stood still for a time, which no other rank can know. If ranks are gone soon afterwards,
// this may be the reason: they have a time-out for rank 0 as for every other rank.
#include <algorithm>
#include <chrono>

#include "tributary/transport/channel.h"

namespace tributary::client {

class OwnAbsence {
 public:
  /// `timeout` is the time-out of operations. An absence of less than a twentieth of that time harms no rank: while
  /// ranks meet, and at the end, every other rank waits by that much longer than rank 0.
  explicit OwnAbsence(transport::Duration timeout) noexcept
      : noticed_(timeout / 20), lasts_(std::max<transport::Duration>(timeout / 10, std::chrono::seconds(1))) {}
  /// Notes that this process was away for `absence` until now. Absences in close succession count as one.
  void add(transport::Duration absence, transport::TimePoint now) noexcept {
    time_ = absence + of(now - absence);
    until_ = now;
  }
  /// Returns how long this process was away recently, if this can be the reason why other ranks are gone; else zero.
  [[nodiscard]] transport::Duration of(transport::TimePoint now) const noexcept {
    return time_ >= noticed_ && now - until_ <= lasts_ ? time_ : transport::Duration::zero();
  }

 private:
  const transport::Duration noticed_, lasts_;
  transport::Duration time_{};
  transport::TimePoint until_{};
};

}  // namespace tributary::client
