#pragma once
// Turns a fabric that was found into a topology that the planner takes: names, levels, rates, one link for all cables
// between two nodes.
#include <cstdint>
#include <string>
#include <vector>

#include "tree-manager/topology/import/found_fabric.h"
#include "tree-manager/topology/topology.h"

namespace tributary::manager {

struct ImportRates {
  std::uint64_t host_bits_per_second = 0;  // of cables whose source gives no rate; 0: the default rate, with a warning
  std::uint64_t switch_bits_per_second =
      0;  // the same between switches; 0: host_bits_per_second for cables, else enough
          // for all hosts below
};

struct Imported {
  Topology topology;
  std::vector<std::string> warnings;  // what was left out or assumed, in whole sentences
};

/// A switch with hosts is on level 1, each other one a level above the lowest that it is cabled to. Where that would
/// join two switches of one level, the switch with fewer hosts than such cables moves up, as a spine with a few hosts of
/// its own does. Links that still join equals, hosts without links, and parts that do not reach the largest part are
/// left out with a warning. Switches of no tree, as those of a dragonfly or torus, become one group of a dragonfly.
/// Errc::bad_config: no host is left, or too many levels.
[[nodiscard]] Result<Imported> arrange(FoundFabric found, const ImportRates& rates);

}  // namespace tributary::manager
