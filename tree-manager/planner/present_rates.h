#pragma once
#include "tree-manager/planner/domains.h"
#include "tree-manager/planner/fabric.h"

namespace tributary::manager {

/// Returns the rates of these trees beside all other load in `load`, which includes their own. Zeros if a host has no
/// place any more. The time grows with the numbers of ranks and lanes.
[[nodiscard]] PathRates present_rates(const DomainTree& domains, const FabricLoad& load, const TreesInUse& trees);

}  // namespace tributary::manager
