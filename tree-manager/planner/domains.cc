#include "tree-manager/planner/domains.h"

#include <algorithm>
#include <numeric>

#include "tributary/protocol/assert.h"

namespace tributary::manager {
namespace {

// In a dragonfly, a link within a group is one of level 2, and a link between groups one of level 3.
constexpr std::uint32_t kLocalLevel = 2;
constexpr std::uint32_t kGlobalLevel = 3;

}  // namespace

/// Adds the switches level by level. After level k, switches that reach each other over links up to that level are one
/// component; every component that holds a switch of level k, or a link of level k, becomes a domain of level k.
class DomainBuilder {
 public:
  DomainBuilder(const Topology& topology, DomainTree& tree)
      : topology_(topology),
        tree_(tree),
        leader_(topology.switches.size()),
        domain_(topology.switches.size(), kNoDomain),
        home_(topology.switches.size(), kNoDomain),
        host_level_(topology.hosts.size(), 0),
        links_at_(kSwitchLevelsMax + 1) {
    std::iota(leader_.begin(), leader_.end(), 0U);
  }

  void build() {
    sort_links();
    for (std::uint32_t level = 1; level <= kSwitchLevelsMax; ++level) {
      add_uplinks(level);
      const auto before = components();
      for (const Link* link : links_at_[level]) join(*link);
      make_domains(level);
      for (const auto& [member, domain] : before) {
        const std::uint32_t now = domain_[find(member)];
        if (now == domain) continue;
        TRIBUTARY_ASSERT(now > domain && now < tree_.domains_.size(), "domain {} gets parent {}, of {} domains", domain,
                         now, tree_.domains_.size());
        tree_.domains_[domain].parent = now;
      }
    }
    join_rails();
    place_hosts();
  }

 private:
  [[nodiscard]] std::uint32_t find(std::uint32_t x) {
    while (leader_[x] != x) x = leader_[x] = leader_[leader_[x]];
    return x;
  }

  /// A link between two levels of switches belongs to the upper one.
  [[nodiscard]] std::uint32_t level_of(const Link& link) const {
    const SwitchNode& below = topology_.switches[link.from];
    const SwitchNode& above = topology_.switches[link.to];
    if (below.group == kUnnamed) return above.level;
    return below.group == above.group ? kLocalLevel : kGlobalLevel;
  }

  /// A host's links belong to the level of the highest switch among them.
  void sort_links() {
    for (const Link& link : topology_.links) {
      TRIBUTARY_ASSERT(link.to < topology_.switches.size(), "a link leads to switch {} of {}", link.to,
                       topology_.switches.size());
      if (link.from_kind != Link::End::host) continue;
      TRIBUTARY_ASSERT(link.from < topology_.hosts.size(), "a link comes from host {} of {}", link.from,
                       topology_.hosts.size());
      host_level_[link.from] = std::max(host_level_[link.from], topology_.switches[link.to].level);
    }
    for (const Link& link : topology_.links) {
      const bool host = link.from_kind == Link::End::host;
      links_at_[host ? host_level_[link.from] : level_of(link)].push_back(&link);
    }
    first_switch_.assign(topology_.hosts.size(), kNoDomain);
  }

  void add_uplinks(std::uint32_t level) {
    widened_.clear();
    for (const Link* link : links_at_[level]) {
      if (link->from_kind == Link::End::host) continue;
      const std::uint32_t from = find(link->from), to = find(link->to);
      if (from == to) continue;
      widened_.push_back(to);
      TRIBUTARY_ASSERT(domain_[from] < tree_.domains_.size(), "switch {} below level {} has no domain", link->from,
                       level);
      tree_.domains_[domain_[from]].uplink_bits_per_second += link->rate_bits_per_second;
      // In a fat-tree the upper end begins a domain of its own; in a dragonfly it has one.
      if (domain_[to] != kNoDomain) tree_.domains_[domain_[to]].uplink_bits_per_second += link->rate_bits_per_second;
    }
  }

  /// Returns a member of each component that is a domain already, with that domain.
  [[nodiscard]] std::vector<std::pair<std::uint32_t, std::uint32_t>> components() {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> found;
    for (std::uint32_t s = 0; s < leader_.size(); ++s) {
      if (find(s) == s && domain_[s] != kNoDomain) found.emplace_back(s, domain_[s]);
    }
    return found;
  }

  void join(const Link& link) {
    std::uint32_t other = link.from;
    // A host that is cabled to several switches makes one domain of them.
    if (link.from_kind == Link::End::host) {
      std::uint32_t& first = first_switch_[link.from];
      if (first == kNoDomain) first = link.to;
      other = first;
    }
    leader_[find(other)] = find(link.to);
  }

  void make_domains(std::uint32_t level) {
    std::vector<bool> made(leader_.size(), false);
    const auto make = [&](std::uint32_t member) {
      const std::uint32_t leader = find(member);
      if (made[leader]) return domain_[leader];
      made[leader] = true;
      domain_[leader] = static_cast<std::uint32_t>(tree_.domains_.size());
      tree_.domains_.push_back({.level = level});
      return domain_[leader];
    };
    for (std::uint32_t s = 0; s < leader_.size(); ++s) {
      if (topology_.switches[s].level == level) home_[s] = make(s);
    }
    for (const std::uint32_t member : widened_) make(member);
  }

  /// Rails that never meet have a domain above them all, without uplinks: no tree spans two rails.
  void join_rails() {
    const auto parts = components();
    TRIBUTARY_ASSERT(!parts.empty(), "{} switches are in no domain", leader_.size());
    if (parts.size() == 1) return;
    const auto root = static_cast<std::uint32_t>(tree_.domains_.size());
    tree_.domains_.push_back({.level = kSwitchLevelsMax + 1});
    for (const auto& [member, domain] : parts) tree_.domains_[domain].parent = root;
  }

  /// A host belongs to the domain of its highest switch: by construction this domain holds its other switches, too.
  void place_hosts() {
    tree_.places_.assign(topology_.hosts.size(), {});
    for (const Link& link : topology_.links) {
      if (link.from_kind != Link::End::host) continue;
      HostPlace& place = tree_.places_[link.from];
      place.rate_bits_per_second += link.rate_bits_per_second;
      if (topology_.switches[link.to].level == host_level_[link.from]) place.domain = home_[link.to];
    }
    for (std::size_t i = 0; i < tree_.places_.size(); ++i) {
      TRIBUTARY_ASSERT(tree_.places_[i].domain < tree_.domains_.size(), "host {} has no domain of {}", i,
                       tree_.domains_.size());
    }
    tree_.hosts_.reserve(topology_.hosts.size());
    for (std::uint32_t i = 0; i < topology_.hosts.size(); ++i) tree_.hosts_.emplace(topology_.hosts[i], i);
  }

  const Topology& topology_;
  DomainTree& tree_;
  std::vector<std::uint32_t> leader_;   // union-find over switches
  std::vector<std::uint32_t> domain_;   // the domain of the component that this switch leads
  std::vector<std::uint32_t> home_;     // the lowest domain that holds this switch
  std::vector<std::uint32_t> widened_;  // members of components that grow by links of this level
  std::vector<std::uint32_t> host_level_;
  std::vector<std::uint32_t> first_switch_;
  std::vector<std::vector<const Link*>> links_at_;
};

DomainTree::DomainTree(const Topology& topology)
    : open_(topology.fabric == FabricKind::flat), assumed_rate_(topology.assumed_rate_bits_per_second) {
  if (open_) {
    domains_.push_back({.level = 1});
  } else {
    DomainBuilder(topology, *this).build();
  }
  number_preorder();
}

HostPlace DomainTree::place(const std::string& host) const {
  if (const auto found = hosts_.find(host); found != hosts_.end()) return places_[found->second];
  if (open_) return {root(), assumed_rate_};
  return {};
}

void DomainTree::number_preorder() {
  TRIBUTARY_ASSERT(!domains_.empty() && domains_.back().parent == kNoDomain, "the last of {} domains is no root",
                   domains_.size());
  std::vector<std::uint32_t> size(domains_.size(), 1);
  for (std::uint32_t d = 0; d + 1 < domains_.size(); ++d) {
    const std::uint32_t parent = domains_[d].parent;
    TRIBUTARY_ASSERT(parent > d && parent < domains_.size(), "domain {} has parent {}, of {} domains", d, parent,
                     domains_.size());
    size[parent] += size[d];
  }
  TRIBUTARY_ASSERT(size.back() == domains_.size(), "{} of {} domains are below the root", size.back(), domains_.size());
  // The number with which the next child's subtree begins.
  std::vector<std::uint32_t> next(domains_.size(), 0);
  for (std::uint32_t d = static_cast<std::uint32_t>(domains_.size()); d-- > 0;) {
    Domain& domain = domains_[d];
    if (domain.parent != kNoDomain) {
      domain.preorder = next[domain.parent];
      next[domain.parent] += size[d];
    }
    domain.preorder_end = domain.preorder + size[d];
    next[d] = domain.preorder + 1;
  }
}

}  // namespace tributary::manager
