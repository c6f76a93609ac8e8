#pragma once
#include <cstdint>
#include <vector>

#include "tree-manager/topology/import/found_fabric.h"

namespace tributary::manager {

/// Gives every switch its level, unless a switch has a level already. Switches that no host reaches keep 0. `links` has
/// at most one link for two nodes. Returns false if the cables between the switches with hosts do not form a tree: all
/// of them then have level 1.
[[nodiscard]] bool work_out_levels(std::vector<FoundNode>& nodes, const std::vector<FoundLink>& links);

}  // namespace tributary::manager
