#pragma once
// Writes a topology in the form that parse_topology() reads.
#include <string>

#include "tree-manager/topology/topology.h"

namespace tributary::manager {

/// Returns a text from which parse_topology() makes the same topology, except for the order of links. Names are folded
/// into ranges, and links that differ only in their ends share a line.
[[nodiscard]] std::string topology_yaml(const Topology& topology);

}  // namespace tributary::manager
