#pragma once
// Finds times in which the manager itself did not run: it was stopped, its machine was moved, or the store blocked it.
// No holder could renew a lease in such a time, so every lease lasts longer by this time.
#include <chrono>
#include <utility>

#include "tree-manager/service/clock.h"

namespace tributary::manager {

/// The manager calls look() several times a second. One thread at a time may call it.
class Standstill {
 public:
  /// Returns the time for which the manager stood still before this call, which is mostly zero.
  [[nodiscard]] Clock::TimePoint::duration look(Clock::TimePoint now) noexcept {
    const Clock::TimePoint before = std::exchange(looked_at_, now);
    const bool away = before != Clock::TimePoint{} && now - before >= kShortest;
    return away ? now - before : Clock::TimePoint::duration::zero();
  }

 private:
  // The least time that counts: longer than the pause between two looks on a loaded machine, and no longer than the
  // shortest lease.
  static constexpr std::chrono::seconds kShortest{1};
  Clock::TimePoint looked_at_{};
};

}  // namespace tributary::manager
