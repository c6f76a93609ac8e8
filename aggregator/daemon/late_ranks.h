#pragma once
// The late ranks of this aggregator's lanes, for the manager.
#include <span>
#include <vector>

#include "aggregator/worker/worker.h"
#include "tributary/protocol/late_rank.h"

namespace tributary::aggregator {

/// Adds the late ranks of these lanes to `all`, each rank of a group once, up to kLateRanksMax. The aggregator of a late
/// child that is itself an aggregator names the rank, so such children do not count here.
void add_late_ranks(std::vector<LateRank>& all, std::span<const LaneStatus> lanes);

}  // namespace tributary::aggregator
