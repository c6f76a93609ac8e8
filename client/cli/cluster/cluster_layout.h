#pragma once
// An invented fabric whose best trees have the number of levels that the user wants.
#include <cstdint>
#include <string>
#include <vector>

#include "tributary/protocol/error.h"

namespace tributary::cli {

inline constexpr std::uint32_t kLevelsMax = 6;  // a topology has at most this many levels of switches
inline constexpr std::uint32_t kLocalRanksMax = 1024;
inline constexpr std::uint32_t kLocalAggregatorsMax = 64;
inline constexpr std::uint64_t kNeverNarrow = 200'000'000'000'000;  // rate in bit/s that limits no tree

struct ClusterShape {
  std::uint32_t ranks = 1;
  std::uint32_t aggregators = 1;
  std::uint32_t levels = 0;  // 0: one level, or two if there are at least three aggregators and four ranks
  // The rates of links in the topology: of a rank's link and a switch's uplink, and of an aggregator's link.
  std::uint64_t rank_bits_per_second = 100'000'000'000;
  std::uint64_t aggregator_bits_per_second = kNeverNarrow;
};

struct PlacedAggregator {
  std::string name;
  std::string host;
  std::uint32_t level = 1;
};

struct ClusterLayout {
  std::uint32_t levels = 1;
  std::string topology;                   // the topology for the manager, as YAML
  std::vector<std::string> host_of_rank;  // by rank: name of its host
  std::vector<PlacedAggregator> aggregators;
};

/// Makes the layout. With the default rates, every switch has an aggregator next to it, and its uplink has only one
/// rank's rate. So each switch must reduce the data from below before they go up, and a tree over all switches is the
/// best tree. The other aggregators are next to the leaf switches, to take over when an aggregator is lost.
/// Errc::bad_argument: this number of ranks and aggregators cannot make a tree with this many levels.
[[nodiscard]] Result<ClusterLayout> lay_out_cluster(const ClusterShape& shape);

}  // namespace tributary::cli
