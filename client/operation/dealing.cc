#include "client/operation/dealing.h"

#include <algorithm>
#include <numeric>

#include "tributary/protocol/assert.h"
#include "tributary/protocol/descriptor.h"

namespace tributary::client {

// Lanes get places as periodic tasks get a processor's time: the earliest deadline comes first. In a cycle of n places,
// a lane of weight w gets its k-th place (k from 0) between places k n / w and (k + 1) n / w. So it is never a whole
// segment ahead of its share or behind it. (C. L. Liu, J. W. Layland, "Scheduling Algorithms for Multiprogramming in a
// Hard-Real-Time Environment", JACM 20 (1973): if the shares add up to one, this order keeps all deadlines.)
Dealing::Dealing(std::span<const std::uint32_t> weights) {
  TRIBUTARY_ASSERT(!weights.empty() && std::ranges::min(weights) > 0 && std::ranges::max(weights) <= kLaneWeightMax,
                   "{} lanes have weights from {} to {}", weights.size(), std::ranges::min(weights),
                   std::ranges::max(weights));
  std::uint32_t divisor = 0, sum = 0;
  for (const std::uint32_t weight : weights) divisor = std::gcd(divisor, weight);
  TRIBUTARY_ASSERT(divisor > 0, "{} lanes have no weight", weights.size());
  for (const std::uint32_t weight : weights) sum += weight / divisor;
  std::vector<std::uint32_t> dealt(weights.size(), 0);
  lanes_.reserve(sum);
  for (std::uint32_t place = 0; place < sum; ++place) {
    std::size_t next = weights.size();
    std::uint32_t deadline = UINT32_MAX;
    for (std::size_t lane = 0; lane < weights.size(); ++lane) {
      const std::uint32_t weight = weights[lane] / divisor;
      if (dealt[lane] * sum > place * weight + weight - 1) continue;  // the lane's next place is not due yet
      const std::uint32_t due = ((dealt[lane] + 1) * sum + weight - 1) / weight;
      if (due >= deadline) continue;
      next = lane;
      deadline = due;
    }
    TRIBUTARY_ASSERT(next < weights.size() && place < deadline, "no lane takes place {} of {} in time", place, sum);
    ++dealt[next];
    lanes_.push_back(static_cast<std::uint8_t>(next));
  }
}

LaneTurns Dealing::turns_of(std::uint32_t lane) const {
  LaneTurns turns;
  turns.waits_.assign(lanes_.size(), 0);
  std::uint32_t wait = 0;
  // Go round the cycle twice: the second time, `wait` starts with the distance to the lane's place in the next cycle.
  for (std::size_t place = 2 * lanes_.size(); place-- > 0;) {
    wait = lanes_[place % lanes_.size()] == lane ? 0 : wait + 1;
    turns.waits_[place % lanes_.size()] = static_cast<std::uint16_t>(wait);
  }
  TRIBUTARY_ASSERT(wait < lanes_.size(), "lane {} has no place in a cycle of {}", lane, lanes_.size());
  return turns;
}

}  // namespace tributary::client
