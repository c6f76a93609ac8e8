#pragma once
// For how long a rank waits for the others of its host to meet. Time in which its own process stood still does not
// count: what the others did meanwhile has not been looked at.
#include <algorithm>
#include <chrono>

#include "client/operation/absences.h"

namespace tributary::client::local {

class Patience {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::nanoseconds;
  /// Look so often at least, or what you did meanwhile is taken for an absence.
  static constexpr std::chrono::milliseconds kLook{100};

  /// `stop`: a descriptor that ends the wait when it can be read; -1: none.
  Patience(Duration limit, int stop, TimePoint now = std::chrono::steady_clock::now()) noexcept
      : since_(now), limit_(limit), stop_(stop) {
    absences_.begin(now);
  }
  /// The rest of it, zero if none is left. A look at the clock.
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
