#pragma once
// Invariants of a cluster that hold after every step.

namespace tributary::simulation {

class Cluster;

/// Checks every lane of one epoch. A rank's results count from the first on, up to the first gap; its contributions are
/// the segments that it has contributed.
///   - No rank has a result to which some rank has not contributed (invariant 1).
///   - No rank is more than a window ahead of another rank (invariant 4: so it is enough to keep a window of results).
///   - No rank contributes beyond its window.
/// No aggregator may promise more memory than it has. Reports each broken invariant to the cluster.
void check_invariants(Cluster& cluster);

}  // namespace tributary::simulation
