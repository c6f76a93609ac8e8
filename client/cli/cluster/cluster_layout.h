#pragma once
// An invented fabric whose best trees have as many levels as the user wants.
#include <cstdint>
#include <string>
#include <vector>

#include "tributary/protocol/error.h"

namespace tributary::cli {

inline constexpr std::uint32_t kLevelsMax = 6;  // a topology has at most this many levels of switches
inline constexpr std::uint32_t kLocalRanksMax = 1024;
inline constexpr std::uint32_t kLocalAggregatorsMax = 64;
inline constexpr std::uint64_t kNeverNarrow = 200'000'000'000'000;  // bit/s: such a link limits no tree

struct ClusterShape {
  std::uint32_t ranks = 1;
  std::uint32_t aggregators = 1;
  std::uint32_t levels = 0;  // 0: one, or two if there are at least three aggregators and four ranks
  // Rates of links, for the topology: of a rank, which a switch's uplink has, too, and of an aggregator.
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
  std::string topology;                   // for the manager: YAML
  std::vector<std::string> host_of_rank;  // the worker hosts' names
  std::vector<PlacedAggregator> aggregators;
};

/// With the rates as they come: every switch has an aggregator beside it, and its uplink carries no more than one rank's traffic: so each switch
/// must reduce the data from below before they go up, and a tree over all switches is the best one. The remaining
/// aggregators stand beside the leaf switches, to take over when another is lost.
///
/// Errc::bad_argument if this number of ranks and aggregators cannot make a tree with this many levels.
[[nodiscard]] Result<ClusterLayout> lay_out_cluster(const ClusterShape& shape);

}  // namespace tributary::cli
