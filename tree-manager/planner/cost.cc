// The cost model: every link and every aggregator serves its flows in fair shares, the slowest one sets the pace, and
// each level adds its latency and the time until a first segment has passed.
#include <algorithm>
#include <cmath>

#include "tree-manager/planner/candidate.h"
#include "tributary/protocol/descriptor.h"
#include "tributary/protocol/lane_memory.h"

namespace tributary::manager {
namespace {

// One more aggregator, up and down, costs two network hops and two wake-ups. Measured values differ by transport; only
// the order matters: microseconds against the milliseconds that a large operation takes.
constexpr double kLevelSeconds = 20e-6;

double seconds_per_byte(std::uint64_t load, std::uint64_t bits_per_second) {
  const std::uint64_t rate = rate_or_assumed(bits_per_second);
  return static_cast<double>(load) / static_cast<double>(kFullRate) * 8 / static_cast<double>(rate);
}

/// The narrowest of the resources that one path uses.
class Narrowest {
 public:
  void use(std::uint64_t load, std::uint64_t bits_per_second) {
    if (bits_per_second == 0) known_ = false;
    seconds_ = std::max(seconds_, seconds_per_byte(load, bits_per_second));
  }
  /// Returns bits per second; 0 where nothing is used, or where the rate of something used is not known.
  [[nodiscard]] std::uint64_t rate() const {
    if (!known_ || seconds_ <= 0) return 0;
    return static_cast<std::uint64_t>(std::llround(std::min(8 / seconds_, static_cast<double>(kPathRateMax))));
  }

 private:
  double seconds_ = 0;
  bool known_ = true;
};

}  // namespace

CostModel::CostModel(const DomainTree& domains, Sites& sites, const PlanRequest& request, std::uint32_t lanes)
    : domains_(domains), sites_(sites), request_(request) {
  uplinks_.load.assign(domains.domains().size(), 0);
  hosts_.load.assign(sites.hosts.size(), 0);
  others_on_uplinks_ = sites.uplink_load;
  others_on_hosts_.reserve(sites.hosts.size());
  for (const SiteHost& host : sites.hosts) others_on_hosts_.push_back(host.load);
  std::vector<bool> has_site(sites.hosts.size(), false);
  for (const Site& site : sites.sites) {
    if (site.host != kNoHost) has_site[site.host] = true;
  }
  share_.assign(sites.hosts.size(), 0);
  const auto views = static_cast<std::uint32_t>(sites.views.size());
  for (std::uint32_t v = 0; v < std::min(views, lanes); ++v) {
    const std::uint32_t lanes_here = lanes / views + (v < lanes % views ? 1 : 0);
    for (const std::uint32_t h : sites.views[v].members) share_[h] += kFullRate * lanes_here / lanes;
  }
  members_out_.assign(sites.hosts.size(), 0);
  for (std::size_t h = 0; h < sites.hosts.size(); ++h) {
    SiteHost& host = sites.hosts[h];
    // Ranks beside an aggregator of their own host may load no link at all: their edges are counted one by one.
    if (!has_site[h]) members_out_[h] = share_[h] * host.ranks;
    host.load += members_out_[h];
    if (share_[h] == 0) continue;
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
    slowest =
        std::max(slowest, seconds_per_byte(sites_.budget(at).load + weight * flows, at.line_rate_bits_per_second));
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
    const SiteAggregator& at = sites_.aggregators[node.aggregator];
    AggregatorBudget& budget = sites_.budget(at);
    used_aggregators_.insert(node.aggregator);
    for (const RankRun& run : node.runs) {
      const std::uint32_t from = sites_.sites[run.site].host;
      if (from != kNoHost && from != at.host) members_out_[from] += weight * (run.end - run.begin);
    }
    budget.load += weight * (node.children + (node.parent == kNoParent ? 0U : 1U));
    budget.memory_free_bytes -= lane_reservation_bytes(node.children, request_.window, request_.segment_bytes);
    budget.children_max = children_possible(request_.aggregators[at.index], budget.memory_free_bytes, request_);
  }
}

std::uint64_t CostModel::links_rate() const {
  Narrowest links;
  for (std::size_t h = 0; h < sites_.hosts.size(); ++h) {
    const SiteHost& host = sites_.hosts[h];
    if (share_[h] == 0) continue;
    // However much the ranks reduce within their host, one vector leaves it.
    const std::uint64_t members = std::max(members_out_[h], share_[h]);
    links.use(others_on_hosts_[h] + members, host.place.rate_bits_per_second);
  }
  return links.rate();
}

std::uint64_t CostModel::trees_rate() const {
  Narrowest trees;
  for (const std::uint32_t d : used_domains_) {
    trees.use(sites_.uplink_load[d], domains_.domains()[d].uplink_bits_per_second);
  }
  for (const std::uint32_t a : used_aggregators_) {
    const SiteAggregator& at = sites_.aggregators[a];
    const SiteHost& host = sites_.hosts[at.host];
    trees.use(sites_.budget(at).load, at.line_rate_bits_per_second);
    if (host.load > 0) trees.use(host.load, host.place.rate_bits_per_second);
  }
  return trees.rate();
}

/// The ring goes through all members in the order of ranks: its edges within a host load no link. Ranks listen for one
/// another at the interface of the first lane.
std::uint64_t CostModel::ring_rate() const {
  const auto ranks = sites_.host_of_rank.size();
  std::vector<std::uint64_t> crossings(domains_.domains().size(), 0);  // in both directions, which are equal
  std::vector<std::uint64_t> leaving(sites_.hosts.size(), 0);
  for (std::size_t r = 0; r < ranks; ++r) {
    const std::uint32_t from = sites_.host_of_rank[r];
    const std::uint32_t to = sites_.host_of_rank[(r + 1) % ranks];
    if (from == to) continue;
    ++leaving[from];
    domains_.each_uplink_between(sites_.hosts[from].place.domain, sites_.hosts[to].place.domain,
                                 [&](std::uint32_t d) { ++crossings[d]; });
  }
  Narrowest ring;
  for (std::size_t h = 0; h < leaving.size(); ++h) {
    if (leaving[h] == 0) continue;
    ring.use(others_on_hosts_[h] + kFullRate * leaving[h], sites_.hosts[h].place.rate_bits_per_second);
  }
  for (std::size_t d = 0; d < crossings.size(); ++d) {
    if (crossings[d] == 0) continue;
    ring.use(others_on_uplinks_[d] + kFullRate * crossings[d] / 2, domains_.domains()[d].uplink_bits_per_second);
  }
  return ring.rate();
}

PathRates CostModel::rates() const {
  return {.links = links_rate(), .trees = trees_rate(), .ranks = ring_rate()};
}

}  // namespace tributary::manager
