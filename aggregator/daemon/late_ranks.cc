#include "aggregator/daemon/late_ranks.h"

#include <algorithm>

namespace tributary::aggregator {
namespace {

LateRank late_rank(const LaneStatus& lane, const ChildStatus& child) {
  const auto in_milliseconds = [](std::chrono::nanoseconds time) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(time);
  };
  return {.group = lane.group,
          .rank = *child.rank,
          .lag = in_milliseconds(std::max(child.lag.lag, child.waited_for)),
          .late_for = in_milliseconds(child.late_for),
          .operations_behind = child.operations_behind,
          .cause = child.cause};
}

}  // namespace

void add_late_ranks(std::vector<LateRank>& all, std::span<const LaneStatus> lanes) {
  for (const LaneStatus& lane : lanes) {
    for (const ChildStatus& child : lane.of_children) {
      if (child.late && child.rank) add_late_rank(all, late_rank(lane, child));
    }
  }
}

}  // namespace tributary::aggregator
