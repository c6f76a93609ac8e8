#include "tree-manager/planner/tree.h"

#include <algorithm>

#include "tributary/protocol/assert.h"

namespace tributary::manager {
namespace {

constexpr std::uint32_t kUnset = UINT32_MAX;

/// Returns node indices, children before parents. If the parents form a cycle, it returns fewer indices than `nodes`
/// has.
std::vector<std::uint32_t> bottom_up(const std::vector<TreeNode>& nodes) {
  std::vector<std::uint32_t> waiting(nodes.size(), 0);
  for (const TreeNode& node : nodes) {
    if (node.parent != kNoParent) ++waiting[node.parent];
  }
  std::vector<std::uint32_t> order;
  order.reserve(nodes.size());
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    if (waiting[i] == 0) order.push_back(i);
  }
  for (std::size_t next = 0; next < order.size(); ++next) {
    const std::uint32_t parent = nodes[order[next]].parent;
    if (parent == kNoParent) continue;
    TRIBUTARY_ASSERT(waiting[parent] > 0, "node {} waits for no child, but has child {}", parent, order[next]);
    if (--waiting[parent] == 0) order.push_back(parent);
  }
  return order;
}

Status bad(std::string why) {
  return fail(Errc::corrupt, "a lane's tree is broken: " + std::move(why));
}

}  // namespace

Status LaneTree::finish() {
  if (weight < 1 || weight > kLaneWeightMax) return bad("its weight is " + std::to_string(weight));
  if (window > kWindowMax) return bad("its window is " + std::to_string(window));
  std::vector<std::uint32_t> lowest(nodes.size(), kUnset);
  for (TreeNode& node : nodes) {
    if (node.parent != kNoParent && node.parent >= nodes.size()) return bad("a parent does not exist");
    if (node.parent != kNoParent && node.up.host.empty()) node.up = nodes[node.parent].data;
    node.children.clear();
    node.level = 1;
    node.ranks_below = 0;
  }
  for (std::uint32_t rank = 0; rank < leaf_of_rank.size(); ++rank) {
    const std::uint32_t leaf = leaf_of_rank[rank];
    if (leaf >= nodes.size()) return bad("rank " + std::to_string(rank) + " has no leaf");
    nodes[leaf].children.push_back({ChildKind::rank, rank, rank});
    lowest[leaf] = std::min(lowest[leaf], rank);
    ++nodes[leaf].ranks_below;
  }
  const auto order = bottom_up(nodes);
  if (order.size() != nodes.size() || nodes.empty()) return bad("it has a cycle, or no aggregator");
  std::size_t roots = 0;
  for (const std::uint32_t i : order) {
    if (lowest[i] == kUnset) return bad("no rank is below aggregator " + nodes[i].aggregator);
    const std::uint32_t parent = nodes[i].parent;
    if (parent == kNoParent) {
      root = i;
      ++roots;
      continue;
    }
    nodes[parent].children.push_back({ChildKind::aggregator, i, lowest[i]});
    nodes[parent].level = std::max(nodes[parent].level, nodes[i].level + 1);
    nodes[parent].ranks_below += nodes[i].ranks_below;
    lowest[parent] = std::min(lowest[parent], lowest[i]);
  }
  if (roots != 1) return bad("it has " + std::to_string(roots) + " roots");
  TRIBUTARY_ASSERT(nodes[root].parent == kNoParent && nodes[root].ranks_below == leaf_of_rank.size(),
                   "root {} of {} nodes has {} of {} ranks below it", root, nodes.size(), nodes[root].ranks_below,
                   leaf_of_rank.size());
  levels = nodes[root].level;
  if (levels > kTreeLevelsMax) return bad("it has " + std::to_string(levels) + " levels");
  child_of_rank.assign(leaf_of_rank.size(), 0);
  for (TreeNode& node : nodes) {
    if (node.children.size() > kChildrenMax) return bad("aggregator " + node.aggregator + " has too many children");
    std::sort(node.children.begin(), node.children.end(),
              [](const TreeChild& a, const TreeChild& b) { return a.lowest_rank < b.lowest_rank; });
    for (std::uint32_t place = 0; place < node.children.size(); ++place) {
      const TreeChild& child = node.children[place];
      if (child.kind == ChildKind::rank) {
        child_of_rank[child.index] = static_cast<std::uint16_t>(place);
      } else {
        nodes[child.index].child = place;
      }
    }
  }
  return {};
}

}  // namespace tributary::manager
