#pragma once
// Draws a fabric as a tree of text.
#include <string>

#include "tree-manager/topology/topology.h"

namespace tributary::cli {

/// Each line is a set of switches that reach each other without going further up, as the planner sees them, or hosts. It
/// says the rate of the links up and by how much the hosts below can send more. `source` says where the topology comes
/// from.
[[nodiscard]] std::string draw_fabric(const manager::Topology& topology, const std::string& source);

}  // namespace tributary::cli
