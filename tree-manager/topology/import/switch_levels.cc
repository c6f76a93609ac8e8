#include "tree-manager/topology/import/switch_levels.h"

#include <algorithm>
#include <queue>

#include "tributary/protocol/assert.h"

namespace tributary::manager {
namespace {

class Levels {
 public:
  Levels(std::vector<FoundNode>& nodes, const std::vector<FoundLink>& links)
      : nodes_(nodes), hosts_(nodes.size(), 0), equals_(nodes.size(), 0), neighbours_(nodes.size()) {
    for (const FoundLink& link : links) {
      const bool a = nodes[link.a].is_switch, b = nodes[link.b].is_switch;
      if (a && b) {
        neighbours_[link.a].push_back(link.b);
        neighbours_[link.b].push_back(link.a);
      } else if (a != b) {
        ++hosts_[a ? link.a : link.b];
      }
    }
  }

  bool work_out() {
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].is_switch && hosts_[i] != 0) nodes_[i].level = 1;
    }
    if (lift()) return spread(), true;
    for (FoundNode& node : nodes_) node.level = node.is_switch ? 1 : 0;
    return false;
  }

 private:
  /// The gain if the switch moves above its neighbours of level 1. If it is not positive, the switch stays.
  [[nodiscard]] std::int64_t gain(std::uint32_t i) const {
    return static_cast<std::int64_t>(equals_[i]) - static_cast<std::int64_t>(hosts_[i]);
  }

  /// Moves the switches with the most neighbours on level 1 off this level, one after the other. Returns false if more
  /// than half of them would move: the fabric is no tree.
  bool lift() {
    std::priority_queue<std::pair<std::int64_t, std::uint32_t>> queue;
    std::size_t edge = 0;
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].level != 1) continue;
      ++edge;
      for (const std::uint32_t n : neighbours_[i]) equals_[i] += nodes_[n].level == 1 ? 1U : 0U;
      if (gain(i) > 0) queue.emplace(gain(i), i);
    }
    std::size_t lifted = 0;
    while (!queue.empty()) {
      const auto [was, i] = queue.top();
      queue.pop();
      if (nodes_[i].level != 1 || was != gain(i)) continue;  // this entry is outdated; a newer entry may follow
      nodes_[i].level = 0;
      ++lifted;
      for (const std::uint32_t n : neighbours_[i]) {
        if (nodes_[n].level != 1) continue;
        TRIBUTARY_ASSERT(equals_[n] > 0, "switch {} counts no neighbour of its level, but {} is one", n, i);
        --equals_[n];
        if (gain(n) > 0) queue.emplace(gain(n), n);
      }
    }
    return lifted * 2 <= edge;
  }

  /// Puts each other switch one level above its lowest neighbour that leads to level 1.
  void spread() {
    std::queue<std::uint32_t> next;
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].level == 1) next.push(i);
    }
    while (!next.empty()) {
      const std::uint32_t i = next.front();
      next.pop();
      for (const std::uint32_t n : neighbours_[i]) {
        if (nodes_[n].level != 0) continue;
        nodes_[n].level = nodes_[i].level + 1;
        next.push(n);
      }
    }
  }

  std::vector<FoundNode>& nodes_;
  std::vector<std::uint32_t> hosts_;   // index: switch; number of its hosts
  std::vector<std::uint32_t> equals_;  // index: switch of level 1; number of its neighbours on level 1
  std::vector<std::vector<std::uint32_t>> neighbours_;
};

}  // namespace

bool work_out_levels(std::vector<FoundNode>& nodes, const std::vector<FoundLink>& links) {
  const bool given = std::ranges::any_of(nodes, [](const FoundNode& node) { return node.level != 0; });
  return given || Levels(nodes, links).work_out();
}

}  // namespace tributary::manager
