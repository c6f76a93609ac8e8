// The cost model: every link and every aggregator serves its flows in fair shares, the slowest one sets the pace, and
// each level adds its latency and the time until a first segment has passed.
#include <algorithm>
#include <cmath>

#include "tree-manager/planner/candidate.h"
#include "tributary/protocol/lane_memory.h"

namespace tributary::manager {
namespace {

// One more aggregator, up and down, costs two network hops and two wake-ups. Measured values differ by transport; only
// the order matters: microseconds against the milliseconds that a large operation takes.
constexpr double kLevelSeconds = 20e-6;

double seconds_per_byte(std::uint64_t load, std::uint64_t bits_per_second) {
  if (bits_per_second == 0) return load == 0 ? 0 : 1.0;
  return static_cast<double>(load) / static_cast<double>(kFullRate) * 8 / static_cast<double>(bits_per_second);
}

}  // namespace

CostModel::CostModel(const DomainTree& domains, Sites& sites, const PlanRequest& request)
    : domains_(domains), sites_(sites), request_(request) {
  uplinks_.load.assign(domains.domains().size(), 0);
  hosts_.load.assign(sites.hosts.size(), 0);
  std::vector<bool> has_site(sites.hosts.size(), false);
  for (const Site& site : sites.sites) {
    if (site.host != kNoHost) has_site[site.host] = true;
  }
  for (std::size_t h = 0; h < sites.hosts.size(); ++h) {
    SiteHost& host = sites.hosts[h];
    // Ranks beside an aggregator of their own host may load no link at all: their edges are counted one by one.
    if (!has_site[h]) host.load += kFullRate * host.ranks;
    if (host.ranks == 0) continue;
    members_floor_ = std::max(members_floor_, seconds_per_byte(host.load, host.place.rate_bits_per_second));
  }
}

void CostModel::put_edge(std::uint32_t from_domain, std::uint32_t from_host, const SiteAggregator& to,
                         std::uint64_t amount) {
  if (from_host == to.host) return;
  if (from_host != kNoHost) hosts_.add(from_host, amount);
  hosts_.add(to.host, amount);
  domains_.each_uplink_between(from_domain, to.domain, [&](std::uint32_t domain) { uplinks_.add(domain, amount); });
}

void CostModel::put(const Candidate& candidate, std::uint64_t weight) {
  uplinks_.clear();
  hosts_.clear();
  for (const CandidateNode& node : candidate.nodes) {
    const SiteAggregator& to = sites_.aggregators[node.aggregator];
    for (const RankRun& run : node.runs) {
      const Site& from = sites_.sites[run.site];
      put_edge(from.domain, from.host, to, weight * (run.end - run.begin));
    }
    for (const std::uint32_t below : node.below) {
      const SiteAggregator& from = sites_.aggregators[candidate.nodes[below].aggregator];
      put_edge(from.domain, from.host, to, weight);
    }
  }
}

void CostModel::estimate(Candidate& candidate, std::uint64_t weight) {
  put(candidate, weight);
  candidate.traffic = 0;
  double slowest = members_floor_;
  for (const std::uint32_t domain : uplinks_.which) {
    candidate.traffic += uplinks_.load[domain];
    slowest = std::max(slowest, seconds_per_byte(sites_.uplink_load[domain] + uplinks_.load[domain],
                                                 domains_.domains()[domain].uplink_bits_per_second));
  }
  for (const std::uint32_t h : hosts_.which) {
    const SiteHost& host = sites_.hosts[h];
    slowest = std::max(slowest, seconds_per_byte(host.load + hosts_.load[h], host.place.rate_bits_per_second));
  }
  double fill = 0;
  for (const CandidateNode& node : candidate.nodes) {
    const SiteAggregator& at = sites_.aggregators[node.aggregator];
    const std::uint64_t flows = node.children + (node.parent == kNoParent ? 0U : 1U);
    slowest = std::max(slowest, seconds_per_byte(at.load + weight * flows, at.line_rate_bits_per_second));
    fill = std::max(fill, seconds_per_byte(kFullRate * flows, at.line_rate_bits_per_second));
  }
  candidate.seconds = static_cast<double>(request_.operation_bytes) * slowest +
                      candidate.depth * (kLevelSeconds + fill * request_.segment_bytes);
}

void CostModel::commit(const Candidate& candidate, std::uint64_t weight) {
  put(candidate, weight);
  used_domains_.insert(uplinks_.which.begin(), uplinks_.which.end());
  for (const std::uint32_t domain : uplinks_.which) sites_.uplink_load[domain] += uplinks_.load[domain];
  for (const std::uint32_t h : hosts_.which) sites_.hosts[h].load += hosts_.load[h];
  for (const CandidateNode& node : candidate.nodes) {
    SiteAggregator& at = sites_.aggregators[node.aggregator];
    used_aggregators_.insert(node.aggregator);
    at.load += weight * (node.children + (node.parent == kNoParent ? 0U : 1U));
    at.memory_free_bytes -= lane_reservation_bytes(node.children, request_.window, request_.segment_bytes);
    at.children_max = children_possible(request_.aggregators[at.index], at.memory_free_bytes, request_);
  }
}

/// Returns the time that a ring of all members, in the order of ranks, takes for each byte that a member sends.
double CostModel::ring_seconds_per_byte() const {
  const auto ranks = sites_.host_of_rank.size();
  std::vector<std::uint64_t> crossings(domains_.domains().size(), 0);  // in both directions, which are equal
  for (std::size_t r = 0; r < ranks; ++r) {
    const SiteHost& from = sites_.hosts[sites_.host_of_rank[r]];
    const SiteHost& to = sites_.hosts[sites_.host_of_rank[(r + 1) % ranks]];
    domains_.each_uplink_between(from.place.domain, to.place.domain, [&](std::uint32_t d) { ++crossings[d]; });
  }
  double slowest = members_floor_;
  for (std::size_t d = 0; d < crossings.size(); ++d) {
    slowest =
        std::max(slowest, seconds_per_byte(kFullRate * crossings[d] / 2, domains_.domains()[d].uplink_bits_per_second));
  }
  return slowest;
}

PathRates CostModel::rates() const {
  double trees = 0;
  for (const std::uint32_t d : used_domains_) {
    trees = std::max(trees, seconds_per_byte(sites_.uplink_load[d], domains_.domains()[d].uplink_bits_per_second));
  }
  for (const std::uint32_t a : used_aggregators_) {
    const SiteAggregator& at = sites_.aggregators[a];
    const SiteHost& host = sites_.hosts[at.host];
    trees = std::max({trees, seconds_per_byte(at.load, at.line_rate_bits_per_second),
                      seconds_per_byte(host.load, host.place.rate_bits_per_second)});
  }
  const auto rate_of = [](double seconds) {
    return seconds > 0 ? static_cast<std::uint64_t>(std::llround(8 / seconds)) : std::uint64_t{0};
  };
  return {.links = rate_of(members_floor_), .trees = rate_of(trees), .ranks = rate_of(ring_seconds_per_byte())};
}

}  // namespace tributary::manager
