#pragma once
// The time as this process has lived it: what it was away for counts as waiting for nobody.
#include "client/operation/absences.h"

namespace tributary::client {

/// One thread.
class Clock {
 public:
  using Duration = transport::Duration;
  using TimePoint = transport::TimePoint;

  /// Returns the time of the last look.
  [[nodiscard]] TimePoint now() const noexcept { return now_; }
  /// Returns how long this process was away just before `now`: what was due meanwhile could not come.
  [[nodiscard]] Duration look(TimePoint now) noexcept {
    now_ = now;
    return absences_.look(now);
  }
  /// The moment from which until now this process has been there for `time`.
  [[nodiscard]] TimePoint ago(Duration time) const noexcept { return absences_.ago(time, now_); }
  /// Since then this process has been there, and has waited, for so long.
  [[nodiscard]] bool waited(TimePoint since, Duration time) const noexcept { return since <= ago(time); }
  /// How long this process was away within the last `time` that it was there.
  [[nodiscard]] Duration away_within(Duration time) const noexcept { return now_ - ago(time) - time; }

 private:
  TimePoint now_{};
  Absences absences_;
};

}  // namespace tributary::client
