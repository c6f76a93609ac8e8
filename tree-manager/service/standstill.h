#pragma once
// Finds times in which the manager itself did not run: it was stopped, its machine was moved, or the store held it up.
// Nobody could renew a lease then, so every lease lasts longer by that time.
#include <chrono>
#include <utility>

#include "tree-manager/service/clock.h"

namespace tributary::manager {

/// The manager calls look() several times a second. One thread at a time.
class Standstill {
 public:
  /// Returns how long the manager stood still just before; mostly zero.
  [[nodiscard]] Clock::TimePoint::duration look(Clock::TimePoint now) noexcept {
    const Clock::TimePoint before = std::exchange(looked_at_, now);
    const bool away = before != Clock::TimePoint{} && now - before >= kShortest;
    return away ? now - before : Clock::TimePoint::duration::zero();
  }

 private:
  // Longer than the pause between two looks on a loaded machine, and no longer than the shortest lease.
  static constexpr std::chrono::seconds kShortest{1};
  Clock::TimePoint looked_at_{};
};

}  // namespace tributary::manager
