#pragma once
// Remembers that rank 0 itself stood still for a while, which no other rank can see. For some time afterwards, that may
// be why ranks are gone: they wait for rank 0 no longer than for other ranks.
#include <algorithm>
#include <chrono>

#include "tributary/transport/channel.h"

namespace tributary::client {

class OwnAbsence {
 public:
  /// `timeout` is the time-out of operations. An absence of less than a twentieth of it harms no rank.
  explicit OwnAbsence(transport::Duration timeout) noexcept
      : noticed_(timeout / 20), lasts_(std::max<transport::Duration>(timeout / 10, std::chrono::seconds(1))) {}
  /// Notes that this process was away for `absence` until now. Absences in close succession count as one.
  void add(transport::Duration absence, transport::TimePoint now) noexcept {
    time_ = absence + of(now - absence);
    until_ = now;
  }
  /// Returns how long this process was away recently, if that explains that others are gone; zero otherwise.
  [[nodiscard]] transport::Duration of(transport::TimePoint now) const noexcept {
    return time_ >= noticed_ && now - until_ <= lasts_ ? time_ : transport::Duration::zero();
  }

 private:
  const transport::Duration noticed_, lasts_;
  transport::Duration time_{};
  transport::TimePoint until_{};
};

}  // namespace tributary::client
