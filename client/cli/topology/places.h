#pragma once
// The places of a fabric: switches that reach each other without going above a level are one place. All links of a
// place that lead further up are together its uplink. The planner sees a fabric in the same way.
#include <cstdint>
#include <vector>

#include "tree-manager/topology/topology.h"

namespace tributary::cli {

struct FabricPlace {
  std::uint32_t level = 0;
  std::vector<std::uint32_t> switches;       // switches of this level
  std::vector<std::uint32_t> inside;         // indices of places of lower levels
  std::vector<const manager::Link*> hosts;   // links of hosts to these switches
  std::uint32_t uplinks = 0;                 // number of links that lead further up
  std::uint64_t uplink_bits_per_second = 0;  // sum of the rates of these links
  std::uint64_t below_bits_per_second = 0;   // sum of the rates of all hosts' links, including places inside
  bool outermost = true;
};

/// Returns the places. A place that is in no other place is outermost; there are several if rails are not connected.
[[nodiscard]] std::vector<FabricPlace> places_of(const manager::Topology& topology);

}  // namespace tributary::cli
