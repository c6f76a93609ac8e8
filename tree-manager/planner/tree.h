#pragma once
// The tree of one lane, as the planner leaves it and the manager keeps it.
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
  std::uint32_t lowest_rank = 0;  // below this child, itself included
  friend bool operator==(const TreeChild&, const TreeChild&) = default;
};

inline constexpr std::uint32_t kNoParent = UINT32_MAX;

/// One aggregator in a lane's tree, where it stands at most once.
struct TreeNode {
  std::string aggregator;
  std::uint64_t incarnation = 0;
  std::string host;                  // its place in the topology
  Endpoint data;                     // the address to which this lane's ranks connect
  std::uint32_t parent = kNoParent;  // index into LaneTree::nodes
  Endpoint up{};                     // where it connects to its parent; empty: at the parent's `data`
  std::uint32_t data_changes = 0;    // the aggregator's count when this was planned
  // finish() works out the rest.
  std::uint32_t child = 0;  // this node's place among its parent's children
  std::uint32_t level = 0;  // 1: all its children are ranks
  std::uint32_t ranks_below = 0;
  std::vector<TreeChild> children;  // by lowest rank below: the order in which contributions are added
  friend bool operator==(const TreeNode&, const TreeNode&) = default;
};

struct LaneTree {
  std::string rail;         // its name, where the fabric has rails
  std::uint32_t route = 0;  // by which hosts choose their interfaces for this lane: the lane's number, or a later one
  std::vector<TreeNode> nodes;
  std::vector<std::uint32_t> leaf_of_rank;  // index into nodes
  std::uint32_t weight = 1;                 // its share of the group's segments, over the sum of all lanes' weights
  std::uint32_t window = 0;                 // segments; 0: the group's
  // finish() works out the rest.
  std::vector<std::uint16_t> child_of_rank;  // the rank's place among its leaf's children
  std::uint32_t root = 0;
  std::uint32_t levels = 0;  // aggregators between a rank and the result, on the longest path

  /// Works out the rest from parents and leaves. Errc::corrupt when they do not form one tree over all ranks within the
  /// protocol's bounds, as may happen with a damaged store.
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
