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
  /// ranks meet, and at the end, every other rank waits by that much longer than rank 0. `so_far`: how long this
  /// process was away since the ranks began to meet.
  explicit OwnAbsence(transport::Duration timeout, transport::Duration so_far = {}) noexcept
      : noticed_(timeout / 20),
        lasts_(std::max<transport::Duration>(timeout / 10, std::chrono::seconds(1))),
        time_(so_far) {}
  /// Notes that this process was away for `absence` until now. Absences in close succession count as one.
  void add(transport::Duration absence, transport::TimePoint now) noexcept {
    time_ = absence + (begun_ ? of(now - absence) : time_);
    until_ = now;
  }
  /// Notes that the ranks begin now. Until then all absences count together, however long ago they were: a rank waits
  /// for one time-out from its first try to meet until it begins.
  void begin(transport::TimePoint now) noexcept {
    begun_ = true;
    until_ = now;
  }
  /// Returns how long this process was away recently, if this can be the reason why other ranks are gone; else zero.
  [[nodiscard]] transport::Duration of(transport::TimePoint now) const noexcept {
    const bool recent = !begun_ || now - until_ <= lasts_;
    return time_ >= noticed_ && recent ? time_ : transport::Duration::zero();
  }

 private:
  const transport::Duration noticed_, lasts_;
  transport::Duration time_;
  transport::TimePoint until_{};
  bool begun_ = false;  // the ranks have met, and have begun
};

}  // namespace tributary::client
