#include "transport/packet/congestion.h"

#include <algorithm>
#include <cmath>

#include "tributary/protocol/assert.h"

namespace tributary::transport::packet {
namespace {

// Swift's parameters, section 3 of the paper.
constexpr double kIncrease = 1;    // packets by which the window grows per round trip
constexpr double kDecrease = 0.8;  // beta: factor of the delay's excess over the target
constexpr double kDecreaseMax = 0.5;
constexpr double kScalingWindowMin = 0.1;
constexpr double kScalingWindowMax = 100;
// DCTCP's weight g of a new share: RFC 8257, section 4.2.
constexpr double kShareGain = 1.0 / 16;
// A share below this counts as 0. Without this bound the share would go on shrinking while no packet is marked, and a
// processor takes a hundred cycles and more for such tiny (subnormal) numbers.
constexpr double kShareMin = 1e-9;
constexpr double kAlmostNoWindow = 10;
constexpr int kRoundTripsAbove = 16;
// The longest pause of a sender that has almost no window: it must notice soon that the network is free again.
constexpr Duration kPaceMax = std::chrono::milliseconds(20);

}  // namespace

Congestion::Congestion(const CongestionSettings& settings) noexcept
    : settings_(settings), window_(settings.window_initial) {
  scaling_alpha_ = settings_.scaling_max / (1 / std::sqrt(kScalingWindowMin) - 1 / std::sqrt(kScalingWindowMax));
  scaling_beta_ = -scaling_alpha_ / std::sqrt(kScalingWindowMax);
}

Duration Congestion::target() const noexcept {
  const double scaling = std::clamp(scaling_alpha_ / std::sqrt(window_) + scaling_beta_, 0.0, settings_.scaling_max);
  return path_ + std::chrono::duration_cast<Duration>(settings_.target * (1 + scaling));
}

void Congestion::learn_path(Duration delay, Duration wanted, TimePoint now, Duration round_trip) noexcept {
  if (delay < path_) path_ = delay > settings_.target ? delay : Duration(0);
  if (delay <= wanted || window_ > kAlmostNoWindow) {
    above_since_ = TimePoint::max();
    least_above_ = Duration::max();
    return;
  }
  least_above_ = std::min(least_above_, delay);
  above_since_ = std::min(above_since_, now);
  if (now - above_since_ < round_trip * kRoundTripsAbove) return;
  path_ = least_above_;
  slow_start_ = true;  // the window that the network can carry is unknown again
  above_since_ = TimePoint::max();
  least_above_ = Duration::max();
}

void Congestion::observe(double packets, double marked, TimePoint now, Duration round_trip) noexcept {
  seen_ += packets;
  seen_marked_ += marked;
  if (now < observed_until_) return;
  if (seen_ > 0) share_ += kShareGain * (std::min(seen_marked_ / seen_, 1.0) - share_);
  if (share_ < kShareMin) share_ = 0;
  seen_ = seen_marked_ = 0;
  observed_until_ = now + round_trip;
  TRIBUTARY_ASSERT(share_ >= 0 && share_ <= 1, "a share of {} packets is marked", share_);
}

void Congestion::shrink(double by, double to_at_least, TimePoint now, Duration round_trip) noexcept {
  slow_start_ = false;
  if (now < may_shrink_) return;
  window_ = std::min(window_, std::max({window_ * (1 - by), settings_.window_min, to_at_least}));
  may_shrink_ = now + round_trip;
}

void Congestion::acknowledged(double packets, double marked, Duration delay, bool limited, TimePoint now,
                              Duration round_trip) {
  observe(packets, marked, now, round_trip);
  // The target is never less than this value, so most calls need not compute the target.
  const Duration least = path_ + settings_.target;
  const Duration wanted = delay <= least ? least : target();
  if (delay > Duration::zero()) learn_path(delay, wanted, now, round_trip);
  const double by_marks = marked > 0 && window_ > 1 ? share_ / 2 : 0;
  if (delay > wanted) {
    const double excess =
        static_cast<double>((delay - wanted).count()) / static_cast<double>(std::max<Duration::rep>(delay.count(), 1));
    return shrink(std::max(by_marks, std::min(kDecrease * excess, kDecreaseMax)), 0, now, round_trip);
  }
  if (by_marks > 0) return shrink(by_marks, 1, now, round_trip);
  if (!limited) return;
  if (slow_start_) {
    window_ += packets;
  } else {
    window_ += window_ >= 1 ? kIncrease * packets / window_ : kIncrease * packets;
  }
  window_ = std::min(window_, settings_.window_max);
  TRIBUTARY_ASSERT(window_ > 0, "the window is {} packets", window_);
}

void Congestion::lost(double packets, TimePoint now, Duration round_trip) {
  observe(packets, packets, now, round_trip);
  shrink(share_ / 2, 0, now, round_trip);
}

void Congestion::timed_out(std::uint32_t in_a_row, TimePoint now) noexcept {
  slow_start_ = false;
  if (in_a_row < 2) return;  // the first time-out only sends a question, whose answer shows the losses
  window_ = in_a_row == 2 ? std::min(window_, 1.0) : std::max(window_ / 2, settings_.window_min);
  may_shrink_ = now;
}

Duration Congestion::pace(Duration round_trip) const noexcept {
  if (window_ >= 1) return Duration::zero();
  TRIBUTARY_ASSERT(window_ > 0, "packets are paced by a window of {}", window_);
  return std::min(std::chrono::duration_cast<Duration>(round_trip / window_), kPaceMax);
}

}  // namespace tributary::transport::packet
