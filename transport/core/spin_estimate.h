#pragma once
// Whether a wait is worth spinning for, told by how the last ones went.
#include <sched.h>

#include <utility>

#include "tributary/transport/channel.h"

namespace tributary::transport {

/// A moving share of the waits that a spin would have caught. Spinning goes on while three of four were; so where
/// nothing comes soon, or others need the core, it costs next to nothing, and it is found again once answers are quick.
class SpinEstimate {
 public:
  explicit SpinEstimate(Duration spin_max) noexcept : spin_max_(spin_max) {}
  /// How long to spin before sleeping.
  [[nodiscard]] Duration spin() const noexcept { return caught_ >= kWorthIt ? spin_max_ : Duration::zero(); }
  /// A wait was over after so long; `core_wanted`: others took the core meanwhile.
  void waited(Duration length, bool core_wanted) noexcept {
    const int sample = length < spin_max_ && !core_wanted ? kAll : 0;
    caught_ += (sample - caught_) / kWeight;
  }

 private:
  static constexpr int kAll = 1 << 16;
  static constexpr int kWorthIt = kAll / 4 * 3;
  static constexpr int kWeight = 8;
  Duration spin_max_;
  int caught_ = 0;
};

/// Lets others have the core. True: they took it for longer than the call takes. `now` is the time after it.
inline bool yielded_to_others(TimePoint& now) noexcept {
  // sched_yield() takes less than a microsecond while nobody else wants the core.
  constexpr Duration kYieldedMax = std::chrono::microseconds(10);
  ::sched_yield();
  const TimePoint before = std::exchange(now, Clock::now());
  return now - before > kYieldedMax;
}

}  // namespace tributary::transport
