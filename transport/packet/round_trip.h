#pragma once
// Measured round trips, and the time-outs that follow from them (RFC 6298).
#include <algorithm>

#include "tributary/protocol/assert.h"
#include "tributary/transport/channel.h"

namespace tributary::transport::packet {

class RoundTrip {
 public:
  RoundTrip(Duration initial, Duration timeout_min, Duration timeout_max) noexcept
      : initial_(initial), timeout_min_(timeout_min), timeout_max_(timeout_max) {}

  /// Adds the measured time of one packet. A range that is sent again has a new packet number, so Karn's ambiguity
  /// cannot arise.
  void sample(Duration measured) noexcept {
    measured = std::max(measured, Duration(1));
    latest_ = measured;
    if (smoothed_ == Duration::zero()) {
      smoothed_ = measured;
      variation_ = measured / 2;
      return;
    }
    const Duration error = smoothed_ > measured ? smoothed_ - measured : measured - smoothed_;
    variation_ += (error - variation_) / 4;
    smoothed_ += (measured - smoothed_) / 8;
    TRIBUTARY_ASSERT(smoothed_ > Duration::zero() && variation_ >= Duration::zero(), "a round trip takes {} +- {}",
                     smoothed_, variation_);
  }

  [[nodiscard]] bool known() const noexcept { return smoothed_ != Duration::zero(); }
  /// The smoothed time of a round trip; a guess before the first sample.
  [[nodiscard]] Duration smoothed() const noexcept { return known() ? smoothed_ : initial_ / 4; }
  [[nodiscard]] Duration latest() const noexcept { return latest_; }
  /// The time-out after `backoff` time-outs in a row.
  [[nodiscard]] Duration timeout(std::uint32_t backoff) const noexcept {
    const Duration base = known() ? std::max(smoothed_ + 4 * variation_, timeout_min_) : initial_;
    return std::min(base * (1 << std::min(backoff, 10U)), timeout_max_);
  }

 private:
  Duration initial_;
  Duration timeout_min_;
  Duration timeout_max_;
  Duration smoothed_{};
  Duration variation_{};
  Duration latest_{};
};

}  // namespace tributary::transport::packet
