#pragma once
#include <span>
#include <string>

#include "tree-manager/planner/domains.h"
#include "tree-manager/planner/fabric.h"

namespace tributary::manager {

enum class LoadChange : std::uint8_t { add, remove };

/// Adds or removes the load of these lanes on links, hosts and aggregators. Its time depends on ranks and lanes, not on
/// the fabric's size.
void change_load(const DomainTree& domains, FabricLoad& load, std::span<const LaneTree> lanes,
                 std::span<const std::string> hosts, LoadChange change);

}  // namespace tributary::manager
