#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "tree-manager/planner/fabric.h"

namespace tributary::manager {

/// Plans over a single aggregator, for measuring the way to it: a lane for each of its live addresses, in which the
/// aggregator is the root and every rank is its child. Ignores the links' load. Plan::reason: the reason for no lane.
[[nodiscard]] Plan plan_over(const PlanAggregator& aggregator, const PlanRequest& request);

}  // namespace tributary::manager
