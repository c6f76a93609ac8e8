#pragma once
// A clock that leaves out the times for which this process was away: these times do not count as waiting.
#include "client/operation/absences.h"

namespace tributary::client {

/// The clock of one communicator; one thread uses it.
class Clock {
 public:
  using Duration = transport::Duration;
  using TimePoint = transport::TimePoint;

  /// Returns the time of the last look().
  [[nodiscard]] TimePoint now() const noexcept { return now_; }
  /// Returns how long this process was away since the last look(): it could receive no message meanwhile.
  [[nodiscard]] Duration look(TimePoint now) noexcept {
    now_ = now;
    return absences_.look(now);
  }
  /// Returns the moment after which this process has run for `time` in total.
  [[nodiscard]] TimePoint ago(Duration time) const noexcept { return absences_.ago(time, now_); }
  /// Returns whether this process has run, and so has waited, for `time` since the moment `since`.
  [[nodiscard]] bool waited(TimePoint since, Duration time) const noexcept { return since <= ago(time); }
  /// Returns how long this process was away since ago(time).
  [[nodiscard]] Duration away_within(Duration time) const noexcept { return now_ - ago(time) - time; }

 private:
  TimePoint now_{};
  Absences absences_;
};

}  // namespace tributary::client
