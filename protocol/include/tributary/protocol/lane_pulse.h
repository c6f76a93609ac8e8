#pragma once
// Finds out whether the next one up a lane still works, where results do not come: a rank asks its aggregator, an
// aggregator its parent, by a frame that the worker's own loop answers at once, even while it waits for a slow child.
// So a slow rank never looks like a hung aggregator. While results come nothing is asked, and no clock is read.
//
// Time counts only as looks that came when they were due: who stood still, or got no core, cannot tell who else was
// late. The limit grows with the round trips that were seen, as TCP's time-out does (RFC 6298), and with what was sent
// before the question and must arrive before it.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

namespace tributary {

struct LanePulseSettings {
  /// No answer for so long, at least: it hangs, or the way to it is dead. 0: nothing is ever asked.
  std::chrono::nanoseconds limit = std::chrono::milliseconds(500);
  /// Nothing came for so long: ask.
  std::chrono::nanoseconds quiet = std::chrono::milliseconds(150);
};

/// One thread. Looks are due every 50 ms or more often.
class LanePulse {
 public:
  using Clock = std::chrono::steady_clock;
  using Duration = std::chrono::nanoseconds;
  enum class Verdict : std::uint8_t {
    wait,
    ask,   // send the question now
    dead,  // the limit has passed since
  };

  explicit LanePulse(const LanePulseSettings& settings) : settings_(settings) {}

  /// Something came from there: a result, an answer, whatever.
  void heard() noexcept { heard_ = true; }
  /// `waits`: something is to come. `bytes`: of ours that may still be on the way there.
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
  /// How long an answer may take.
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
  Duration waited_{};  // since the last sign of life, or the question
  Duration smoothed_{}, variation_{};
  bool heard_ = false;
  bool asked_ = false;
};

}  // namespace tributary
