#pragma once
// That packets really were lost and repeated where a run is about that.
#include <string>

#include "client/cli/cluster/local_cluster.h"

namespace tributary::chaos {

/// Of the faults that this run was told to make (TRIBUTARY_TEST_PACKET_FAULTS) those of which no aggregator's metrics
/// tell; empty: all of them happened.
[[nodiscard]] std::string faults_not_seen(const cli::LocalCluster& cluster);

}  // namespace tributary::chaos
