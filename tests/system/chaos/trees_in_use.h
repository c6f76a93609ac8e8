#pragma once
// Finds the aggregators whose death must be noticed: those under groups whose ranks all say that they are on their
// tree.
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "client/cli/cluster/local_cluster.h"
#include "tests/system/chaos/rank_fleet.h"

namespace tributary::chaos {

/// Returns the aggregators, by index, that carry a group whose ranks all last reported that they use it, with the names
/// of those groups. Empty also while the manager does not answer.
[[nodiscard]] std::map<std::size_t, std::set<std::string>> trees_in_use(const cli::LocalCluster& cluster,
                                                                        const RankFleet& fleet);

/// Counts how often these groups' ranks have reported the loss of a tree.
[[nodiscard]] std::uint64_t failovers_of(const std::set<std::string>& groups, const RankFleet& fleet);

}  // namespace tributary::chaos
