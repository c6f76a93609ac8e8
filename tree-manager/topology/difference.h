#pragma once
// Compares two topologies by names, as people do, and not by the order in a file.
#include <cstddef>
#include <string>
#include <vector>

#include "tree-manager/topology/topology.h"

namespace tributary::manager {

/// Has one line for each difference, in the form of diff: "- " for parts that only the first topology has, "+ " for
/// parts that only the second has; a changed rate has both lines. Hosts and links are folded into ranges.
struct TopologyDifference {
  std::vector<std::string> lines;
  std::size_t hosts_removed = 0, hosts_added = 0;
  std::size_t switches_changed = 0;  // switches removed, added, or with another level, rail or group
  std::size_t links_removed = 0, links_added = 0, links_rerated = 0;
  std::size_t aggregators_changed = 0;
  bool other_fabric = false;  // true: the kind of fabric, or a flat fabric's rate, differs

  [[nodiscard]] bool none() const noexcept { return lines.empty(); }
  /// Returns a text such as "2 hosts added, 3 links with another rate" or "nothing changed".
  [[nodiscard]] std::string summary() const;
};

[[nodiscard]] TopologyDifference compare(const Topology& before, const Topology& after);

}  // namespace tributary::manager
