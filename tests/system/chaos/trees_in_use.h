#pragma once
// Finds the aggregators whose death groups must notice: the aggregators in trees that all ranks of a group say they
// use.
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "client/cli/cluster/local_cluster.h"
#include "tests/system/chaos/rank_fleet.h"

namespace tributary::chaos {

/// Returns the aggregators, by index, of trees that all ranks of a group last reported as in use, with the names of
/// these groups. The result is also empty while the manager does not answer.
[[nodiscard]] std::map<std::size_t, std::set<std::string>> trees_in_use(const cli::LocalCluster& cluster,
                                                                        const RankFleet& fleet);

/// Returns how often the ranks of these groups have reported the loss of a tree.
[[nodiscard]] std::uint64_t failovers_of(const std::set<std::string>& groups, const RankFleet& fleet);

}  // namespace tributary::chaos
