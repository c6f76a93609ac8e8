#pragma once
// Checks that packets really were lost and repeated, in runs that test this.
#include <string>

#include "client/cli/cluster/local_cluster.h"

namespace tributary::chaos {

/// Returns the faults that this run was told to make (TRIBUTARY_TEST_PACKET_FAULTS) but that no aggregator's metrics
/// show; empty: all of them happened.
[[nodiscard]] std::string faults_not_seen(const cli::LocalCluster& cluster);

}  // namespace tributary::chaos
