#pragma once
// A clock that leaves out the times for which this process was away: they count for no wait.
#include "client/operation/absences.h"

namespace tributary::client {

/// For one thread.
class Clock {
 public:
  using Duration = transport::Duration;
  using TimePoint = transport::TimePoint;

  /// Returns the time of the last look.
  [[nodiscard]] TimePoint now() const noexcept { return now_; }
  /// Returns how long this process was away since the last look: nothing could arrive meanwhile.
  [[nodiscard]] Duration look(TimePoint now) noexcept {
    now_ = now;
    return absences_.look(now);
  }
  /// Returns the moment since when this process has run for `time` in all.
  [[nodiscard]] TimePoint ago(Duration time) const noexcept { return absences_.ago(time, now_); }
  /// Returns whether this process has run, and so has waited, for `time` since then.
  [[nodiscard]] bool waited(TimePoint since, Duration time) const noexcept { return since <= ago(time); }
  /// Returns how long this process was away since ago(time).
  [[nodiscard]] Duration away_within(Duration time) const noexcept { return now_ - ago(time) - time; }

 private:
  TimePoint now_{};
  Absences absences_;
};

}  // namespace tributary::client
