#pragma once
// The layout of one group on the domains, over which the tree builder walks. Each plan makes a layout. It grows with
// the domains that hold members, not with the fabric, and ranks appear only as runs of a sorted array.
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "tree-manager/planner/domains.h"
#include "tree-manager/planner/fabric.h"

namespace tributary::manager {

inline constexpr std::uint32_t kNoSite = UINT32_MAX;
inline constexpr std::uint32_t kNoHost = UINT32_MAX;

/// Returns the rate to compare by; 0: unknown.
[[nodiscard]] constexpr std::uint64_t rate_or_assumed(std::uint64_t bits_per_second) noexcept {
  return bits_per_second == 0 ? kAssumedRateDefault : bits_per_second;
}

/// A host of this plan: of members, of aggregators, or both.
struct SiteHost {
  HostPlace place;
  std::uint32_t ranks = 0;
  bool has_aggregator = false;
  std::uint64_t load = 0;  // on its links, in kFullRate units, before this plan's lanes
};

/// An aggregator that may be used.
struct SiteAggregator {
  std::uint32_t index = 0;  // in PlanRequest::aggregators
  std::uint32_t host = 0;   // in Sites::hosts
  std::uint32_t domain = 0;
  std::uint64_t memory_free_bytes = 0;          // goes down as lanes are planned
  std::uint32_t children_max = 0;               // by its own limit and its memory
  std::uint64_t load = 0;                       // flows through it, in kFullRate units
  std::uint64_t line_rate_bits_per_second = 0;  // 0: unknown
};

/// A domain that holds members, or a single host with several ranks and an aggregator of its own.
struct Site {
  std::uint32_t domain = 0;
  std::uint32_t host = kNoHost;  // a host site; else kNoHost
  std::uint32_t level = 0;       // 0 for a host site
  std::uint32_t parent = kNoSite;
  std::uint32_t ranks_begin = 0;  // in Sites::order: those of this site alone, not of sites below it
  std::uint32_t ranks_end = 0;
  std::uint32_t aggregators_begin = 0;  // in Sites::aggregators: all of its subtree
  std::uint32_t aggregators_end = 0;
};

struct Sites {
  std::vector<SiteHost> hosts;
  std::vector<SiteAggregator> aggregators;  // sorted by place, then name
  std::vector<Site> sites;                  // children before parents; the last is the fabric's root
  std::vector<std::uint32_t> order;         // ranks, sorted by place
  std::vector<std::uint32_t> host_of_rank;  // in hosts
  std::vector<std::uint64_t> uplink_load;   // by domain
  std::uint32_t lowest_common = 0;          // the lowest site that holds all members
  std::string unknown_host;                 // the first rank's host that has no place; then nothing else is set
  std::uint32_t unknown_rank = 0;
};

[[nodiscard]] Sites lay_out(const DomainTree& domains, const PlanRequest& request, const FabricLoad& load);

/// Returns the most children that this aggregator can serve in one more lane.
[[nodiscard]] std::uint32_t children_possible(const PlanAggregator& aggregator, std::uint64_t memory_free_bytes,
                                              const PlanRequest& request) noexcept;

}  // namespace tributary::manager
