#pragma once
// Decides whether operations that become slow end the rest of a class of sizes, for size_class.h.
#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "client/tuning/adaptation.h"
#include "client/tuning/choice.h"

namespace tributary::tuning {

/// An alarm begins a round of trials. If the round leaves the choice as it was, the alarm was in vain: all paths became
/// slow, for example because other jobs use the hosts' processors. The alarm then waits, and each time twice as long. A
/// time that is clearly longer than in all vain alarms rings at once.
class Alarm {
 public:
  using TimePoint = Adaptation::TimePoint;
  using Duration = Adaptation::Duration;

  /// If operations become slower by this factor than when the choice was made, the class ends its rest.
  static constexpr double kWorse = 1.25;

  /// Returns whether operations of this time, which are slow, may ring now.
  [[nodiscard]] bool may_ring(double time_us, TimePoint now) const noexcept {
    return now >= from_ || time_us > kWorse * vain_us_;
  }
  /// Notes that a round of trials begins, because operations of `choice` took this time.
  void ring(const Choice& choice, double time_us) noexcept {
    rang_for_ = choice;
    rang_at_us_ = time_us;
  }
  /// Notes that a round of trials has ended with `choice`.
  void round_ended(const Choice& choice, TimePoint now) noexcept {
    if (!rang_for_) return;
    if (*std::exchange(rang_for_, std::nullopt) != choice) {
      *this = {};
      return;
    }
    vain_us_ = now < from_ ? std::max(vain_us_, rang_at_us_) : rang_at_us_;
    from_ = now + std::exchange(wait_, std::min<Duration>(2 * wait_, Adaptation::kRestLast));
  }

 private:
  std::optional<Choice> rang_for_;
  double rang_at_us_ = 0;
  double vain_us_ = 0;  // the longest time in a vain alarm since the alarm last waited in full
  TimePoint from_{};    // time from which on any slow operations may ring
  Duration wait_ = Adaptation::kRestFirst;
};

}  // namespace tributary::tuning
