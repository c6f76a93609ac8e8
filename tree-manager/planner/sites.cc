#include "tree-manager/planner/sites.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "tributary/protocol/assert.h"
#include "tributary/protocol/lane_memory.h"

namespace tributary::manager {
namespace {

constexpr std::size_t kKeptForAllMin = 64;  // least number at the place that holds all ranks
constexpr std::size_t kSparesMax = 32;      // most spare aggregators elsewhere below a place, for few ranks

class Layout {
 public:
  Layout(const DomainTree& domains, const AggregatorIndex& index, const PlanRequest& request, const FabricLoad& load,
         Reach reach)
      : domains_(domains), index_(index), request_(request), load_(load), reach_(reach) {}

  Sites make(std::uint32_t routes) {
    if (!find_hosts()) return std::move(out_);
    const auto rail = domains_.rail_number(request_.rail);
    first_route_ = rail.value_or(0);
    const auto step = rail ? static_cast<std::uint32_t>(domains_.rails().size()) : 1U;
    for (std::uint32_t i = 0; i < routes && first_route_ + i * step < domains_.routes(); ++i)
      add_view(first_route_ + i * step);
    if (out_.views.empty()) return off_all_routes();
    add_uplinks();
    return std::move(out_);
  }

 private:
  /// Numbers the domains of all hosts, and the domains above them, in the order of DomainTree.
  void add_uplinks() {
    std::vector<std::uint32_t> number(domains_.domains().size(), kNoSite);
    std::vector<std::uint32_t> found;
    for (const SiteHost& host : out_.hosts) {
      std::uint32_t domain = host.place.domain;
      for (; domain != kNoDomain && number[domain] == kNoSite; domain = domains_.domains()[domain].parent) {
        number[domain] = 0;
        found.push_back(domain);
      }
    }
    std::ranges::sort(found);
    for (std::uint32_t i = 0; i < found.size(); ++i) number[found[i]] = i;
    for (const std::uint32_t d : found) {
      const Domain& domain = domains_.domains()[d];
      out_.uplinks.push_back({.domain = d,
                              .parent = domain.parent == kNoDomain ? kNoSite : number[domain.parent],
                              .rate_bits_per_second = domain.uplink_bits_per_second,
                              .load = d < load_.uplinks.size() ? load_.uplinks[d] : 0});
    }
    for (SiteHost& host : out_.hosts) host.uplink = number[host.place.domain];
    for (Site& site : out_.sites) site.uplink = number[site.domain];
  }

  /// A host with members.
  struct Host {
    const std::string* name = nullptr;
    std::uint32_t number = 0;  // DomainTree's number of the host
  };

  bool find_hosts() {
    host_of_rank_.reserve(request_.hosts.size());
    std::unordered_map<std::string_view, std::uint32_t> known;
    for (std::size_t rank = 0; rank < request_.hosts.size(); ++rank) {
      const std::string& name = request_.hosts[rank];
      if (rank > 0 && name == request_.hosts[rank - 1]) {
        host_of_rank_.push_back(host_of_rank_.back());
        continue;
      }
      const auto [it, added] = known.emplace(name, static_cast<std::uint32_t>(hosts_.size()));
      if (added) hosts_.push_back({&name, domains_.find(name)});
      if (hosts_[it->second].number == kUnknownHost) return tell_unknown(rank), false;
      host_of_rank_.push_back(it->second);
    }
    return true;
  }

  void tell_unknown(std::size_t rank) {
    out_.unknown_host = request_.hosts[rank];
    out_.unknown_rank = static_cast<std::uint32_t>(rank);
  }

  /// Notes a rank whose host is not on the first of the routes, for the sentence with the reason why there is no tree.
  Sites off_all_routes() {
    for (std::size_t rank = 0; rank < host_of_rank_.size(); ++rank) {
      if (domains_.interface_of(hosts_[host_of_rank_[rank]].number, first_route_) != kNoInterface) continue;
      tell_unknown(rank);
      break;
    }
    if (out_.unknown_host.empty()) tell_unknown(0);
    out_.off_all_routes = true;
    return std::move(out_);
  }

  /// Returns the index of an interface in Sites::hosts.
  std::uint32_t entry_of(const std::string& name, std::uint32_t number, std::uint32_t interface) {
    // The key is the members' name if the interface's host has members, else the interface's own name.
    const auto [it, added] = entries_.emplace(EntryKey{name, interface}, static_cast<std::uint32_t>(out_.hosts.size()));
    if (!added) return it->second;
    HostPlace place = domains_.place(number, interface);
    if (request_.link_rate_bits_per_second != 0) place.rate_bits_per_second = 0;  // the rate of the request
    has_aggregator_.push_back(false);
    const auto load = load_.hosts.find(interface == 0 ? name : load_name(name, interface));
    out_.hosts.push_back({.place = place, .load = load == load_.hosts.end() ? 0 : load->second});
    return it->second;
  }

  void add_view(std::uint32_t route) {
    entry_of_host_.clear();
    for (const Host& host : hosts_) {
      const std::uint32_t interface = domains_.interface_of(host.number, route);
      if (interface == kNoInterface) return;
      entry_of_host_.push_back(interface);
    }
    for (std::size_t h = 0; h < hosts_.size(); ++h)
      entry_of_host_[h] = entry_of(*hosts_[h].name, hosts_[h].number, entry_of_host_[h]);
    const bool first = out_.views.empty();
    count_ranks();
    out_.views.push_back(
        {.route = route, .sites_begin = static_cast<std::uint32_t>(out_.sites.size()), .members = entry_of_host_});
    has_aggregator_.assign(has_aggregator_.size(), false);
    aggregators_begin_ = out_.aggregators.size();
    order_begin_ = static_cast<std::uint32_t>(out_.order.size());
    find_active_domains();
    add_aggregators(route);
    sort_members();
    add_host_sites();
    add_domain_sites();
    find_lowest_common();
    if (first) {
      out_.host_of_rank.reserve(host_of_rank_.size());
      for (const std::uint32_t host : host_of_rank_) out_.host_of_rank.push_back(entry_of_host_[host]);
    }
  }

  /// Notes the ranks at each interface, once even if several views use the interface.
  void count_ranks() {
    std::vector<std::uint32_t> ranks(hosts_.size(), 0);
    for (const std::uint32_t host : host_of_rank_) ++ranks[host];
    for (std::size_t h = 0; h < hosts_.size(); ++h) {
      SiteHost& at = out_.hosts[entry_of_host_[h]];
      at.ranks = ranks[h];
      if (request_.link_rate_bits_per_second != 0) at.place.rate_bits_per_second = request_.link_rate_bits_per_second;
    }
  }

  void find_active_domains() {
    active_.clear();
    site_of_.assign(domains_.domains().size(), kNoSite);
    ranks_below_.resize(domains_.domains().size());
    for (const std::uint32_t entry : entry_of_host_) {
      std::uint32_t domain = out_.hosts[entry].place.domain;
      for (; domain != kNoDomain && site_of_[domain] == kNoSite; domain = domains_.domains()[domain].parent) {
        site_of_[domain] = 0;
        ranks_below_[domain] = 0;
        active_.push_back(domain);
      }
    }
    std::sort(active_.begin(), active_.end());
    for (const std::uint32_t entry : entry_of_host_)
      ranks_below_[out_.hosts[entry].place.domain] += out_.hosts[entry].ranks;
    for (const std::uint32_t domain : active_) {
      const std::uint32_t parent = domains_.domains()[domain].parent;
      if (parent != kNoDomain) ranks_below_[parent] += ranks_below_[domain];
    }
  }

  /// Returns the lowest domain that holds all members' interfaces of this view.
  [[nodiscard]] std::uint32_t common_domain() const {
    std::uint32_t common = out_.hosts[entry_of_host_[0]].place.domain;
    for (const std::uint32_t entry : entry_of_host_) {
      const std::uint32_t preorder = domains_.domains()[out_.hosts[entry].place.domain].preorder;
      const auto holds = [&](const Domain& it) { return preorder >= it.preorder && preorder < it.preorder_end; };
      while (!holds(domains_.domains()[common])) common = domains_.domains()[common].parent;
    }
    return common;
  }

  /// An aggregator that may be used, while the best ones are chosen.
  struct Usable {
    const AggregatorIndex::Entry* entry = nullptr;
    std::uint32_t at = 0;  // domain that keeps the aggregator: its own, or the lowest above with several ranks
    std::uint32_t children = 0;
    double busy = 0;
    [[nodiscard]] bool near() const noexcept { return at == entry->domain; }
  };
  using Entries = std::span<const AggregatorIndex::Entry>;

  /// True if contributions can be reduced at this domain: a single rank has no use for an aggregator.
  [[nodiscard]] bool holds_several(std::uint32_t domain) const {
    return site_of_[domain] != kNoSite && ranks_below_[domain] >= 2;
  }

  void add_usable(Entries entries, std::vector<Usable>& usable) const {
    for (const AggregatorIndex::Entry& entry : entries) {
      const PlanAggregator& from = request_.aggregators[entry.index];
      if (!from.unusable.empty() || is_avoided(entry.index) || address_for_lane(from.data, 0) == nullptr) continue;
      const std::uint32_t children = children_possible(from, from.memory_free_bytes, request_);
      if (children == 0) continue;
      std::uint32_t at = entry.domain;
      while (!holds_several(at)) at = domains_.domains()[at].parent;
      usable.push_back({.entry = &entry, .at = at, .children = children});
    }
  }

  /// Looks at the places of the ranks first: if the aggregators there suffice, other aggregators cost no time.
  void add_aggregators(std::uint32_t route) {
    const std::uint32_t top = reach_ == Reach::members ? common_domain() : domains_.root();
    const Domain& all = domains_.domains()[top];
    std::vector<Usable> usable;
    for (const std::uint32_t domain : active_) {
      const std::uint32_t preorder = domains_.domains()[domain].preorder;
      const bool within = preorder >= all.preorder && preorder < all.preorder_end;
      if (within && holds_several(domain)) add_usable(index_.at(domains_.domains()[domain], route), usable);
    }
    if (usable.size() < 2 * request_.hosts.size()) {
      usable.clear();
      add_usable(index_.below(all, route), usable);
    }
    keep_best(usable);
    std::ranges::sort(usable, {}, &Usable::entry);
    for (const Usable& it : usable) add_aggregator(it);
  }

  [[nodiscard]] bool is_avoided(std::uint32_t index) const {
    return (!request_.avoided.empty() && std::ranges::find(request_.avoided, index) != request_.avoided.end()) ||
           request_.is_reserved(index) || request_.is_stricter(index);
  }

  [[nodiscard]] std::uint64_t load_of(const PlanAggregator& aggregator) const {
    const auto load = load_.aggregators.find(aggregator.name);
    return load == load_.aggregators.end() ? 0 : load->second;
  }

  /// Returns the number of useful aggregators for a group at a place, or elsewhere below it. Twice as many aggregators
  /// as ranks there, with links of the ranks' rate, carry all bytes that the ranks can send.
  [[nodiscard]] std::size_t kept_max(const Usable& it) const {
    const std::size_t twice = 2 * std::size_t{ranks_below_[it.at]};
    if (!it.near()) return std::max(kSparesMax, twice);
    return ranks_below_[it.at] == request_.hosts.size() ? std::max(kKeptForAllMin, twice) : twice;
  }

  /// If a place has more aggregators than the group can use, leaves out the busiest, by their links.
  void keep_best(std::vector<Usable>& usable) const {
    for (Usable& it : usable) {
      const PlanAggregator& from = request_.aggregators[it.entry->index];
      const std::uint64_t rate = rate_or_assumed(from.line_rate_bits_per_second);
      it.busy = static_cast<double>(load_of(from) + kFullRate) / static_cast<double>(rate);
    }
    std::ranges::sort(usable, [](const Usable& a, const Usable& b) {
      return std::tuple(a.at, a.near(), a.busy, a.entry) < std::tuple(b.at, b.near(), b.busy, b.entry);
    });
    std::size_t in_crowd = 0;
    const Usable* before = nullptr;
    for (Usable& it : usable) {
      const bool same = before != nullptr && before->at == it.at && before->near() == it.near();
      in_crowd = same ? in_crowd + 1 : 1;
      if (in_crowd > kept_max(it)) it.children = 0;
      before = &it;
    }
    std::erase_if(usable, [](const Usable& it) { return it.children == 0; });
  }

  void add_aggregator(const Usable& it) {
    const PlanAggregator& from = request_.aggregators[it.entry->index];
    const std::uint32_t host = entry_of(from.host, it.entry->host, it.entry->interface);
    SiteHost& at = out_.hosts[host];
    has_aggregator_[host] = true;
    const std::uint64_t line_rate = from.line_rate_bits_per_second;
    if (request_.link_rate_bits_per_second != 0 && at.ranks == 0)
      at.place.rate_bits_per_second = std::max(at.place.rate_bits_per_second, line_rate);
    const auto [budget, added] = budget_of_.emplace(it.entry->index, static_cast<std::uint32_t>(out_.budgets.size()));
    if (added) out_.budgets.push_back({it.entry->index, from.memory_free_bytes, it.children, load_of(from)});
    out_.aggregators.push_back({.index = it.entry->index,
                                .budget = budget->second,
                                .host = host,
                                .interface = it.entry->interface,
                                .domain = it.entry->domain,
                                .line_rate_bits_per_second = line_rate != 0 ? line_rate : rate_of_host(*it.entry)});
  }

  [[nodiscard]] std::uint64_t rate_of_host(const AggregatorIndex::Entry& entry) const {
    return request_.link_rate_bits_per_second != 0 ? 0 : host_rate(domains_, entry.host);
  }

  [[nodiscard]] bool has_own_site(std::uint32_t entry) const {
    return out_.hosts[entry].ranks >= 2 && has_aggregator_[entry];
  }

  void sort_members() {
    TRIBUTARY_ASSERT(host_of_rank_.size() == request_.hosts.size(), "{} of {} ranks have a host", host_of_rank_.size(),
                     request_.hosts.size());
    // Ranks are sorted by domain, in a domain hosts with their own site come last, and then by host, which keeps a
    // host's ranks together. Hosts are numbered in the order of their first rank.
    std::vector<std::uint32_t> by_place(hosts_.size());
    std::iota(by_place.begin(), by_place.end(), 0U);
    const auto key = [&](std::uint32_t host) {
      const std::uint32_t entry = entry_of_host_[host];
      return std::tuple(out_.hosts[entry].place.domain, has_own_site(entry), host);
    };
    std::ranges::sort(by_place, [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
    // The ranks of each host, in their order.
    std::vector<std::uint32_t> next(hosts_.size(), 0);
    std::uint32_t at = order_begin_;
    for (const std::uint32_t host : by_place) {
      next[host] = at;
      at += out_.hosts[entry_of_host_[host]].ranks;
    }
    out_.order.resize(at);
    for (std::uint32_t rank = 0; rank < host_of_rank_.size(); ++rank) out_.order[next[host_of_rank_[rank]]++] = rank;
    by_place_ = std::move(by_place);
  }

  void add_host_sites() {
    std::uint32_t at = order_begin_;
    for (const std::uint32_t host : by_place_) {
      const std::uint32_t entry = entry_of_host_[host];
      const std::uint32_t end = at + out_.hosts[entry].ranks;
      TRIBUTARY_ASSERT(end > at && end <= out_.order.size(), "host {} has ranks {} to {}, of {}", host, at, end,
                       out_.order.size());
      if (has_own_site(entry)) {
        Site site{.domain = out_.hosts[entry].place.domain, .host = entry, .ranks_begin = at, .ranks_end = end};
        const auto begin = out_.aggregators.begin() + static_cast<std::ptrdiff_t>(aggregators_begin_);
        const auto at_host = [&](const SiteAggregator& a) { return a.host == entry; };
        const auto first = std::find_if(begin, out_.aggregators.end(), at_host);
        const auto last = std::find_if_not(first, out_.aggregators.end(), at_host);
        site.aggregators_begin = static_cast<std::uint32_t>(first - out_.aggregators.begin());
        site.aggregators_end = static_cast<std::uint32_t>(last - out_.aggregators.begin());
        TRIBUTARY_ASSERT(site.aggregators_begin < site.aggregators_end, "host {} has a site and no aggregator", host);
        out_.sites.push_back(site);
      }
      at = end;
    }
  }

  void add_domain_sites() {
    const std::size_t host_sites = out_.sites.size();
    for (const std::uint32_t domain : active_) {
      site_of_[domain] = static_cast<std::uint32_t>(out_.sites.size());
      out_.sites.push_back({.domain = domain, .level = domains_.domains()[domain].level});
      set_aggregators(out_.sites.back());
    }
    for (std::size_t s = out_.views.back().sites_begin; s < out_.sites.size(); ++s) {
      Site& site = out_.sites[s];
      const std::uint32_t above = s < host_sites ? site.domain : domains_.domains()[site.domain].parent;
      if (above != kNoDomain) site.parent = site_of_[above];
      const bool root = s + 1 == out_.sites.size();
      TRIBUTARY_ASSERT(root ? site.parent == kNoSite : site.parent > s && site.parent < out_.sites.size(),
                       "site {} of {} has parent {}", s, out_.sites.size(), site.parent);
    }
    set_ranks();
  }

  void set_aggregators(Site& site) const {
    const Domain& domain = domains_.domains()[site.domain];
    const auto begin = out_.aggregators.begin() + static_cast<std::ptrdiff_t>(aggregators_begin_);
    const auto at = [&](std::uint32_t preorder) {
      const auto found = std::lower_bound(
          begin, out_.aggregators.end(), preorder,
          [&](const SiteAggregator& a, std::uint32_t p) { return domains_.domains()[a.domain].preorder < p; });
      return static_cast<std::uint32_t>(found - out_.aggregators.begin());
    };
    site.aggregators_begin = at(domain.preorder);
    site.aggregators_end = at(domain.preorder_end);
    TRIBUTARY_ASSERT(site.aggregators_begin <= site.aggregators_end && site.aggregators_end <= out_.aggregators.size(),
                     "domain {} has aggregators {} to {}, of {}", site.domain, site.aggregators_begin,
                     site.aggregators_end, out_.aggregators.size());
  }

  void set_ranks() {
    std::uint32_t at = order_begin_;
    for (const std::uint32_t host : by_place_) {
      const std::uint32_t entry = entry_of_host_[host];
      const std::uint32_t end = at + out_.hosts[entry].ranks;
      if (!has_own_site(entry)) {
        Site& site = out_.sites[site_of_[out_.hosts[entry].place.domain]];
        if (site.ranks_end == 0) site.ranks_begin = at;
        site.ranks_end = end;
      }
      at = end;
    }
  }

  /// Adds the aggregators, and sets the scope.
  void find_lowest_common() {
    const std::uint32_t begin = out_.views.back().sites_begin;
    const std::size_t ranks = request_.hosts.size();
    std::vector<std::size_t> below(out_.sites.size() - begin, 0);
    for (std::uint32_t s = begin; s < out_.sites.size(); ++s) {
      const Site& site = out_.sites[s];
      below[s - begin] += site.ranks_end - site.ranks_begin;
      if (below[s - begin] == ranks) {
        out_.views.back().lowest_common = s;
        out_.views.back().scope = reach_ == Reach::above ? static_cast<std::uint32_t>(out_.sites.size() - 1) : s;
        return;
      }
      TRIBUTARY_ASSERT(site.parent != kNoSite, "the root's site holds {} of {} ranks", below[s - begin], ranks);
      below[site.parent - begin] += below[s - begin];
    }
  }

  using EntryKey = std::pair<std::string_view, std::uint32_t>;
  struct EntryHash {
    std::size_t operator()(const EntryKey& key) const noexcept {
      return std::hash<std::string_view>{}(key.first) + key.second;
    }
  };

  const DomainTree& domains_;
  const AggregatorIndex& index_;
  const PlanRequest& request_;
  const FabricLoad& load_;
  const Reach reach_;
  Sites out_;
  std::vector<Host> hosts_;                                         // members' hosts, in the order of their first ranks
  std::uint32_t first_route_ = 0;                                   // first of the routes on which the lanes go
  std::vector<std::uint32_t> host_of_rank_;                         // index in hosts_
  std::unordered_map<EntryKey, std::uint32_t, EntryHash> entries_;  // index in Sites::hosts; the request owns the names
  std::unordered_map<std::uint32_t, std::uint32_t> budget_of_;      // key: index in the request
  // State of the view that is being added:
  std::vector<std::uint32_t> entry_of_host_;  // index: host; index in Sites::hosts
  std::vector<std::uint32_t> by_place_;       // hosts_, sorted
  std::vector<bool> has_aggregator_;          // index: entry in Sites::hosts
  std::vector<std::uint32_t> active_;         // domains that hold members
  std::vector<std::uint32_t> site_of_;        // index: domain
  std::vector<std::uint32_t> ranks_below_;    // index: domain; valid only for active domains
  std::size_t aggregators_begin_ = 0;
  std::uint32_t order_begin_ = 0;
};

}  // namespace

std::uint32_t children_possible(const PlanAggregator& aggregator, std::uint64_t memory_free_bytes,
                                const PlanRequest& request) noexcept {
  return std::min({aggregator.children_max, kChildrenMax,
                   children_that_fit(memory_free_bytes, request.window, request.segment_bytes)});
}

std::uint64_t host_rate(const DomainTree& domains, std::uint32_t host) {
  if (host == kUnknownHost) return 0;
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < domains.interfaces(host); ++i) {
    const std::uint64_t rate = domains.place(host, i).rate_bits_per_second;
    if (rate == 0) return 0;
    sum += rate;
  }
  return sum;
}

std::string load_name(const std::string& host, std::uint32_t interface) {
  return interface == 0 ? host : host + "/" + std::to_string(interface);
}

Sites lay_out(const DomainTree& domains, const AggregatorIndex& index, const PlanRequest& request,
              const FabricLoad& load, std::uint32_t routes, Reach reach) {
  return Layout(domains, index, request, load, reach).make(routes);
}

}  // namespace tributary::manager
