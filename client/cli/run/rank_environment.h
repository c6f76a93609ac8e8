#pragma once
// The variables that `tributary run` gives a rank.
#include <cstdint>

#include "client/cli/cluster/local_cluster.h"
#include "client/cli/network/host_network.h"
#include "client/cli/run/run_command.h"

namespace tributary::cli {

/// The name of the host that a rank has to itself.
[[nodiscard]] std::string host_of_rank(std::uint32_t rank);

/// Returns this process's variables with the rank's own. `cluster` and `network` may be nullptr.
[[nodiscard]] Environment rank_environment(const RunOptions& options, const LocalCluster* cluster,
                                           const HostNetwork* network, std::uint16_t port, std::uint32_t rank);

}  // namespace tributary::cli
