#pragma once
// Compares two topologies as people read them: by names, not by the order in a file.
#include <cstddef>
#include <string>
#include <vector>

#include "tree-manager/topology/topology.h"

namespace tributary::manager {

/// One line for each difference, in the form of diff: "- " for what only the first has, "+ " for what only the second
/// has; a changed rate is both. Hosts and links are folded into ranges.
struct TopologyDifference {
  std::vector<std::string> lines;
  std::size_t hosts_removed = 0, hosts_added = 0;
  std::size_t switches_changed = 0;  // removed, added, or with another level, rail or group
  std::size_t links_removed = 0, links_added = 0, links_rerated = 0;
  std::size_t aggregators_changed = 0;
  bool other_fabric = false;  // its kind, or a flat fabric's rate

  [[nodiscard]] bool none() const noexcept { return lines.empty(); }
  /// "2 hosts added, 3 links with another rate", or "nothing changed".
  [[nodiscard]] std::string summary() const;
};

[[nodiscard]] TopologyDifference compare(const Topology& before, const Topology& after);

}  // namespace tributary::manager
