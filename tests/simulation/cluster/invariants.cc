#include "tests/simulation/cluster/invariants.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "tests/simulation/cluster/cluster.h"

namespace tributary::simulation {
namespace {

using Ranks = std::vector<std::unique_ptr<SimRank>>;
using LaneOfEpoch = std::tuple<std::uint64_t, std::uint32_t, std::size_t>;  // group, epoch, lane

/// The progress of the ranks of one lane.
struct Progress {
  std::uint64_t results_min = UINT64_MAX;
  std::uint64_t results_max = 0;
  std::uint64_t contributed_min = UINT64_MAX;
  std::uint32_t window = 0;
  std::size_t ranks = 0;
};

std::map<LaneOfEpoch, Progress> progress_of(Cluster& cluster, const Ranks& ranks) {
  std::map<LaneOfEpoch, Progress> lanes;
  for (const auto& rank : ranks) {
    if (!rank->alive()) continue;
    const auto positions = rank->communicator().lane_positions();
    for (std::size_t i = 0; i < positions.size(); ++i) {
      const auto& p = positions[i];
      Progress& lane = lanes[{p.group, p.epoch, i}];
      lane.results_min = std::min(lane.results_min, p.prefix);
      lane.results_max = std::max(lane.results_max, p.prefix);
      lane.contributed_min = std::min(lane.contributed_min, p.contributed);
      lane.window = p.window;
      ++lane.ranks;
      if (p.contributed > p.prefix + p.window) cluster.violation(rank->host() + " contributed beyond its window");
    }
  }
  return lanes;
}

void check_lanes(Cluster& cluster, const Ranks& ranks) {
  for (const auto& [key, lane] : progress_of(cluster, ranks)) {
    if (lane.ranks != ranks.size()) continue;  // some ranks are between two epochs, or gone
    if (lane.results_max > lane.contributed_min)
      cluster.violation("a rank has a result that another has not contributed to");
    if (lane.results_max - lane.results_min > lane.window) cluster.violation("two ranks are more than a window apart");
  }
}

}  // namespace

void check_invariants(Cluster& cluster) {
  for (const auto& ranks : cluster.groups()) check_lanes(cluster, ranks);
  for (const auto& a : cluster.aggregators()) {
    if (a->alive() && a->budget().in_use() > a->budget().bytes_max())
      cluster.violation(a->name() + " promised more memory than it has");
  }
}

}  // namespace tributary::simulation
