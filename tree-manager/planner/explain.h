#pragma once
#include <string>

#include "tree-manager/planner/domains.h"
#include "tree-manager/planner/fabric.h"

namespace tributary::manager {

/// Says in one sentence, for the person who runs the job, why no tree was possible: which aggregators there are, and
/// what each lacks.
[[nodiscard]] std::string explain_no_tree(const DomainTree& domains, const PlanRequest& request);

}  // namespace tributary::manager
