#pragma once
// Which aggregators' death must be noticed: those under groups of which every rank says that it is on its tree.
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "client/cli/cluster/local_cluster.h"
#include "tests/system/chaos/rank_fleet.h"

namespace tributary::chaos {

/// The aggregators, by index, that carry a group which all of its ranks, as last reported, use; and those groups'
/// names. Empty also while the manager does not answer.
[[nodiscard]] std::map<std::size_t, std::set<std::string>> trees_in_use(const cli::LocalCluster& cluster,
                                                                        const RankFleet& fleet);

/// How often these groups' ranks have reported the loss of a tree.
[[nodiscard]] std::uint64_t failovers_of(const std::set<std::string>& groups, const RankFleet& fleet);

}  // namespace tributary::chaos
