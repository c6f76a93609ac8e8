#pragma once
#include <span>
#include <string>

#include "tree-manager/planner/domains.h"
#include "tree-manager/planner/fabric.h"

namespace tributary::manager {

enum class LoadChange : std::uint8_t { add, remove };

/// Adds what these lanes put on links, hosts and aggregators, or takes it away. Takes time by ranks and lanes, whatever
/// the fabric's size.
void change_load(const DomainTree& domains, FabricLoad& load, std::span<const LaneTree> lanes,
                 std::span<const std::string> hosts, LoadChange change);

}  // namespace tributary::manager
