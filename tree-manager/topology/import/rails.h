#pragma once
#include <string>
#include <vector>

#include "tree-manager/topology/topology.h"

namespace tributary::manager {

/// Keeps the names of interfaces, to which the links' numbers lead, where hosts have several, and drops them elsewhere.
/// If no switch of a fat-tree's level 1 has two of the names, the fabric becomes rail-optimised. Returns false if the
/// topology would be unsound so: then all links of a host are one interface.
[[nodiscard]] bool name_interfaces(const std::vector<std::string>& names, Topology& topology);

}  // namespace tributary::manager
