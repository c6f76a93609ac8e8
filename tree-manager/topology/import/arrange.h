#pragma once
// Turns a found fabric into a topology for the planner: with names, levels, rates, and one link for all cables between
// two nodes.
#include <cstdint>
#include <string>
#include <vector>

#include "tree-manager/topology/import/found_fabric.h"
#include "tree-manager/topology/topology.h"

namespace tributary::manager {

struct ImportRates {
  std::uint64_t host_bits_per_second = 0;  // rate of cables whose source gives none; 0: default rate, with a warning
  std::uint64_t switch_bits_per_second =
      0;  // the same between switches; 0: host_bits_per_second for cables, else enough
          // for all hosts below
};

struct Imported {
  Topology topology;
  std::vector<std::string> warnings;  // whole sentences about parts that were left out or assumed
};

/// A switch with hosts is on level 1; each other switch is one level above the lowest switch to which it is cabled. If
/// this would join two switches of one level, the switch with fewer hosts than such cables moves up: for example, a
/// spine with a few hosts. Links that still join switches of one level, hosts without links, and parts that are not
/// connected to the largest part are left out with a warning. Switches that form no tree, such as the switches of a
/// dragonfly or torus, become one group of a dragonfly. Errc::bad_config: no host is left, or too many levels.
[[nodiscard]] Result<Imported> arrange(FoundFabric found, const ImportRates& rates);

}  // namespace tributary::manager
