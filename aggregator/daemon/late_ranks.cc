#include "aggregator/daemon/late_ranks.h"

#include <algorithm>

namespace tributary::aggregator {
namespace {

LateRank late_rank(const LaneStatus& lane, const ChildStatus& child) {
  const auto milliseconds = [](std::chrono::nanoseconds time) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(time);
  };
  return {.group = lane.group,
          .rank = *child.rank,
          .lag = milliseconds(std::max(child.lag.lag, child.waited_for)),
          .late_for = milliseconds(child.late_for),
          .operations_behind = child.operations_behind};
}

void add(std::vector<LateRank>& all, const LateRank& late) {
  const auto same =
      std::ranges::find_if(all, [&](const LateRank& one) { return one.group == late.group && one.rank == late.rank; });
  if (same == all.end()) {
    if (all.size() < kLateRanksMax) all.push_back(late);
    return;
  }
  same->lag = std::max(same->lag, late.lag);
  same->late_for = std::max(same->late_for, late.late_for);
  same->operations_behind = std::max(same->operations_behind, late.operations_behind);
}

}  // namespace

void add_late_ranks(std::vector<LateRank>& all, std::span<const LaneStatus> lanes) {
  for (const LaneStatus& lane : lanes) {
    for (const ChildStatus& child : lane.of_children) {
      if (child.late && child.rank) add(all, late_rank(lane, child));
    }
  }
}

}  // namespace tributary::aggregator
