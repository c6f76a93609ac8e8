#pragma once
// The JSON of quotas and reservations, in the manager's store and on its REST interface.
#include <nlohmann/json_fwd.hpp>

#include "tree-manager/service/tenant_rules.h"

namespace tributary::manager {

/// Leaves out the members without a limit.
[[nodiscard]] nlohmann::json to_json(const TenantUse& use);
/// A member that is not there has no limit. Throws nlohmann::json::exception if a member is no number.
[[nodiscard]] TenantUse tenant_use_from(const nlohmann::json& from);

/// Returns the members of a rule beside its quota.
[[nodiscard]] nlohmann::json terms_json(const TenantRule& rule);
/// Reads the quota and the other members from one object. A member that an older manager did not write has its default.
/// Throws nlohmann::json::exception if a member has another type.
[[nodiscard]] TenantRule tenant_rule_from(const nlohmann::json& from);

[[nodiscard]] nlohmann::json to_json(const Reservation& it);
/// Throws nlohmann::json::exception if a member is missing, or has another type.
[[nodiscard]] Reservation reservation_from(const nlohmann::json& from);

}  // namespace tributary::manager
