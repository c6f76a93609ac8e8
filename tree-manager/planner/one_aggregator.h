#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "tree-manager/planner/fabric.h"

namespace tributary::manager {

/// Plans over one aggregator alone, whatever the links carry: a lane for each of its live addresses, in which it is the
/// root and every rank its child. Such a group measures the way to the aggregator. Plan::reason says why there is none.
[[nodiscard]] Plan plan_over(const PlanAggregator& aggregator, const PlanRequest& request);

}  // namespace tributary::manager
