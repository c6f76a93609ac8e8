#include "client/collectives/in_network/lane_window.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "tributary/protocol/assert.h"

namespace tributary::client {
namespace {

using transport::Duration;
using transport::TimePoint;

constexpr auto kSpanOfRate = std::chrono::seconds(1);
constexpr auto kSpanOfTrip = std::chrono::seconds(10);
/// The window as a multiple of rate times round trip: above 1, so that a window that was too small grows, and jitter
/// leaves no link idle.
constexpr double kAhead = 1.5;
/// Bytes of the window while no rate is known; also the least bytes of a window at any time.
constexpr std::uint32_t kFirstBytes = 128U << 10;
constexpr std::uint32_t kLeastBytes = 64U << 10;
/// With one segment in flight a link stands still while the segment's sum is made.
constexpr std::uint32_t kLeastSegments = 2;

std::uint32_t of_bytes(std::uint32_t bytes, const LaneWindow::Settings& settings) {
  return std::min(settings.reserved, std::max(bytes / settings.segment_bytes, kLeastSegments));
}

std::uint32_t half_of(const LaneWindow::Settings& settings) {
  return std::min(settings.reserved, std::max((settings.reserved + 1) / 2, kLeastSegments));
}

}  // namespace

LaneWindow::LaneWindow(const Settings& settings)
    : reserved_(settings.reserved),
      least_(settings.rates_known ? half_of(settings) : of_bytes(kLeastBytes, settings)),
      segments_(settings.rates_known ? least_ : of_bytes(kFirstBytes, settings)),
      sent_(settings.reserved) {
  TRIBUTARY_ASSERT(0 < least_ && least_ <= segments_ && segments_ <= reserved_,
                   "{} segments in flight at first, {} at least, of {} that are reserved", segments_, least_,
                   reserved_);
}

void LaneWindow::Best::add(double value, TimePoint at, Duration span) noexcept {
  if (at - since >= span) {
    before = now;
    now = 0;
    since = at;
  }
  now = std::max(now, value);
}

void LaneWindow::sent(std::uint64_t sequence, double part, TimePoint now) noexcept {
  now = std::max(now, came_at_);                  // the caller may have read its clock before a result came
  if (under_way_ == 0) came_at_ = its_at_ = now;  // the time before this does not count
  ++under_way_;
  sent_[sequence % sent_.size()] = {.at = now, .come = come_, .came_at = came_at_, .its_at = its_at_, .part = part};
}

void LaneWindow::came(std::uint64_t sequence, TimePoint now) noexcept {
  const Sent& it = sent_[sequence % sent_.size()];
  TRIBUTARY_ASSERT(under_way_ > 0, "result {} came, and no segment is under way", sequence);
  --under_way_;
  came_at_ = now;
  its_at_ = it.at;
  if (it.part == 0) return;
  come_ += it.part;
  const double seconds = std::chrono::duration<double>(now - it.at).count();
  if (seconds <= 0) return;  // sent and received in one turn: no link limits the rate
  const double between = std::chrono::duration<double>(std::max(now - it.came_at, it.at - it.its_at)).count();
  TRIBUTARY_ASSERT(between >= seconds, "result {} came after {} s, and the results with it within {} s", sequence,
                   seconds, between);
  per_second_.add((come_ - it.come) / between, now, kSpanOfRate);
  trips_per_second_.add(1 / seconds, now, kSpanOfTrip);
  const double held = per_second_.value() / trips_per_second_.value();
  const double wanted = std::ceil(kAhead * held) + 1;
  segments_ =
      static_cast<std::uint32_t>(std::clamp(wanted, static_cast<double>(least_), static_cast<double>(reserved_)));
}

}  // namespace tributary::client
