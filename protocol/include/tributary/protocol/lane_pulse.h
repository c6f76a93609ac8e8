#pragma once
// Finds out whether a child's aggregator still works when no results come. The child sends an `ask` frame, which the
// aggregator's worker answers at once, even while it waits for a slow child. So a slow rank never looks like a hung
// aggregator. While results come, the child sends no question and reads no clock.
//
// The time between two looks counts only if the second look was not late: a thread that stood still or got no core
// cannot know that another process was late. The limit grows with the measured round trips, as TCP's time-out does (RFC
// 6298), and with the bytes that were sent before the question, because they arrive before it.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

namespace tributary {

struct LanePulseSettings {
  /// The time without an answer after which an aggregator counts as hung or unreachable. 0: the child never asks.
  std::chrono::nanoseconds limit = std::chrono::milliseconds(500);
  /// The child asks after this time without a frame from its aggregator.
  std::chrono::nanoseconds quiet = std::chrono::milliseconds(150);
};

/// The state of one child's questions. One thread owns it, and calls look() at least every 50 ms.
class LanePulse {
 public:
  using Clock = std::chrono::steady_clock;
  using Duration = std::chrono::nanoseconds;
  enum class Verdict : std::uint8_t {
    wait,
    ask,   // send the question now
    dead,  // no answer has come within the limit
  };

  explicit LanePulse(const LanePulseSettings& settings) : settings_(settings) {}

  /// Notes that a frame has come from the aggregator.
  void heard() noexcept { heard_ = true; }
  /// Checks the time. `waits`: the child waits for a frame. `bytes`: sent bytes that may still be on their way.
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
  static constexpr std::uint64_t kNanosecondsPerByte = 8;  // time of a byte on a link of 1 Gbit/s

  void note_round_trip(Duration sample) noexcept {
    const Duration off = sample > smoothed_ ? sample - smoothed_ : smoothed_ - sample;
    variation_ += (off - variation_) / 4;
    smoothed_ += (sample - smoothed_) / 8;
  }

  const LanePulseSettings settings_;
  Clock::time_point looked_at_{};
  Duration waited_{};  // time since the last frame, or since the question
  Duration smoothed_{}, variation_{};
  bool heard_ = false;
  bool asked_ = false;
};

}  // namespace tributary
