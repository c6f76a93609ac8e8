#pragma once
// Finds groups of a lower class whose trees must go so that a group of a higher class gets trees.
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "tree-manager/planner/fabric.h"
#include "tree-manager/service/allotments.h"
#include "tree-manager/store/store.h"

namespace tributary::manager {

struct Displacement {
  std::vector<std::uint64_t> groups;  // the groups that must leave their trees; empty: this would not help
  Plan plan;                          // the trees that are possible when they have left
};

/// `lower`: the groups that may be displaced. `plan_now`: plans the trees of `wanted` with the memory and the load at
/// that moment. The lowest class goes first, and in a class the youngest group. Leaves `allotments` unchanged.
[[nodiscard]] Displacement displace(Allotments& allotments, const Fabric& fabric, const GroupRecord& wanted,
                                    std::vector<std::shared_ptr<const GroupRecord>> lower,
                                    const std::function<Plan()>& plan_now);

}  // namespace tributary::manager
