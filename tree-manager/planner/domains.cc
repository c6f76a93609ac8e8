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
        interfaces_(topology.hosts.size()),
        links_at_(kSwitchLevelsMax + 1) {
    std::iota(leader_.begin(), leader_.end(), 0U);
  }

  void build() {
    find_interfaces();
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

  /// A link between two levels of switches belongs to the upper level.
  [[nodiscard]] std::uint32_t level_of(const Link& link) const {
    const SwitchNode& below = topology_.switches[link.from];
    const SwitchNode& above = topology_.switches[link.to];
    if (below.group == kUnnamed) return above.level;
    return below.group == above.group ? kLocalLevel : kGlobalLevel;
  }

  /// The links of a host that have the same name and lead to the same rail.
  struct Interface {
    std::uint32_t name = kUnnamed;
    std::uint32_t rail = kUnnamed;
    std::uint32_t level = 0;  // level of the highest of its switches
    std::uint32_t first_switch = kNoDomain;
  };

  [[nodiscard]] std::uint32_t interface_of(const Link& link) const {
    const std::vector<Interface>& all = interfaces_[link.from];
    const std::uint32_t rail = topology_.switches[link.to].rail;
    const auto found =
        std::ranges::find_if(all, [&](const Interface& it) { return it.name == link.interface && it.rail == rail; });
    return static_cast<std::uint32_t>(found - all.begin());
  }

  void find_interfaces() {
    for (const Link& link : topology_.links) {
      TRIBUTARY_ASSERT(link.to < topology_.switches.size(), "a link leads to switch {} of {}", link.to,
                       topology_.switches.size());
      if (link.from_kind != Link::End::host) continue;
      TRIBUTARY_ASSERT(link.from < topology_.hosts.size(), "a link comes from host {} of {}", link.from,
                       topology_.hosts.size());
      const SwitchNode& to = topology_.switches[link.to];
      const std::uint32_t which = interface_of(link);
      std::vector<Interface>& all = interfaces_[link.from];
      if (which == all.size()) all.push_back({.name = link.interface, .rail = to.rail});
      all[which].level = std::max(all[which].level, to.level);
    }
  }

  /// An interface's links belong to the level of the highest switch among them.
  void sort_links() {
    for (const Link& link : topology_.links) {
      const bool host = link.from_kind == Link::End::host;
      links_at_[host ? interfaces_[link.from][interface_of(link)].level : level_of(link)].push_back(&link);
    }
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
      // In a fat-tree the link's upper end begins its own domain; in a dragonfly it has a domain already.
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
    // An interface that is cabled to several switches makes one domain of them.
    if (link.from_kind == Link::End::host) {
      std::uint32_t& first = interfaces_[link.from][interface_of(link)].first_switch;
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

  /// Rails that never meet have a domain above all rails, without uplinks: no tree spans two rails.
  void join_rails() {
    const auto parts = components();
    TRIBUTARY_ASSERT(!parts.empty(), "{} switches are in no domain", leader_.size());
    tree_.rails_meet_ = parts.size() == 1;
    if (tree_.rails_meet_) return;
    const auto root = static_cast<std::uint32_t>(tree_.domains_.size());
    tree_.domains_.push_back({.level = kSwitchLevelsMax + 1});
    for (const auto& [member, domain] : parts) tree_.domains_[domain].parent = root;
  }

  /// An interface belongs to the domain of its highest switch: by construction this domain holds its other switches.
  void place_hosts() {
    tree_.places_.resize(topology_.hosts.size());
    for (std::size_t h = 0; h < interfaces_.size(); ++h) {
      for (const Interface& it : interfaces_[h]) tree_.places_[h].push_back({.rail = it.rail});
    }
    for (const Link& link : topology_.links) {
      if (link.from_kind != Link::End::host) continue;
      const std::uint32_t which = interface_of(link);
      HostPlace& place = tree_.places_[link.from][which];
      place.rate_bits_per_second += link.rate_bits_per_second;
      if (topology_.switches[link.to].level == interfaces_[link.from][which].level) place.domain = home_[link.to];
    }
    tree_.hosts_.reserve(topology_.hosts.size());
    for (std::uint32_t h = 0; h < topology_.hosts.size(); ++h) {
      tree_.hosts_.emplace(topology_.hosts[h], h);
      TRIBUTARY_ASSERT(!tree_.places_[h].empty(), "host {} has no interface", topology_.hosts[h]);
      for (const HostPlace& place : tree_.places_[h])
        TRIBUTARY_ASSERT(place.domain < tree_.domains_.size(), "host {} has no domain of {}", h, tree_.domains_.size());
    }
  }

  const Topology& topology_;
  DomainTree& tree_;
  std::vector<std::uint32_t> leader_;               // union-find over switches
  std::vector<std::uint32_t> domain_;               // index: leading switch; the domain of its component
  std::vector<std::uint32_t> home_;                 // the lowest domain that holds this switch
  std::vector<std::uint32_t> widened_;              // members of components that grow by links of this level
  std::vector<std::vector<Interface>> interfaces_;  // index: host
  std::vector<std::vector<const Link*>> links_at_;
};

DomainTree::DomainTree(const Topology& topology)
    : rails_(topology.rails),
      open_(topology.fabric == FabricKind::flat),
      assumed_rate_(topology.assumed_rate_bits_per_second) {
  if (open_) {
    domains_.push_back({.level = 1});
  } else {
    DomainBuilder(topology, *this).build();
  }
  number_preorder();
  count_routes();
}

std::optional<std::uint32_t> DomainTree::rail_number(std::string_view name) const {
  const auto found = std::ranges::find(rails_, name);
  if (found == rails_.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - rails_.begin());
}

std::uint32_t DomainTree::find(const std::string& host) const {
  const auto found = hosts_.find(host);
  if (found != hosts_.end()) return found->second;
  return open_ ? kAnyHost : kUnknownHost;
}

std::uint32_t DomainTree::interfaces(std::uint32_t host) const {
  return host < places_.size() ? static_cast<std::uint32_t>(places_[host].size()) : 1;
}

HostPlace DomainTree::place(const std::string& host) const {
  const std::uint32_t number = find(host);
  return number == kUnknownHost ? HostPlace{} : place(number, 0);
}

HostPlace DomainTree::place(std::uint32_t host, std::uint32_t interface) const {
  if (host == kAnyHost) return {root(), assumed_rate_};
  TRIBUTARY_ASSERT(host < places_.size() && interface < places_[host].size(), "interface {} of host {}, of {}",
                   interface, host, places_.size());
  return places_[host][interface];
}

std::uint32_t DomainTree::interface_of(std::uint32_t host, std::uint32_t route) const {
  if (host == kAnyHost) return 0;
  const std::vector<HostPlace>& places = places_[host];
  if (places.size() == 1 && places[0].rail == kUnnamed) return 0;
  const std::uint32_t rails = rails_.empty() ? 1 : static_cast<std::uint32_t>(rails_.size());
  // A link to a switch without a rail is used for the rails on which the host has no link.
  for (const std::uint32_t rail : {route % rails, kUnnamed}) {
    const auto count = static_cast<std::uint32_t>(std::ranges::count(places, rail, &HostPlace::rail));
    if (count == 0) continue;
    std::uint32_t turn = route / rails % count;
    for (std::uint32_t i = 0;; ++i) {
      if (places[i].rail == rail && turn-- == 0) return i;
    }
  }
  return kNoInterface;
}

void DomainTree::count_routes() {
  const std::uint32_t rails = rails_.empty() ? 1 : static_cast<std::uint32_t>(rails_.size());
  std::uint32_t turns = 1;
  for (const std::vector<HostPlace>& places : places_) {
    for (const HostPlace& place : places) {
      const auto count = static_cast<std::uint32_t>(std::ranges::count(places, place.rail, &HostPlace::rail));
      turns = std::min(std::lcm(turns, count), kInterfacesMax);
    }
  }
  routes_ = std::min(turns * rails, kInterfacesMax);
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
  // The first number of the next child's subtree.
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
