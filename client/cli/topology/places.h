#pragma once
// The places of a fabric: switches that reach each other without going above a level are one place, and all its links
// further up together are its uplink. The planner sees a fabric so, too.
#include <cstdint>
#include <vector>

#include "tree-manager/topology/topology.h"

namespace tributary::cli {

struct FabricPlace {
  std::uint32_t level = 0;
  std::vector<std::uint32_t> switches;       // of this level
  std::vector<std::uint32_t> inside;         // indices of places of lower levels
  std::vector<const manager::Link*> hosts;   // links of hosts to these switches
  std::uint32_t uplinks = 0;                 // how many links lead further up
  std::uint64_t uplink_bits_per_second = 0;  // the sum over these links
  std::uint64_t below_bits_per_second = 0;   // the sum over all hosts' links, also in places inside
  bool outermost = true;
};

/// Returns the places; those that are in no other one are outermost. There are several if rails are not connected.
[[nodiscard]] std::vector<FabricPlace> places_of(const manager::Topology& topology);

}  // namespace tributary::cli
