#pragma once
// Makes the variables that `tributary run` sets for a rank.
#include <cstdint>

#include "client/cli/cluster/local_cluster.h"
#include "client/cli/network/host_network.h"
#include "client/cli/run/run_command.h"

namespace tributary::cli {

/// Returns the name of the host that one rank has for itself.
[[nodiscard]] std::string host_of_rank(std::uint32_t rank);

/// Returns this process's variables plus the rank's own. `cluster` and `network` may be nullptr.
[[nodiscard]] Environment rank_environment(const RunOptions& options, const LocalCluster* cluster,
                                           const HostNetwork* network, std::uint16_t port, std::uint32_t rank);

}  // namespace tributary::cli
