#include "tree-manager/planner/sites.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "tributary/protocol/assert.h"
#include "tributary/protocol/lane_memory.h"

namespace tributary::manager {
namespace {

class Layout {
 public:
  Layout(const DomainTree& domains, const PlanRequest& request, const FabricLoad& load)
      : domains_(domains), request_(request), load_(load) {}

  Sites make() {
    add_members();
    if (!out_.unknown_host.empty()) return std::move(out_);
    add_aggregators();
    sort_members();
    add_host_sites();
    add_domain_sites();
    find_lowest_common();
    out_.host_of_rank = std::move(host_of_rank_);
    out_.uplink_load = load_.uplinks;
    out_.uplink_load.resize(domains_.domains().size(), 0);
    return std::move(out_);
  }

 private:
  /// Returns kNoHost when the topology has no such host.
  std::uint32_t host_index(const std::string& name) {
    if (const auto found = by_name_.find(name); found != by_name_.end()) return found->second;
    HostPlace place = domains_.place(name);
    if (place.domain == kNoDomain) return kNoHost;
    if (request_.link_rate_bits_per_second != 0) place.rate_bits_per_second = 0;  // the assumed rate
    const auto index = static_cast<std::uint32_t>(out_.hosts.size());
    const auto load = load_.hosts.find(name);
    out_.hosts.push_back({.place = place, .load = load == load_.hosts.end() ? 0 : load->second});
    by_name_.emplace(name, index);
    return index;
  }

  void add_members() {
    host_of_rank_.reserve(request_.hosts.size());
    for (const std::string& name : request_.hosts) {
      const std::uint32_t host = host_index(name);
      if (host == kNoHost) {
        out_.unknown_host = name;
        out_.unknown_rank = static_cast<std::uint32_t>(host_of_rank_.size());
        return;
      }
      ++out_.hosts[host].ranks;
      if (request_.link_rate_bits_per_second != 0)
        out_.hosts[host].place.rate_bits_per_second = request_.link_rate_bits_per_second;
      host_of_rank_.push_back(host);
    }
  }

  void add_aggregators() {
    for (std::uint32_t i = 0; i < request_.aggregators.size(); ++i) {
      const PlanAggregator& from = request_.aggregators[i];
      if (!from.unusable.empty() || address_for_lane(from.data, 0) == nullptr) continue;
      const std::uint32_t host = host_index(from.host);
      const std::uint32_t children = children_possible(from, from.memory_free_bytes, request_);
      if (host == kNoHost || children == 0) continue;
      SiteHost& at = out_.hosts[host];
      at.has_aggregator = true;
      const auto load = load_.aggregators.find(from.name);
      const std::uint64_t line_rate = from.line_rate_bits_per_second;
      if (request_.link_rate_bits_per_second != 0 && at.ranks == 0)
        at.place.rate_bits_per_second = std::max(at.place.rate_bits_per_second, line_rate);
      out_.aggregators.push_back(
          {.index = i,
           .host = host,
           .domain = at.place.domain,
           .memory_free_bytes = from.memory_free_bytes,
           .children_max = children,
           .load = load == load_.aggregators.end() ? 0 : load->second,
           .line_rate_bits_per_second = line_rate != 0 ? line_rate : at.place.rate_bits_per_second});
    }
    std::sort(out_.aggregators.begin(), out_.aggregators.end(), [&](const SiteAggregator& a, const SiteAggregator& b) {
      const std::uint32_t place_a = domains_.domains()[a.domain].preorder;
      const std::uint32_t place_b = domains_.domains()[b.domain].preorder;
      if (place_a != place_b) return place_a < place_b;
      const PlanAggregator& named_a = request_.aggregators[a.index];
      const PlanAggregator& named_b = request_.aggregators[b.index];
      if (a.host != b.host) return named_a.host < named_b.host;
      return named_a.name < named_b.name;
    });
  }

  [[nodiscard]] bool has_own_site(std::uint32_t host) const {
    return out_.hosts[host].ranks >= 2 && out_.hosts[host].has_aggregator;
  }

  void sort_members() {
    TRIBUTARY_ASSERT(host_of_rank_.size() == request_.hosts.size(), "{} of {} ranks have a host", host_of_rank_.size(),
                     request_.hosts.size());
    out_.order.resize(request_.hosts.size());
    std::iota(out_.order.begin(), out_.order.end(), 0U);
    // Ranks are sorted by domain, then hosts with a site of their own come last, then by host, which keeps a host's
    // ranks together. Hosts are numbered in the order of their first rank.
    const auto key = [&](std::uint32_t rank) {
      const std::uint32_t host = host_of_rank_[rank];
      return std::tuple(out_.hosts[host].place.domain, has_own_site(host), host, rank);
    };
    const auto before = [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); };
    if (!std::is_sorted(out_.order.begin(), out_.order.end(), before)) {
      std::sort(out_.order.begin(), out_.order.end(), before);
    }
  }

  void add_host_sites() {
    for (std::uint32_t i = 0; i < out_.order.size();) {
      const std::uint32_t host = host_of_rank_[out_.order[i]];
      const std::uint32_t end = i + out_.hosts[host].ranks;
      TRIBUTARY_ASSERT(end > i && end <= out_.order.size() && host_of_rank_[out_.order[end - 1]] == host,
                       "host {} has {} ranks, and they are not those from {} on, of {}", host, end - i, i,
                       out_.order.size());
      if (has_own_site(host)) {
        const std::uint32_t domain = out_.hosts[host].place.domain;
        Site site{.domain = domain, .host = host, .ranks_begin = i, .ranks_end = end};
        const auto at_host = [&](const SiteAggregator& a) { return a.host == host; };
        const auto first = std::find_if(out_.aggregators.begin(), out_.aggregators.end(), at_host);
        const auto last = std::find_if_not(first, out_.aggregators.end(), at_host);
        site.aggregators_begin = static_cast<std::uint32_t>(first - out_.aggregators.begin());
        site.aggregators_end = static_cast<std::uint32_t>(last - out_.aggregators.begin());
        TRIBUTARY_ASSERT(site.aggregators_begin < site.aggregators_end, "host {} has a site and no aggregator", host);
        out_.sites.push_back(site);
      }
      i = end;
    }
  }

  void add_domain_sites() {
    std::vector<std::uint32_t> site_of(domains_.domains().size(), kNoSite);
    std::vector<std::uint32_t> active;
    const auto activate = [&](std::uint32_t domain) {
      for (; domain != kNoDomain && site_of[domain] == kNoSite; domain = domains_.domains()[domain].parent) {
        site_of[domain] = 0;
        active.push_back(domain);
      }
    };
    for (const SiteHost& host : out_.hosts) {
      if (host.ranks != 0) activate(host.place.domain);
    }
    std::sort(active.begin(), active.end());
    const std::size_t host_sites = out_.sites.size();
    for (const std::uint32_t domain : active) {
      site_of[domain] = static_cast<std::uint32_t>(out_.sites.size());
      out_.sites.push_back({.domain = domain, .level = domains_.domains()[domain].level});
      set_aggregators(out_.sites.back());
    }
    for (std::size_t s = 0; s < out_.sites.size(); ++s) {
      Site& site = out_.sites[s];
      const std::uint32_t above = s < host_sites ? site.domain : domains_.domains()[site.domain].parent;
      if (above != kNoDomain) site.parent = site_of[above];
      const bool root = s + 1 == out_.sites.size();
      TRIBUTARY_ASSERT(root ? site.parent == kNoSite : site.parent > s && site.parent < out_.sites.size(),
                       "site {} of {} has parent {}", s, out_.sites.size(), site.parent);
    }
    set_ranks(site_of);
  }

  void set_aggregators(Site& site) const {
    const Domain& domain = domains_.domains()[site.domain];
    const auto at = [&](std::uint32_t preorder) {
      const auto found = std::lower_bound(
          out_.aggregators.begin(), out_.aggregators.end(), preorder,
          [&](const SiteAggregator& a, std::uint32_t p) { return domains_.domains()[a.domain].preorder < p; });
      return static_cast<std::uint32_t>(found - out_.aggregators.begin());
    };
    site.aggregators_begin = at(domain.preorder);
    site.aggregators_end = at(domain.preorder_end);
    TRIBUTARY_ASSERT(site.aggregators_begin <= site.aggregators_end && site.aggregators_end <= out_.aggregators.size(),
                     "domain {} has aggregators {} to {}, of {}", site.domain, site.aggregators_begin,
                     site.aggregators_end, out_.aggregators.size());
  }

  void set_ranks(const std::vector<std::uint32_t>& site_of) {
    for (std::uint32_t i = 0; i < out_.order.size(); ++i) {
      const std::uint32_t host = host_of_rank_[out_.order[i]];
      if (has_own_site(host)) continue;
      Site& site = out_.sites[site_of[out_.hosts[host].place.domain]];
      if (site.ranks_end == 0) site.ranks_begin = i;
      site.ranks_end = i + 1;
    }
  }

  void find_lowest_common() {
    std::vector<std::size_t> below(out_.sites.size(), 0);
    for (std::uint32_t s = 0; s < out_.sites.size(); ++s) {
      const Site& site = out_.sites[s];
      below[s] += site.ranks_end - site.ranks_begin;
      if (below[s] == out_.order.size()) {
        out_.lowest_common = s;
        return;
      }
      TRIBUTARY_ASSERT(site.parent != kNoSite, "the root's site holds {} of {} ranks", below[s], out_.order.size());
      below[site.parent] += below[s];
    }
  }

  const DomainTree& domains_;
  const PlanRequest& request_;
  const FabricLoad& load_;
  Sites out_;
  std::unordered_map<std::string_view, std::uint32_t> by_name_;  // keys live in the request
  std::vector<std::uint32_t> host_of_rank_;
};

}  // namespace

std::uint32_t children_possible(const PlanAggregator& aggregator, std::uint64_t memory_free_bytes,
                                const PlanRequest& request) noexcept {
  return std::min({aggregator.children_max, kChildrenMax,
                   children_that_fit(memory_free_bytes, request.window, request.segment_bytes)});
}

Sites lay_out(const DomainTree& domains, const PlanRequest& request, const FabricLoad& load) {
  return Layout(domains, request, load).make();
}

}  // namespace tributary::manager
