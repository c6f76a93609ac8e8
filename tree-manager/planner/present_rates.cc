#include "tree-manager/planner/present_rates.h"

#include <optional>

#include "tree-manager/planner/between_ranks.h"
#include "tree-manager/planner/host_numbers.h"
#include "tree-manager/planner/narrowest.h"
#include "tree-manager/planner/sites.h"

namespace tributary::manager {
namespace {

/// Counts the load of one group's trees on each link, beside the link's whole load.
class PresentRates {
 public:
  PresentRates(const DomainTree& domains, const FabricLoad& load, const TreesInUse& trees)
      : domains_(domains), load_(load), trees_(trees), numbers_(domains), own_uplinks_(domains.domains().size(), 0) {}

  PathRates rates() {
    number_hosts();
    if (!count_lanes() || !find_links_between()) return {};
    PathRates rates{.links = links_rate(), .trees = trees_rate()};
    set_rates_between(between_, rates);
    return rates;
  }

 private:
  struct Link {
    std::uint64_t own = 0;    // load of all edges of the trees, in kFullRate units
    std::uint64_t out = 0;    // load of the ranks' edges to aggregators on other hosts
    std::uint64_t share = 0;  // part of one rank's vector that lanes carry over this link
    std::uint32_t ranks = 0;
    bool has_aggregator = false;
  };

  void number_hosts() {
    host_of_rank_.reserve(trees_.hosts.size());
    for (std::size_t r = 0; r < trees_.hosts.size(); ++r) {
      const bool same = r > 0 && trees_.hosts[r] == trees_.hosts[r - 1];
      host_of_rank_.push_back(same ? host_of_rank_[r - 1] : numbers_.add(trees_.hosts[r]));
    }
    members_ = static_cast<std::uint32_t>(numbers_.hosts().size());
    for (const LaneTree& lane : trees_.lanes) {
      for (const TreeNode& node : lane.nodes) (void)numbers_.add(node.host);
    }
    links_.resize(numbers_.interfaces());
    for (const std::uint32_t host : host_of_rank_) {
      const HostNumbers::Host& at = numbers_.hosts()[host];
      for (std::uint32_t i = 0; i < at.interfaces; ++i) ++links_[at.first + i].ranks;
    }
  }

  /// Returns the place of a host in a route; none: the topology has changed meanwhile.
  [[nodiscard]] HostPlace place(std::uint32_t host, std::uint32_t route) const {
    const HostNumbers::Host& at = numbers_.hosts()[host];
    const std::uint32_t interface = numbers_.interface_of(at, route);
    return interface == kNoInterface || at.number == kUnknownHost ? HostPlace{} : domains_.place(at.number, interface);
  }
  [[nodiscard]] Link& link(std::uint32_t host, std::uint32_t route) {
    const HostNumbers::Host& at = numbers_.hosts()[host];
    return links_[at.first + numbers_.interface_of(at, route)];
  }

  bool count_lanes() {
    const std::uint32_t sum = weight_of(trees_.lanes);
    for (const LaneTree& lane : trees_.lanes) {
      const std::uint64_t weight = lane_load(lane.weight, sum);
      std::vector<std::uint32_t> host_of_node;
      for (const TreeNode& node : lane.nodes) {
        host_of_node.push_back(numbers_.add(node.host));
        if (place(host_of_node.back(), lane.route).domain == kNoDomain) return false;
        link(host_of_node.back(), lane.route).has_aggregator = true;
      }
      for (std::uint32_t host = 0; host < members_; ++host) {
        if (place(host, lane.route).domain == kNoDomain) return false;
        link(host, lane.route).share += weight;
      }
      for (std::size_t r = 0; r < host_of_rank_.size(); ++r) {
        const std::uint32_t to = host_of_node[lane.leaf_of_rank[r]];
        if (host_of_rank_[r] != to) link(host_of_rank_[r], lane.route).out += weight;
        count_edge(host_of_rank_[r], to, lane.route, weight);
      }
      for (std::size_t n = 0; n < lane.nodes.size(); ++n) {
        const std::uint32_t parent = lane.nodes[n].parent;
        if (parent != kNoParent) count_edge(host_of_node[n], host_of_node[parent], lane.route, weight);
      }
    }
    return true;
  }

  void count_edge(std::uint32_t from, std::uint32_t to, std::uint32_t route, std::uint64_t weight) {
    if (from == to) return;
    link(from, route).own += weight;
    link(to, route).own += weight;
    domains_.each_uplink_between(place(from, route).domain, place(to, route).domain,
                                 [&](std::uint32_t uplink) { own_uplinks_[uplink] += weight; });
  }

  /// Ranks reach one another by the interfaces of the first route: of their own rail, if their trees are on it.
  bool find_links_between() {
    const bool own = !trees_.rail.empty() && trees_.lanes.front().rail == trees_.rail;
    const std::uint32_t route = own ? domains_.rail_number(trees_.rail).value_or(0) : 0;
    std::vector<std::uint32_t> links;
    for (std::uint32_t host = 0; host < members_; ++host) {
      const HostPlace at = place(host, route);
      if (at.domain == kNoDomain) return false;
      links.push_back(numbers_.hosts()[host].first + numbers_.interface_of(numbers_.hosts()[host], route));
      between_.uplink_of_host.push_back(at.domain);
    }
    between_.host_of_rank = host_of_rank_;
    std::vector<RankLinks::Link> all;
    each_link([&](const Link& it, std::uint64_t load, const auto& rate) {
      all.push_back({load - std::min(load, it.own), rate.value_or(0)});
    });
    for (const std::uint32_t link : links) between_.hosts.push_back(all[link]);
    for (std::size_t u = 0; u < own_uplinks_.size(); ++u) {
      const Domain& domain = domains_.domains()[u];
      between_.uplinks.push_back({load_of(u) - std::min(load_of(u), own_uplinks_[u]), domain.uplink_bits_per_second});
      between_.parent_of_uplink.push_back(domain.parent);
    }
    return true;
  }

  template <class Visit>
  void each_link(const Visit& visit) const {
    for (const HostNumbers::Host& host : numbers_.hosts()) {
      for (std::uint32_t i = 0; i < host.interfaces; ++i) {
        const Link& link = links_[host.first + i];
        const auto found = load_.hosts.find(i == 0 ? *host.name : load_name(*host.name, i));
        visit(link, found == load_.hosts.end() ? 0 : found->second, rate_of(host, i));
      }
    }
  }

  /// Returns nothing for a host if only its aggregator's rate is known: this rate is counted separately.
  [[nodiscard]] std::optional<std::uint64_t> rate_of(const HostNumbers::Host& host, std::uint32_t interface) const {
    if (trees_.link_rate_bits_per_second == 0) return domains_.place(host.number, interface).rate_bits_per_second;
    if (links_[host.first].ranks == 0) return std::nullopt;
    return trees_.link_rate_bits_per_second;
  }

  [[nodiscard]] std::uint64_t links_rate() const {
    Narrowest links;
    each_link([&](const Link& it, std::uint64_t all, const auto& rate) {
      if (it.ranks == 0 || it.share == 0) return;
      links.use(all - std::min(all, it.own) + std::max(it.out, it.share), rate.value());
    });
    return links.rate();
  }

  [[nodiscard]] std::uint64_t trees_rate() const {
    Narrowest trees;
    each_link([&](const Link& it, std::uint64_t all, const auto& rate) {
      if (it.has_aggregator && all > 0 && rate) trees.use(all, *rate);
    });
    for (std::size_t u = 0; u < own_uplinks_.size(); ++u) {
      if (own_uplinks_[u] != 0) trees.use(load_of(u), domains_.domains()[u].uplink_bits_per_second);
    }
    for (const LaneTree& lane : trees_.lanes) {
      for (const TreeNode& node : lane.nodes) use_aggregator(node, trees);
    }
    return trees.rate();
  }

  void use_aggregator(const TreeNode& node, Narrowest& trees) const {
    const auto load = load_.aggregators.find(node.aggregator);
    if (load == load_.aggregators.end()) return;
    std::uint64_t rate = trees_.line_rate_of(node.aggregator);
    if (rate == 0 && trees_.link_rate_bits_per_second == 0) rate = host_rate(domains_, domains_.find(node.host));
    trees.use(load->second, rate);
  }

  [[nodiscard]] std::uint64_t load_of(std::size_t uplink) const {
    return uplink < load_.uplinks.size() ? load_.uplinks[uplink] : 0;
  }

  const DomainTree& domains_;
  const FabricLoad& load_;
  const TreesInUse& trees_;
  HostNumbers numbers_;
  std::vector<std::uint32_t> host_of_rank_;
  std::uint32_t members_ = 0;               // number of the ranks' hosts, which come first in numbers_
  std::vector<Link> links_;                 // by the interface's number in numbers_
  std::vector<std::uint64_t> own_uplinks_;  // by domain, in kFullRate units
  RankLinks between_;                       // hosts: the ranks' hosts, as in numbers_
};

}  // namespace

PathRates present_rates(const DomainTree& domains, const FabricLoad& load, const TreesInUse& trees) {
  return PresentRates(domains, load, trees).rates();
}

}  // namespace tributary::manager
