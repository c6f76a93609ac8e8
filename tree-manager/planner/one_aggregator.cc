#include "tree-manager/planner/one_aggregator.h"

#include <algorithm>

#include "tree-manager/planner/sites.h"

namespace tributary::manager {
namespace {

LaneTree lane_at(const PlanAggregator& aggregator, std::uint32_t address, std::size_t ranks) {
  LaneTree lane{.rail = {}, .route = address, .nodes = {}, .leaf_of_rank = {}, .child_of_rank = {}};
  lane.nodes.push_back({.aggregator = aggregator.name,
                        .incarnation = aggregator.incarnation,
                        .host = aggregator.host,
                        .data = aggregator.data[address].at,
                        .data_changes = aggregator.data_changes,
                        .children = {}});
  lane.leaf_of_rank.assign(ranks, 0);
  return lane;
}

}  // namespace

Plan plan_over(const PlanAggregator& aggregator, const PlanRequest& request) {
  const auto none = [&](const std::string& why) {
    return Plan{.lanes = {}, .reason = "no tree: aggregator " + aggregator.name + " " + why, .window = request.window};
  };
  if (!aggregator.unusable.empty()) return none("is " + aggregator.unusable);
  Plan plan{.lanes = {}, .reason = {}, .window = request.window};
  for (std::uint32_t i = 0; i < aggregator.data.size(); ++i) {
    if (aggregator.data[i].live) plan.lanes.push_back(lane_at(aggregator, i, request.hosts.size()));
  }
  if (plan.lanes.empty()) return none("has no address that lives");
  const auto children = children_possible(aggregator, aggregator.memory_free_bytes / plan.lanes.size(), request);
  if (children < request.hosts.size()) return none("has no room");
  for (LaneTree& lane : plan.lanes) {
    if (auto ok = lane.finish(); !ok) return none("cannot serve this group: " + ok.error().message);
  }
  return plan;
}

}  // namespace tributary::manager
