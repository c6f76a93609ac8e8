#pragma once
// The layout of one group on the domains, from which the tree builder works. Its size depends on the domains that hold
// members, not on the fabric, and ranks appear only as runs of a sorted array. Lanes of different routes leave a host
// by different interfaces, so each route has its own view: its sites, its order of the ranks, and its aggregators. All
// views share the loads of interfaces and uplinks, and the aggregators' memory.
#include <cstdint>
#include <string>
#include <vector>

#include "tree-manager/planner/aggregator_index.h"
#include "tree-manager/planner/domains.h"
#include "tree-manager/planner/fabric.h"

namespace tributary::manager {

inline constexpr std::uint32_t kNoSite = UINT32_MAX;
inline constexpr std::uint32_t kNoHost = UINT32_MAX;

/// Returns the rate, or the assumed rate for 0 (unknown).
[[nodiscard]] constexpr std::uint64_t rate_or_assumed(std::uint64_t bits_per_second) noexcept {
  return bits_per_second == 0 ? kAssumedRateDefault : bits_per_second;
}

[[nodiscard]] constexpr double seconds_per_byte(std::uint64_t load, std::uint64_t bits_per_second) noexcept {
  const std::uint64_t rate = rate_or_assumed(bits_per_second);
  return static_cast<double>(load) / static_cast<double>(kFullRate) * 8 / static_cast<double>(rate);
}

/// An interface of a host of this plan, which has members, aggregators or both. Most hosts have one interface.
struct SiteHost {
  HostPlace place;
  std::uint32_t uplink = 0;  // uplink of its domain, index in Sites::uplinks
  std::uint32_t ranks = 0;
  std::uint64_t load = 0;  // load before this plan's lanes, in kFullRate units
};

/// A domain through which traffic of this plan may pass, with its uplink.
struct SiteUplink {
  std::uint32_t domain = 0;
  std::uint32_t parent = kNoSite;  // index in Sites::uplinks, where parents come later
  std::uint64_t rate_bits_per_second = 0;
  std::uint64_t load = 0;  // load before this plan's lanes, in kFullRate units
};

/// The room that is left on an aggregator while lanes are planned.
struct AggregatorBudget {
  std::uint32_t index = 0;  // index in PlanRequest::aggregators
  std::uint64_t memory_free_bytes = 0;
  std::uint32_t children_max = 0;  // most children, by its own limit and its memory
  std::uint64_t load = 0;          // load of the flows through it, in kFullRate units
};

/// An aggregator that may be used on one route.
struct SiteAggregator {
  std::uint32_t index = 0;   // index in PlanRequest::aggregators
  std::uint32_t budget = 0;  // index in Sites::budgets
  std::uint32_t host = 0;    // index in Sites::hosts
  std::uint32_t interface = 0;
  std::uint32_t domain = 0;
  std::uint64_t line_rate_bits_per_second = 0;  // 0: unknown
};

/// A domain that holds members, or a single host with several ranks and its own aggregator.
struct Site {
  std::uint32_t domain = 0;
  std::uint32_t uplink = 0;      // uplink of its domain, index in Sites::uplinks
  std::uint32_t host = kNoHost;  // the host of a host site; else kNoHost
  std::uint32_t level = 0;       // 0 for a host site
  std::uint32_t parent = kNoSite;
  std::uint32_t ranks_begin = 0;  // index in Sites::order; only ranks of this site, not of sites below it
  std::uint32_t ranks_end = 0;
  std::uint32_t aggregators_begin = 0;  // index in Sites::aggregators; all aggregators of its subtree
  std::uint32_t aggregators_end = 0;
};

/// The part of the sites that lanes of one route use.
struct RouteView {
  std::uint32_t route = 0;
  std::uint32_t sites_begin = 0;       // index in Sites::sites; children before parents, the fabric's root last
  std::uint32_t lowest_common = 0;     // the lowest site that holds all members
  std::uint32_t scope = 0;             // the site where a root is looked for first: lowest_common, or a site above it
  std::vector<std::uint32_t> members;  // indices in Sites::hosts, one for each host of members
};

struct Sites {
  std::vector<SiteHost> hosts;
  std::vector<AggregatorBudget> budgets;
  std::vector<SiteAggregator> aggregators;  // view by view, sorted by place, then name
  std::vector<Site> sites;                  // view by view
  std::vector<std::uint32_t> order;         // ranks, view by view, sorted by place
  std::vector<RouteView> views;
  std::vector<std::uint32_t> host_of_rank;  // indices in `hosts`, on the first route
  std::vector<SiteUplink> uplinks;          // uplinks of all hosts' domains and of the domains above; root last
  // The first rank whose host has no place, or is on no route. If it is set, no other member is set.
  std::string unknown_host;
  std::uint32_t unknown_rank = 0;
  bool off_all_routes = false;

  /// Calls visit(uplink) for every uplink on the way between two domains. All numbers are indices of `uplinks`.
  template <class Visit>
  void each_uplink_between(std::uint32_t a, std::uint32_t b, const Visit& visit) const {
    // The domain with the lower number cannot be above the other domain.
    while (a != b) {
      std::uint32_t& lower = a < b ? a : b;
      visit(lower);
      lower = uplinks[lower].parent;
    }
  }
  [[nodiscard]] AggregatorBudget& budget(const SiteAggregator& of) { return budgets[of.budget]; }
  [[nodiscard]] const AggregatorBudget& budget(const SiteAggregator& of) const { return budgets[of.budget]; }
};

enum class Reach : std::uint8_t {
  members,  // aggregators below the lowest domain that holds all members
  fabric,   // also other aggregators; they are roots only if there is no tree otherwise
  above,    // also other aggregators; roots may be anywhere
};

/// Lays the group out on the first `routes` routes, or on the first of its own rail if it has one, except routes on which
/// a member has no interface. Its time depends
/// on the group's size and, if the aggregators at the places of its ranks do not suffice, on the number of all
/// aggregators within reach.
[[nodiscard]] Sites lay_out(const DomainTree& domains, const AggregatorIndex& index, const PlanRequest& request,
                            const FabricLoad& load, std::uint32_t routes, Reach reach);

/// Returns the number of children that this aggregator can serve in one more lane.
[[nodiscard]] std::uint32_t children_possible(const PlanAggregator& aggregator, std::uint64_t memory_free_bytes,
                                              const PlanRequest& request) noexcept;

/// Returns the rate of all links of a host together, for an aggregator that has reported none; 0: a rate is not known.
[[nodiscard]] std::uint64_t host_rate(const DomainTree& domains, std::uint32_t host);

/// Returns the name under which FabricLoad keeps an interface's load.
[[nodiscard]] std::string load_name(const std::string& host, std::uint32_t interface);

}  // namespace tributary::manager
