#pragma once
// Checks that packets really were lost and repeated, in runs with such faults.
#include <string>

#include "client/cli/cluster/local_cluster.h"

namespace tributary::chaos {

/// Returns the faults that TRIBUTARY_TEST_PACKET_FAULTS demands of this run, but that no aggregator's metrics show;
/// empty: all these faults happened.
[[nodiscard]] std::string faults_not_seen(const cli::LocalCluster& cluster);

}  // namespace tributary::chaos
