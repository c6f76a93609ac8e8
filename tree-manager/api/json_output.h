#pragma once
// The manager's objects as the API shows them; openapi.json describes each.
#include <nlohmann/json_fwd.hpp>

#include "tree-manager/service/cluster.h"

namespace tributary::manager {

[[nodiscard]] nlohmann::json to_json(const AggregatorView& view);
/// `details` adds what grows with the number of ranks: hosts, trees.
[[nodiscard]] nlohmann::json to_json(const GroupView& view, bool details);
[[nodiscard]] nlohmann::json to_json(const GroupGrant& grant);
[[nodiscard]] nlohmann::json to_json(const GroupLeaseView& lease);
[[nodiscard]] nlohmann::json to_json(const PlanView& view, const std::vector<std::string>& hosts);
/// Lists every lane of the group, each with its tree.
[[nodiscard]] nlohmann::json trees_json(const GroupRecord& group);

}  // namespace tributary::manager
