#pragma once
// Finds out whether a child's aggregator still works when no results come: the child asks by a frame, which the
// aggregator's worker answers at once, even while it waits for a slow child. So a slow rank never looks like a hung
// aggregator. While results come, the child asks nothing and reads no clock.
//
// Only the time between two looks that came when they were due counts: a thread that stood still or got no core cannot
// tell that another was late. The limit grows with the measured round trips, as TCP's time-out does (RFC 6298), and
// with the bytes sent before the question, which must arrive before it.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

namespace tributary {

struct LanePulseSettings {
  /// An aggregator that has not answered for this time hangs or cannot be reached. 0: the child never asks.
  std::chrono::nanoseconds limit = std::chrono::milliseconds(500);
  /// The child asks after this time without a frame from its aggregator.
  std::chrono::nanoseconds quiet = std::chrono::milliseconds(150);
};

/// One thread owns it, and calls look() every 50 ms or more often.
class LanePulse {
 public:
  using Clock = std::chrono::steady_clock;
  using Duration = std::chrono::nanoseconds;
  enum class Verdict : std::uint8_t {
    wait,
    ask,   // send the question now
    dead,  // the limit has passed since the question
  };

  explicit LanePulse(const LanePulseSettings& settings) : settings_(settings) {}

  /// Call it when any frame comes from the aggregator.
  void heard() noexcept { heard_ = true; }
  /// `waits`: a frame is to come from the aggregator. `bytes`: how many sent bytes may still be on the way to it.
  [[nodiscard]] Verdict look(Clock::time_point now, bool waits, std::uint64_t bytes) noexcept {
    const Duration since = now - std::exchange(looked_at_, now);
    if (std::exchange(heard_, false) || !waits || settings_.limit == Duration::zero()) {
      if (asked_ && waits) note_round_trip(waited_);
      asked_ = false;
      waited_ = {};
      return Verdict::wait;
    }
    if (since > kLookLongest) return Verdict::wait;  // this thread was away
    waited_ += since;
    if (!asked_ && waited_ >= settings_.quiet) {
      asked_ = true;
      waited_ = {};
      return Verdict::ask;
    }
    return asked_ && waited_ >= limit(bytes) ? Verdict::dead : Verdict::wait;
  }
  /// Returns how long an answer may take.
  [[nodiscard]] Duration limit(std::uint64_t bytes) const noexcept {
    return std::max(settings_.limit, smoothed_ + 4 * variation_) + Duration(bytes * kNanosecondsPerByte);
  }

 private:
  static constexpr Duration kLookLongest = std::chrono::milliseconds(150);
  static constexpr std::uint64_t kNanosecondsPerByte = 8;  // of a link of 1 Gbit/s

  void note_round_trip(Duration sample) noexcept {
    const Duration off = sample > smoothed_ ? sample - smoothed_ : smoothed_ - sample;
    variation_ += (off - variation_) / 4;
    smoothed_ += (sample - smoothed_) / 8;
  }

  const LanePulseSettings settings_;
  Clock::time_point looked_at_{};
  Duration waited_{};  // since the last frame, or since the question
  Duration smoothed_{}, variation_{};
  bool heard_ = false;
  bool asked_ = false;
};

}  // namespace tributary
