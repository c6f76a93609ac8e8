#pragma once
// The memory that a group's trees take on each aggregator.
#include <cstdint>
#include <string>
#include <utility>

#include "tree-manager/store/store.h"
#include "tributary/protocol/lane_memory.h"

namespace tributary::manager {

/// An aggregator's name, and the number of its registration.
using Incarnation = std::pair<std::string, std::uint64_t>;

/// Calls visit(incarnation, bytes) for each place of an aggregator in the group's trees.
template <class Visit>
void each_reservation(const GroupRecord& group, const Visit& visit) {
  for (const LaneTree& lane : group.lanes) {
    for (const TreeNode& node : lane.nodes) {
      const auto children = static_cast<std::uint32_t>(node.children.size());
      visit(Incarnation(node.aggregator, node.incarnation),
            lane_reservation_bytes(children, window_of(group, lane), group.segment_bytes));
    }
  }
}

}  // namespace tributary::manager
