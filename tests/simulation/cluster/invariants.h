#pragma once
// Invariants of a cluster that hold after every step.

namespace tributary::simulation {

class Cluster;

/// Checks for every lane of one epoch, with the number of results that a rank has from the first on without a gap, and
/// the number of segments that it has contributed:
///   - no rank has a result to which some rank has not contributed (invariant 1);
///   - no rank is more than a window ahead of any other (invariant 4: so a window of results kept is enough);
///   - no rank contributes beyond its window.
/// No aggregator may promise more memory than it has. Reports what is broken to the cluster.
void check_invariants(Cluster& cluster);

}  // namespace tributary::simulation
