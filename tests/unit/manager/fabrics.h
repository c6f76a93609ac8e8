#pragma once
// Topologies and aggregators for the tests of the planner.
#include <cstdint>
#include <string>
#include <vector>

#include "tree-manager/planner/fabric.h"
#include "tree-manager/topology/topology.h"

namespace tributary::manager {

inline constexpr std::uint64_t kGbit = 1'000'000'000;  // bits per second

/// Returns a fabric of leaves with `hosts_per_leaf` worker hosts and one aggregator host each, of spines with one
/// aggregator host each, and of links from all leaves to all spines. Hosts: "node-<n>", "agg-leaf-<l>",
/// "agg-spine-<s>".
inline std::string leaf_spine_yaml(int leaves, int hosts_per_leaf, int spines) {
  const auto range = [](const std::string& name, int low, int high) {
    return "\"" + name + "-[" + std::to_string(low) + "-" + std::to_string(high) + "]\"";
  };
  std::string text = "fabric: fat-tree\nswitches:\n  - {name: " + range("spine", 0, spines - 1) +
                     ", level: 2}\n  - {name: " + range("leaf", 0, leaves - 1) + ", level: 1}\nhosts: [" +
                     range("node", 0, leaves * hosts_per_leaf - 1) + ", " + range("agg-leaf", 0, leaves - 1) + ", " +
                     range("agg-spine", 0, spines - 1) + "]\nlinks:\n";
  for (int leaf = 0; leaf < leaves; ++leaf) {
    const std::string l = std::to_string(leaf);
    text += "  - {from: [" + range("node", leaf * hosts_per_leaf, (leaf + 1) * hosts_per_leaf - 1) + ", agg-leaf-" + l +
            "], to: leaf-" + l + ", rate: 100Gbit/s}\n";
  }
  for (int spine = 0; spine < spines; ++spine) {
    const std::string s = std::to_string(spine);
    text += "  - {from: agg-spine-" + s + ", to: spine-" + s + ", rate: 100Gbit/s}\n";
  }
  return text + "  - {from: " + range("leaf", 0, leaves - 1) + ", to: " + range("spine", 0, spines - 1) +
         ", rate: 400Gbit/s}\n";
}

inline PlanAggregator aggregator_on(const std::string& host, std::uint64_t memory_bytes = 1ULL << 30) {
  return {.name = "on-" + host,
          .incarnation = 1,
          .host = host,
          .data = {{.at = {"10.0.0.1", 7471}}},
          .memory_free_bytes = memory_bytes};
}

inline std::vector<PlanAggregator> leaf_spine_aggregators(int leaves, int spines) {
  std::vector<PlanAggregator> list;
  for (int leaf = 0; leaf < leaves; ++leaf) list.push_back(aggregator_on("agg-leaf-" + std::to_string(leaf)));
  for (int spine = 0; spine < spines; ++spine) list.push_back(aggregator_on("agg-spine-" + std::to_string(spine)));
  return list;
}

inline std::vector<std::string> nodes(int count) {
  std::vector<std::string> list;
  for (int i = 0; i < count; ++i) list.push_back("node-" + std::to_string(i));
  return list;
}

}  // namespace tributary::manager
