#pragma once
#include <string>
#include <vector>

#include "tree-manager/topology/topology.h"

namespace tributary::manager {

/// Keeps the names of interfaces of hosts that have several interfaces, and drops other names. The links' numbers are
/// indices of these names. If no switch of a fat-tree's level 1 has two of the names, the fabric becomes
/// rail-optimised. Returns false if this would make the topology invalid: all links of a host are then one interface.
[[nodiscard]] bool name_interfaces(const std::vector<std::string>& names, Topology& topology);

}  // namespace tributary::manager
