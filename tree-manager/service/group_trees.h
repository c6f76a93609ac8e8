#pragma once
// Questions about the trees of a group, and about the aggregators that it saw fail.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tree-manager/planner/fabric.h"
#include "tree-manager/planner/flight.h"
#include "tree-manager/service/suspicions.h"
#include "tree-manager/store/store.h"

namespace tributary::manager {

/// True if the aggregator has not changed after it failed: it has not registered again, and the same addresses
/// live.
[[nodiscard]] bool is_same(const FailedAggregator& failed, const AggregatorRecord& record);

/// True if the group saw the aggregator fail after `since_min`, and the aggregator has not changed after it.
[[nodiscard]] bool avoids(const GroupRecord& group, const AggregatorRecord& record, std::int64_t since_min);

/// Returns the reason why no group may use the aggregator; empty if groups may use it.
[[nodiscard]] std::string why_unusable(const AggregatorRecord& record, const Suspicions& suspicions);

/// True if `what` is true for a place of an aggregator in the group's trees.
[[nodiscard]] bool uses(const GroupRecord& group, const std::function<bool(const TreeNode&)>& what);

/// Returns the aggregator of this name as it was when the group's trees were planned; nullopt: no tree has it. `since`:
/// the time of the failure, in seconds since 1970-01-01 UTC.
[[nodiscard]] std::optional<FailedAggregator> failed_in(const GroupRecord& group, const std::string& name,
                                                        std::int64_t since);

/// Lists the aggregators of the group's trees, each once, in order.
[[nodiscard]] std::vector<UsedAggregator> used_by(const GroupRecord& group);

/// True if the group reports an aggregator that its earlier and its present trees use. The present trees were then
/// planned before the report, for example because the answer to an earlier request was lost. An aggregator that has
/// registered again does not count.
[[nodiscard]] bool planned_before_report(const GroupRecord& group, const std::vector<std::string>& failed);

/// Returns the flight for the slowest link of these hosts, or for `link_rate` where the fabric knows no rates.
[[nodiscard]] Flight flight_of(const Fabric& fabric, const std::vector<std::string>& hosts, std::uint64_t link_rate);

}  // namespace tributary::manager
