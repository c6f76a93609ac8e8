#pragma once
// The time for which a rank waits for the other ranks of its host to meet. Time in which its own process stood still
// does not count: the process could not see the other ranks come meanwhile.
#include <algorithm>
#include <chrono>

#include "client/operation/absences.h"

namespace tributary::client::local {

class Patience {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::nanoseconds;
  /// Call left() at least this often: Absences takes a long time between two calls for an absence.
  static constexpr std::chrono::milliseconds kLook{100};

  /// `stop` is a descriptor that ends the wait when it can be read; -1: none.
  Patience(Duration limit, int stop, TimePoint now = std::chrono::steady_clock::now()) noexcept
      : since_(now), limit_(limit), stop_(stop) {
    absences_.begin(now);
  }
  /// Records that the process runs at `now`, and returns the rest of the time; zero if no time is left.
  [[nodiscard]] Duration left(TimePoint now) noexcept {
    absences_.look(now);
    return std::max<Duration>(since_ - absences_.ago(limit_, now), Duration::zero());
  }
  [[nodiscard]] int stop() const noexcept { return stop_; }

 private:
  const TimePoint since_;
  const Duration limit_;
  const int stop_;
  Absences absences_;
};

}  // namespace tributary::client::local
