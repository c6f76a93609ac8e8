#pragma once
#include "tree-manager/planner/domains.h"
#include "tree-manager/planner/fabric.h"

namespace tributary::manager {

/// Returns the rates of these trees beside everything else in `load`, which includes their own. Zeros where a host has
/// no place any more. Takes time by ranks and lanes.
[[nodiscard]] PathRates present_rates(const DomainTree& domains, const FabricLoad& load, const TreesInUse& trees);

}  // namespace tributary::manager
