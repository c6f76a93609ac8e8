#pragma once
// Tells from the last waits whether spinning pays in the next one.
#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "tributary/protocol/assert.h"
#include "tributary/transport/channel.h"

namespace tributary::transport::turn {

/// After this number of short looks that find nothing, the thread offers its core to other threads.
inline constexpr std::uint32_t kLooksPerOffer = 4;

/// One thread's waits, one after the other. A wait spins for up to `spin_max` of its own time before it sleeps, and
/// offers the core to other threads between its looks. It does so only while three of the last four waits ended before
/// the thread slept. So a thread with long waits rarely spins.
///
/// Where processes outnumber cores, the process that gets the core is often the process for which this thread waits. To
/// look again when the core comes back is then cheaper, for both, than to sleep and be woken. But where the other
/// processes compute, they keep the core for a time slice, and a sleep is cheaper. Only a trial tells these cases
/// apart. So now and then a thread tries to stay awake in a wait; after each failure it tries more rarely.
class SpinEstimate {
 public:
  explicit SpinEstimate(Duration spin_max, std::uint32_t looks_per_offer = kLooksPerOffer) noexcept
      : spin_max_(spin_max), looks_per_offer_(looks_per_offer) {}

  void begin(TimePoint now) noexcept {
    started_ = now;
    away_ = Duration::zero();
    slept_ = false;
    until_ = now + (spins() ? spin_max_ : Duration::zero());
  }
  /// Says whether to look again (true) or to sleep (false).
  [[nodiscard]] bool stays_awake(TimePoint now) const noexcept { return now < until_; }
  /// Offers the core to other threads, after a look that found nothing. If other threads wanted the core lately, it
  /// does so at every look, else only at some looks, because the offer takes longer than a look. `now` becomes the time
  /// after the offer, by `time()`.
  template <class Time>
  void offer_core(TimePoint& now, Time time) {
    if (!crowded_ && ++looks_ % looks_per_offer_ != 0) return;
    ::sched_yield();
    const TimePoint before = std::exchange(now, time());
    was_away(now - before, now);
  }
  /// Notes that an offer took `length`, until `now`.
  void was_away(Duration length, TimePoint now) noexcept {
    if (length <= kOfferMax) return;
    crowded_ = true;
    away_ += length;
    until_ = length > kAwayOnceMax || away_ > kAwayMax ? now : until_ + length;
  }
  void sleeps() noexcept { slept_ = true; }
  /// Notes the end of a wait. `in_vain`: the wait's time was over before any event came.
  void end(TimePoint now, bool in_vain) noexcept {
    if (spin_max_ <= Duration::zero()) return;
    const Duration length = in_vain ? Duration::max() : now - started_;
    const bool awake = !in_vain && (slept_ ? length < spin_max_ : away_ <= kAwayMax);
    crowded_ = away_ > Duration::zero();
    learn(awake);
    if (spins()) {
      waits_ = 0;
    } else if (length < kAwayMax && ++waits_ >= trial_after_) {
      begin_trial();
    }
  }
  /// True if the next wait begins awake.
  [[nodiscard]] bool spins() const noexcept { return caught_ >= kWorthIt && spin_max_ > Duration::zero(); }

 private:
  void learn(bool awake) noexcept {
    caught_ += ((awake ? kAll : 0) - caught_) / kWeight;
    TRIBUTARY_ASSERT(caught_ >= 0 && caught_ <= kAll, "a share of {} in {} waits was over awake", caught_, kAll);
    if (std::exchange(trying_, false) && !awake) {
      caught_ = 0;
      trial_after_ = std::min(trial_after_ * 2, kTrialAfterMax);
    }
    successes_ = awake ? std::min(successes_ + 1, kSuccessesMin) : 0;
    if (successes_ == kSuccessesMin) trial_after_ = kTrialAfterMin;
    TRIBUTARY_ASSERT(trial_after_ >= kTrialAfterMin && trial_after_ <= kTrialAfterMax,
                     "a wait is tried awake after {} others, not {} to {}", trial_after_, kTrialAfterMin,
                     kTrialAfterMax);
  }
  /// Begins a trial: after a success it goes on, and after a failure it ends.
  void begin_trial() noexcept {
    waits_ = 0;
    trying_ = true;
    caught_ = kWorthIt;
  }

  static constexpr int kAll = 1 << 16;
  static constexpr int kWorthIt = kAll / 4 * 3;
  static constexpr int kWeight = 8;
  static constexpr std::uint32_t kTrialAfterMin = 32,
                                 kTrialAfterMax = 8192;  // short waits that slept
  static constexpr std::uint32_t kSuccessesMin = 32;
  // sched_yield() takes less than a microsecond if no other thread wants the core.
  static constexpr Duration kOfferMax = std::chrono::microseconds(10);
  // A process that this thread waits for gives the core back soon; a process that computes keeps it for milliseconds.
  static constexpr Duration kAwayOnceMax = std::chrono::microseconds(250);
  static constexpr Duration kAwayMax = std::chrono::microseconds(500);

  Duration spin_max_;
  std::uint32_t looks_per_offer_;
  // State of this wait
  TimePoint started_, until_;
  Duration away_{};  // time in which other threads had the core
  bool slept_ = false;
  // State of earlier waits
  bool crowded_ = false;     // other threads wanted the core in the last wait or this wait
  bool trying_ = false;      // this wait is a trial
  int caught_ = 0;           // moving share of waits that were, or would have been, over before a sleep
  std::uint32_t looks_ = 0;  // number of looks that found nothing
  std::uint32_t waits_ = 0;  // number of waits since the last trial
  std::uint32_t successes_ = 0;
  std::uint32_t trial_after_ = kTrialAfterMin;
};

}  // namespace tributary::transport::turn
