#pragma once
// The time at which a limit ends.
#include <algorithm>

#include "tributary/transport/channel.h"

namespace tributary::transport {

/// A limit of "for ever" ends in a year, so that the sum does not overflow the clock.
[[nodiscard]] inline TimePoint deadline_of(TimePoint now, Duration limit) noexcept {
  constexpr Duration kLimitMax = std::chrono::hours(24 * 365);
  return now + std::min(limit, kLimitMax);
}

}  // namespace tributary::transport
