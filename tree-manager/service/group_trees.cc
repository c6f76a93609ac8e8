#include "tree-manager/service/group_trees.h"

#include <algorithm>

#include "tree-manager/planner/addresses.h"

namespace tributary::manager {

bool is_same(const FailedAggregator& failed, const AggregatorRecord& record) {
  return failed.name == record.name && failed.incarnation == record.incarnation &&
         failed.data_changes == record.data_changes;
}

bool avoids(const GroupRecord& group, const AggregatorRecord& record, std::int64_t since_min) {
  return std::ranges::any_of(group.failed,
                             [&](const FailedAggregator& it) { return is_same(it, record) && it.since > since_min; });
}

std::string why_unusable(const AggregatorRecord& record, const Suspicions& suspicions) {
  if (record.expired) return "gone (lease ended)";
  if (record.draining) return "draining";
  if (address_for_lane(record.data, 0) == nullptr) return "unreachable (no address of it lives)";
  if (suspicions.of(record.name)) return "held to be dead because a group saw it fail and it has not renewed since";
  return record.resuming ? "not told yet that its drain has ended" : "";
}

bool uses(const GroupRecord& group, const std::function<bool(const TreeNode&)>& what) {
  for (const LaneTree& lane : group.lanes) {
    if (std::any_of(lane.nodes.begin(), lane.nodes.end(), what)) return true;
  }
  return false;
}

std::optional<FailedAggregator> failed_in(const GroupRecord& group, const std::string& name, std::int64_t since) {
  std::optional<FailedAggregator> found;
  (void)uses(group, [&](const TreeNode& node) {
    if (node.aggregator == name) found = {name, node.incarnation, since, node.data_changes};
    return found.has_value();
  });
  return found;
}

std::vector<UsedAggregator> used_by(const GroupRecord& group) {
  std::vector<UsedAggregator> list;
  (void)uses(group, [&](const TreeNode& node) {
    list.push_back({node.aggregator, node.incarnation, node.data_changes});
    return false;
  });
  std::ranges::sort(list);
  const auto twice = std::ranges::unique(list);
  list.erase(twice.begin(), twice.end());
  return list;
}

bool planned_before_report(const GroupRecord& group, const std::vector<std::string>& failed) {
  return uses(group, [&](const TreeNode& node) {
    const UsedAggregator used{node.aggregator, node.incarnation, node.data_changes};
    return std::ranges::find(failed, node.aggregator) != failed.end() &&
           std::ranges::find(group.before, used) != group.before.end();
  });
}

Flight flight_of(const Fabric& fabric, const std::vector<std::string>& hosts, std::uint64_t link_rate) {
  if (!fabric.knows_rates()) return flight_for(link_rate);
  std::uint64_t slowest = UINT64_MAX;
  for (const std::string& host : hosts) slowest = std::min(slowest, fabric.host_rate(host));
  return flight_for(slowest);
}

}  // namespace tributary::manager
