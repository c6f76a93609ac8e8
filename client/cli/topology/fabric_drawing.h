#pragma once
// Draws a fabric as a tree, in text.
#include <string>

#include "tree-manager/topology/topology.h"

namespace tributary::cli {

/// Returns the drawing. Each line is a set of switches that reach each other without going further up, as in the
/// planner, or a set of hosts. It gives the rate of the links up, and the rate of the hosts below as a multiple of it.
/// `source` names the origin of the topology.
[[nodiscard]] std::string draw_fabric(const manager::Topology& topology, const std::string& source);

}  // namespace tributary::cli
