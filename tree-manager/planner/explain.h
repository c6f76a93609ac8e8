#pragma once
#include <string>

#include "tree-manager/planner/domains.h"
#include "tree-manager/planner/fabric.h"

namespace tributary::manager {

/// Returns one sentence, for the person who runs the job, with the reason why no tree was possible: the aggregators,
/// and the reason why each cannot be used.
[[nodiscard]] std::string explain_no_tree(const DomainTree& domains, const PlanRequest& request);

}  // namespace tributary::manager
