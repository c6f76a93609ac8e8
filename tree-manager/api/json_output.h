#pragma once
// The manager's objects in the form of the API; openapi.json describes each of them.
#include <nlohmann/json_fwd.hpp>

#include "tree-manager/service/cluster.h"

namespace tributary::manager {

/// `names_groups`: with the number of the group that saw the aggregator fail.
[[nodiscard]] nlohmann::json to_json(const AggregatorView& view, bool names_groups);
/// The word for the state of an aggregator.
[[nodiscard]] const char* state_of(const AggregatorView& view);
[[nodiscard]] nlohmann::json to_json(const GroupTraffic& traffic);
/// Returns the list of late ranks.
[[nodiscard]] nlohmann::json late_json(const std::vector<LateRank>& late);
/// `details` adds the parts that grow with the number of ranks: hosts and trees.
[[nodiscard]] nlohmann::json to_json(const GroupView& view, bool details);
[[nodiscard]] nlohmann::json to_json(const GroupGrant& grant);
[[nodiscard]] nlohmann::json to_json(const GroupLeaseView& lease);
[[nodiscard]] nlohmann::json to_json(const PlanView& view, const std::vector<std::string>& hosts);
/// Lists every lane of the group, each with its tree.
[[nodiscard]] nlohmann::json trees_json(const GroupRecord& group);

}  // namespace tributary::manager
