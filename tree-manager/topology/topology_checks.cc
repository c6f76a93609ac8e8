#include "tree-manager/topology/topology_checks.h"

#include <numeric>
#include <vector>

namespace tributary::manager {
namespace {

constexpr std::size_t kNone = SIZE_MAX;

/// The connected components of nodes.
class UnionFind {
 public:
  explicit UnionFind(std::size_t nodes) : leader_(nodes) { std::iota(leader_.begin(), leader_.end(), std::size_t{0}); }
  [[nodiscard]] std::size_t leader(std::size_t x) {
    while (leader_[x] != x) x = leader_[x] = leader_[leader_[x]];
    return x;
  }
  void join(std::size_t a, std::size_t b) { leader_[leader(a)] = leader(b); }

 private:
  std::vector<std::size_t> leader_;
};

bool serves(const Topology& topology, std::size_t which, std::uint32_t rail) {
  const std::uint32_t own = topology.switches[which].rail;
  return own == kUnnamed || own == rail;
}

/// Returns the components of the switches that serve the rail. In a fabric that is not rail-optimised, no switch has a
/// rail, and all switches count. A host with one interface on several switches connects them.
UnionFind reach_of(const Topology& topology, std::uint32_t rail) {
  const std::size_t hosts = topology.hosts.size();
  UnionFind reach(topology.switches.size() + hosts);
  for (const Link& link : topology.links) {
    const bool host = link.from_kind == Link::End::host;
    if (host ? !topology.rails.empty() || link.interface != kUnnamed
             : !serves(topology, link.from, rail) || !serves(topology, link.to, rail))
      continue;
    reach.join(host ? topology.switches.size() + link.from : link.from, link.to);
  }
  return reach;
}

std::string named(const Topology& topology, std::size_t which) {
  return "switch '" + topology.switches[which].name + "'";
}

std::optional<Unsound> check_rail(const Topology& topology, std::uint32_t rail, std::vector<bool>& reached) {
  UnionFind reach = reach_of(topology, rail);
  std::size_t first = kNone;
  for (std::size_t i = 0; i < topology.switches.size(); ++i) {
    if (topology.switches[i].rail != rail) continue;
    if (first == kNone) first = i;
    if (reach.leader(i) == reach.leader(first)) continue;
    return Unsound{"links", named(topology, i) + " is not connected with " + named(topology, first) + " by any links" +
                                (rail == kUnnamed ? "" : " of rail '" + topology.rails[rail] + "'")};
  }
  for (std::size_t i = 0; first != kNone && i < topology.switches.size(); ++i) {
    if (reach.leader(i) == reach.leader(first)) reached[i] = true;
  }
  return std::nullopt;
}

std::optional<Unsound> check_connected(const Topology& topology) {
  if (topology.switches.empty())
    return Unsound{"switches", "a " + std::string(to_string(topology.fabric)) + " has at least one switch"};
  std::vector<bool> reached(topology.switches.size(), false);
  if (topology.rails.empty()) return check_rail(topology, kUnnamed, reached);
  for (std::uint32_t rail = 0; rail < topology.rails.size(); ++rail) {
    if (auto unsound = check_rail(topology, rail, reached)) return unsound;
  }
  for (std::size_t i = 0; i < reached.size(); ++i) {
    if (!reached[i]) return Unsound{"links", named(topology, i) + " is not connected with any rail"};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Unsound> find_unsound(const Topology& topology) {
  std::vector<bool> linked(topology.hosts.size(), false);
  for (const Link& link : topology.links) {
    if (link.from_kind == Link::End::host) linked[link.from] = true;
  }
  for (std::size_t i = 0; i < linked.size(); ++i) {
    if (!linked[i]) return Unsound{"hosts", "host '" + topology.hosts[i] + "' has no link"};
  }
  return check_connected(topology);
}

}  // namespace tributary::manager
