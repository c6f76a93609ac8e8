// The cost model: every link and every aggregator serves its flows in fair shares, the slowest of them gives the rate
// of all, and each level adds its latency and the time of a first segment.
#include <algorithm>
#include <numeric>

#include "tree-manager/planner/candidate.h"
#include "tree-manager/planner/narrowest.h"
#include "tributary/protocol/assert.h"
#include "tributary/protocol/descriptor.h"
#include "tributary/protocol/lane_memory.h"

namespace tributary::manager {
namespace {

// The latency of one more aggregator, up and down: two network hops and two wake-ups. Measured values depend on the
// transport, but only their size matters: microseconds, where a large operation takes milliseconds.
constexpr double kLevelSeconds = 20e-6;
// Unequal weights must save this part of the time that equal weights take; estimates are not more exact.
constexpr double kWeightsPay = 0.02;

/// The number of links of an aggregator: to its children and to its parent.
std::uint64_t flows_of(const CandidateNode& node) {
  return node.children + (node.parent == kNoParent ? 0U : 1U);
}

std::vector<double> shares_of(const std::vector<std::uint32_t>& weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<double> shares;
  for (const std::uint32_t weight : weights) shares.push_back(weight / sum);
  return shares;
}

}  // namespace

CostModel::CostModel(Sites& sites, const PlanRequest& request, std::uint32_t lanes) : sites_(sites), request_(request) {
  uplinks_.load.assign(sites.uplinks.size(), 0);
  hosts_.load.assign(sites.hosts.size(), 0);
  others_on_hosts_.reserve(sites.hosts.size());
  others_on_uplinks_.reserve(sites.uplinks.size());
  for (const SiteUplink& uplink : sites.uplinks) others_on_uplinks_.push_back(uplink.load);
  for (const SiteHost& host : sites.hosts) others_on_hosts_.push_back(host.load);
  has_site_.assign(sites.hosts.size(), false);
  for (const Site& site : sites.sites) {
    if (site.host != kNoHost) has_site_[site.host] = true;
  }
  members_out_.assign(sites.hosts.size(), 0);
  charged_.assign(sites.hosts.size(), 0);
  const auto views = static_cast<std::uint32_t>(sites.views.size());
  std::vector<std::uint64_t> parts(views, 0);
  for (std::uint32_t v = 0; v < std::min(views, lanes); ++v)
    parts[v] = kFullRate * (lanes / views + (v < lanes % views ? 1 : 0)) / lanes;
  charge_members(parts);
}

void CostModel::charge_members(const std::vector<std::uint64_t>& parts) {
  share_.assign(sites_.hosts.size(), 0);
  for (std::size_t v = 0; v < parts.size(); ++v) {
    if (parts[v] == 0) continue;
    for (const std::uint32_t h : sites_.views[v].members) share_[h] += parts[v];
  }
  members_floor_ = 0;
  for (std::size_t h = 0; h < sites_.hosts.size(); ++h) {
    SiteHost& host = sites_.hosts[h];
    // Ranks beside an aggregator of their own host may load no link at all: their edges are counted one by one.
    const std::uint64_t charge = has_site_[h] ? 0 : share_[h] * host.ranks;
    members_out_[h] += charge - charged_[h];
    host.load += charge - charged_[h];
    charged_[h] = charge;
    if (share_[h] == 0) continue;
    const std::uint64_t all = others_on_hosts_[h] + charge;
    members_floor_ = std::max(members_floor_, seconds_per_byte(all, host.place.rate_bits_per_second));
  }
}

void CostModel::put_edge(std::uint32_t from_uplink, std::uint32_t from_host, const SiteAggregator& to,
                         std::uint64_t amount) {
  if (from_host == to.host) return;
  if (from_host != kNoHost) hosts_.add(from_host, amount);
  hosts_.add(to.host, amount);
  sites_.each_uplink_between(from_uplink, sites_.hosts[to.host].uplink,
                             [&](std::uint32_t uplink) { uplinks_.add(uplink, amount); });
}

void CostModel::put(const Candidate& candidate, std::uint64_t weight) {
  uplinks_.clear();
  hosts_.clear();
  for (const CandidateNode& node : candidate.nodes) {
    const SiteAggregator& to = sites_.aggregators[node.aggregator];
    for (const RankRun& run : node.runs) {
      const Site& from = sites_.sites[run.site];
      put_edge(from.uplink, from.host, to, weight * (run.end - run.begin));
    }
    for (const std::uint32_t below : node.below) {
      const SiteAggregator& from = sites_.aggregators[candidate.nodes[below].aggregator];
      put_edge(sites_.hosts[from.host].uplink, from.host, to, weight);
    }
  }
}

void CostModel::estimate(Candidate& candidate, std::uint64_t weight) {
  put(candidate, weight);
  candidate.traffic = 0;
  double slowest = members_floor_;
  for (const std::uint32_t u : uplinks_.which) {
    const SiteUplink& uplink = sites_.uplinks[u];
    candidate.traffic += uplinks_.load[u];
    slowest = std::max(slowest, seconds_per_byte(uplink.load + uplinks_.load[u], uplink.rate_bits_per_second));
  }
  for (const std::uint32_t h : hosts_.which) {
    const SiteHost& host = sites_.hosts[h];
    slowest = std::max(slowest, seconds_per_byte(host.load + hosts_.load[h], host.place.rate_bits_per_second));
  }
  for (const CandidateNode& node : candidate.nodes) {
    const SiteAggregator& at = sites_.aggregators[node.aggregator];
    const std::uint64_t load = sites_.budget(at).load + weight * flows_of(node);
    slowest = std::max(slowest, seconds_per_byte(load, at.line_rate_bits_per_second));
  }
  candidate.seconds = static_cast<double>(request_.operation_bytes) * slowest + latency_of(candidate);
}

/// The time that the levels add: their hops, and a first segment through the slowest aggregator of each level.
double CostModel::latency_of(const Candidate& candidate) const {
  double fill = 0;
  for (const CandidateNode& node : candidate.nodes) {
    const SiteAggregator& at = sites_.aggregators[node.aggregator];
    fill = std::max(fill, seconds_per_byte(kFullRate * flows_of(node), at.line_rate_bits_per_second));
  }
  return candidate.depth * (kLevelSeconds + fill * request_.segment_bytes);
}

CostModel::Lane CostModel::lane_of(const Candidate& candidate, std::uint32_t view, std::uint64_t weight) {
  Lane lane{.view = view, .weight = weight, .latency = latency_of(candidate)};
  put(candidate, 1);
  for (const std::uint32_t u : uplinks_.which) lane.uplinks.push_back({u, uplinks_.load[u]});
  for (const std::uint32_t h : hosts_.which) lane.hosts.push_back({h, hosts_.load[h]});
  for (const CandidateNode& node : candidate.nodes) {
    const SiteAggregator& at = sites_.aggregators[node.aggregator];
    lane.aggregators.push_back({node.aggregator, flows_of(node)});
    for (const RankRun& run : node.runs) {
      const std::uint32_t from = sites_.sites[run.site].host;
      if (from != kNoHost && from != at.host) lane.leaving.push_back({from, run.end - run.begin});
    }
  }
  return lane;
}

void CostModel::change(const Lane& lane, bool adds) {
  const auto apply = [&](std::uint64_t& load, const Lane::Flows& flows) {
    const std::uint64_t amount = lane.weight * flows.count;
    TRIBUTARY_ASSERT(adds || load >= amount, "{} of a load of {} are taken away", amount, load);
    load = adds ? load + amount : load - amount;
  };
  for (const Lane::Flows& flows : lane.uplinks) apply(sites_.uplinks[flows.which].load, flows);
  for (const Lane::Flows& flows : lane.hosts) apply(sites_.hosts[flows.which].load, flows);
  for (const Lane::Flows& flows : lane.aggregators) apply(sites_.budget(sites_.aggregators[flows.which]).load, flows);
  for (const Lane::Flows& flows : lane.leaving) apply(members_out_[flows.which], flows);
}

void CostModel::commit(const Candidate& candidate, std::uint32_t view, std::uint64_t weight) {
  change(lanes_.emplace_back(lane_of(candidate, view, weight)), true);
  for (const CandidateNode& node : candidate.nodes) {
    AggregatorBudget& budget = sites_.budget(sites_.aggregators[node.aggregator]);
    budget.memory_free_bytes -= lane_reservation_bytes(node.children, request_.window, request_.segment_bytes);
    budget.children_max = children_possible(request_.aggregators[budget.index], budget.memory_free_bytes, request_);
  }
}

LaneBurden CostModel::burden() const {
  constexpr std::uint32_t kNone = UINT32_MAX;
  const std::size_t uplinks = sites_.uplinks.size(), hosts = sites_.hosts.size();
  std::vector<std::uint32_t> numbers(uplinks + hosts + sites_.budgets.size(), kNone);
  LaneBurden burden;
  for (const Lane& lane : lanes_) {
    std::vector<LaneBurden::Use>& uses = burden.lanes.emplace_back();
    const auto use = [&](std::size_t which, const Lane::Flows& flows, std::uint64_t load, std::uint64_t rate) {
      std::uint32_t& number = numbers[which];
      if (number == kNone) {
        number = static_cast<std::uint32_t>(burden.before.size());
        burden.before.push_back(seconds_per_byte(load, rate));
      }
      burden.before[number] -= seconds_per_byte(lane.weight * flows.count, rate);
      uses.push_back({number, seconds_per_byte(kFullRate * flows.count, rate)});
    };
    for (const Lane::Flows& flows : lane.uplinks) {
      const SiteUplink& uplink = sites_.uplinks[flows.which];
      use(flows.which, flows, uplink.load, uplink.rate_bits_per_second);
    }
    for (const Lane::Flows& flows : lane.hosts) {
      const SiteHost& host = sites_.hosts[flows.which];
      use(uplinks + flows.which, flows, host.load, host.place.rate_bits_per_second);
    }
    for (const Lane::Flows& flows : lane.aggregators) {
      const SiteAggregator& at = sites_.aggregators[flows.which];
      use(uplinks + hosts + at.budget, flows, sites_.budget(at).load, at.line_rate_bits_per_second);
    }
  }
  if (sites_.views.size() > 1) add_members(burden);
  return burden;
}

/// Adds the members' interfaces of each view, which its lanes share. Two interfaces stand for all of a view: the
/// interface that is slowest by itself, and the interface that is slowest with the load of other groups.
void CostModel::add_members(LaneBurden& burden) const {
  for (std::uint32_t v = 0; v < sites_.views.size(); ++v) {
    struct Line {
      double before = 0, own = 0;
    };
    Line slowest, busiest;
    for (const std::uint32_t h : sites_.views[v].members) {
      const SiteHost& host = sites_.hosts[h];
      if (has_site_[h]) continue;
      const std::uint64_t rate = host.place.rate_bits_per_second;
      const Line line{seconds_per_byte(others_on_hosts_[h], rate), seconds_per_byte(kFullRate * host.ranks, rate)};
      if (line.own > slowest.own) slowest = line;
      if (line.before + line.own > busiest.before + busiest.own) busiest = line;
    }
    for (const Line& line : {slowest, busiest}) {
      const auto number = static_cast<std::uint32_t>(burden.before.size());
      burden.before.push_back(line.before);
      for (std::size_t i = 0; i < lanes_.size(); ++i) {
        if (lanes_[i].view == v) burden.lanes[i].push_back({number, line.own});
      }
    }
  }
}

std::vector<std::uint32_t> CostModel::weigh() {
  const LaneBurden all = burden();
  const double floor = sites_.views.size() > 1 ? 0 : members_floor_;
  const auto slowest = [&](const std::vector<std::uint32_t>& weights) {
    return std::max(floor, all.slowest(shares_of(weights)));
  };
  const std::vector<std::uint32_t> equal(lanes_.size(), 1);
  std::vector<std::uint32_t> weights = weights_of(balanced_shares(all));
  if (slowest(weights) > slowest(equal) * (1 - kWeightsPay)) weights = equal;
  const std::uint32_t sum = std::accumulate(weights.begin(), weights.end(), 0U);
  std::vector<std::uint64_t> parts(sites_.views.size(), 0);
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    change(lanes_[i], false);
    lanes_[i].weight = lane_load(weights[i], sum);
    change(lanes_[i], true);
    parts[lanes_[i].view] += lanes_[i].weight;
  }
  // A single view carries all bytes for any weights; kFullRate need not be a multiple of the weights' sum.
  if (parts.size() > 1) charge_members(parts);
  return weights;
}

double CostModel::seconds() const {
  const LaneBurden all = burden();
  std::vector<double> shares;
  double latency = 0;
  for (const Lane& lane : lanes_) {
    shares.push_back(static_cast<double>(lane.weight) / static_cast<double>(kFullRate));
    latency = std::max(latency, lane.latency);
  }
  return static_cast<double>(request_.operation_bytes) * std::max(members_floor_, all.slowest(shares)) + latency;
}

std::uint64_t CostModel::links_rate() const {
  Narrowest links;
  for (std::size_t h = 0; h < sites_.hosts.size(); ++h) {
    const SiteHost& host = sites_.hosts[h];
    if (share_[h] == 0) continue;
    // Even if the ranks of a host reduce within the host, one vector leaves it.
    const std::uint64_t members = std::max(members_out_[h], share_[h]);
    links.use(others_on_hosts_[h] + members, host.place.rate_bits_per_second);
  }
  return links.rate();
}

std::uint64_t CostModel::trees_rate() const {
  Narrowest trees;
  for (const Lane& lane : lanes_) {
    for (const Lane::Flows& flows : lane.uplinks) {
      const SiteUplink& uplink = sites_.uplinks[flows.which];
      trees.use(uplink.load, uplink.rate_bits_per_second);
    }
    for (const Lane::Flows& flows : lane.aggregators) {
      const SiteAggregator& at = sites_.aggregators[flows.which];
      const SiteHost& host = sites_.hosts[at.host];
      trees.use(sites_.budget(at).load, at.line_rate_bits_per_second);
      if (host.load > 0) trees.use(host.load, host.place.rate_bits_per_second);
    }
  }
  return trees.rate();
}

/// Ranks listen for other ranks at the interface of the first lane.
RankLinks CostModel::links_between_ranks() const {
  RankLinks links{.host_of_rank = sites_.host_of_rank};
  for (std::size_t h = 0; h < sites_.hosts.size(); ++h) {
    links.hosts.push_back({others_on_hosts_[h], sites_.hosts[h].place.rate_bits_per_second});
    links.uplink_of_host.push_back(sites_.hosts[h].uplink);
  }
  for (std::size_t u = 0; u < sites_.uplinks.size(); ++u) {
    links.uplinks.push_back({others_on_uplinks_[u], sites_.uplinks[u].rate_bits_per_second});
    links.parent_of_uplink.push_back(sites_.uplinks[u].parent);
  }
  return links;
}

PathRates CostModel::rates() const {
  PathRates rates{.links = links_rate(), .trees = trees_rate()};
  set_rates_between(links_between_ranks(), rates);
  return rates;
}

}  // namespace tributary::manager
