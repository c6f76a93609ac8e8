#pragma once
// An invented fabric whose best trees have as many levels as wanted.
#include <cstdint>
#include <string>
#include <vector>

#include "tributary/protocol/error.h"

namespace tributary::cli {

inline constexpr std::uint32_t kLevelsMax = 6;  // a topology has no more levels of switches
inline constexpr std::uint32_t kLocalRanksMax = 1024;
inline constexpr std::uint32_t kLocalAggregatorsMax = 64;

struct ClusterShape {
  std::uint32_t ranks = 1;
  std::uint32_t aggregators = 1;
  std::uint32_t levels = 0;  // 0: one, or two where there are at least three aggregators and four ranks
};

struct PlacedAggregator {
  std::string name;
  std::string host;
  std::uint32_t level = 1;
};

struct ClusterLayout {
  std::uint32_t levels = 1;
  std::string topology;                   // for the manager: YAML
  std::vector<std::string> host_of_rank;  // the worker hosts' names
  std::vector<PlacedAggregator> aggregators;
};

/// Every switch has an aggregator beside it, and its uplink carries no more than one rank's traffic: so each switch
/// must reduce what comes from below before it goes up, and a tree over all switches is the best one. What remains of
/// the aggregators stands beside the leaf switches, to take over when another is lost.
///
/// Errc::bad_argument when no tree of so many levels can be made of so many ranks and aggregators.
[[nodiscard]] Result<ClusterLayout> lay_out_cluster(const ClusterShape& shape);

}  // namespace tributary::cli
