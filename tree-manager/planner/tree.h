#pragma once
// The tree of one lane, as the planner makes it and the manager keeps it.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tributary/protocol/descriptor.h"
#include "tributary/protocol/frame.h"

namespace tributary::manager {

struct TreeChild {
  ChildKind kind = ChildKind::rank;
  std::uint32_t index = 0;        // the rank, or an index into LaneTree::nodes
  std::uint32_t lowest_rank = 0;  // lowest rank below this child, itself included
  friend bool operator==(const TreeChild&, const TreeChild&) = default;
};

inline constexpr std::uint32_t kNoParent = UINT32_MAX;

/// One aggregator in a lane's tree. Each aggregator is at most once in a tree.
struct TreeNode {
  std::string aggregator;
  std::uint64_t incarnation = 0;
  std::string host;                  // its name in the topology
  Endpoint data;                     // the address to which this lane's ranks connect
  std::uint32_t parent = kNoParent;  // index into LaneTree::nodes
  Endpoint up{};                     // address of the parent to which it connects; empty: the parent's `data`
  std::uint32_t data_changes = 0;    // the aggregator's count when the tree was planned
  // finish() computes the members below.
  std::uint32_t child = 0;  // this node's place among its parent's children
  std::uint32_t level = 0;  // 1: all its children are ranks
  std::uint32_t ranks_below = 0;
  std::vector<TreeChild> children;  // sorted by lowest rank: the order in which contributions are added
  friend bool operator==(const TreeNode&, const TreeNode&) = default;
};

struct LaneTree {
  std::string rail;         // the rail's name, if the fabric has rails
  std::uint32_t route = 0;  // number by which hosts choose interfaces for this lane: its own, or a later one
  std::vector<TreeNode> nodes;
  std::vector<std::uint32_t> leaf_of_rank;  // index: rank; index in `nodes`
  std::uint32_t weight = 1;                 // its share of the group's segments is weight / sum of all lanes' weights
  std::uint32_t window = 0;                 // number of segments; 0: the group's window
  // finish() computes the members below.
  std::vector<std::uint16_t> child_of_rank;  // index: rank; its place among its leaf's children
  std::uint32_t root = 0;
  std::uint32_t levels = 0;  // number of aggregators between a rank and the result, on the longest path

  /// Computes the other members from parents and leaves. Errc::corrupt if these do not form one tree over all ranks
  /// within the protocol's bounds, which may happen with a damaged store.
  [[nodiscard]] Status finish();
  friend bool operator==(const LaneTree&, const LaneTree&) = default;
};

/// Returns the sum of the lanes' weights.
[[nodiscard]] inline std::uint32_t weight_of(std::span<const LaneTree> lanes) noexcept {
  std::uint32_t sum = 0;
  for (const LaneTree& lane : lanes) sum += lane.weight;
  return sum;
}

}  // namespace tributary::manager
