#include "aggregator/worker/lane_lag.h"

#include <algorithm>
#include <bit>

#include "tributary/protocol/assert.h"

namespace tributary::aggregator {

std::size_t TimeHistogram::class_of(std::chrono::nanoseconds time) noexcept {
  const auto us = static_cast<std::uint64_t>(std::max<std::int64_t>(time.count(), 0) + 999) / 1000;
  if (us <= upper_us(0)) return 0;
  const auto number = static_cast<std::size_t>(std::bit_width(us - 1) - 3) / 2;  // each class has four times the width
  return std::min(number, kClasses - 1);
}

LaneLag::LaneLag(std::uint32_t children, std::uint32_t window)
    : everyone_(children == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << children) - 1),
      children_(children),
      segments_(window) {
  TRIBUTARY_ASSERT(children >= 1 && children <= 64 && window >= 1, "{} children and a window of {}", children, window);
}

LaneLag::Duration LaneLag::contributed(std::uint32_t child, std::uint64_t sequence, TimePoint now,
                                       TimeHistogram& histogram) noexcept {
  TRIBUTARY_ASSERT(child < children_.size(), "child {} of {} contributes", child, children_.size());
  Segment& segment = segments_[sequence % segments_.size()];
  const std::uint64_t bit = std::uint64_t{1} << child;
  if (segment.arrived == 0) segment = {.opened = now, .sequence = sequence};
  TRIBUTARY_ASSERT(segment.sequence == sequence && (segment.arrived & bit) == 0,
                   "child {} contributes to segment {} where the set of children of segment {} is {}", child, sequence,
                   segment.sequence, segment.arrived);
  const Duration lag = std::max(now - segment.opened, Duration::zero());
  histogram.add(lag);
  Child& of = children_[child];
  ++of.contributions;
  of.lag += (lag - of.lag) / 8;
  of.longest = std::max(of.longest, lag);
  segment.arrived |= bit;
  segment.latest = now;
  if (segment.arrived != everyone_) return lag;
  ++of.last;
  segment.arrived = 0;
  return lag;
}

void LaneLag::answered(std::uint64_t sequence, TimePoint now, TimeHistogram& histogram) const noexcept {
  const Segment& segment = segments_[sequence % segments_.size()];
  if (segment.sequence != sequence) return;  // its contributions came while the lane broke
  histogram.add(std::max(now - segment.opened, Duration::zero()));
}

LaneLag::Wait LaneLag::oldest() const noexcept {
  const Segment* oldest = nullptr;
  for (const Segment& segment : segments_) {
    if (segment.arrived != 0 && (oldest == nullptr || segment.sequence < oldest->sequence)) oldest = &segment;
  }
  if (oldest == nullptr) return {};
  return {.missing = everyone_ & ~oldest->arrived, .since = oldest->opened, .latest = oldest->latest};
}

}  // namespace tributary::aggregator
