#pragma once
#include <cstdint>
#include <vector>

#include "tree-manager/topology/import/found_fabric.h"

namespace tributary::manager {

/// Gives every switch its level, unless some have one already. Switches that no host reaches keep 0. `links` holds one
/// link for any two nodes. Returns false if the switches with hosts are cabled to one another as no tree is: then all
/// have level 1.
[[nodiscard]] bool work_out_levels(std::vector<FoundNode>& nodes, const std::vector<FoundLink>& links);

}  // namespace tributary::manager
