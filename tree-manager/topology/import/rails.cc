#include "tree-manager/topology/import/rails.h"

#include <algorithm>
#include <numeric>

#include "tree-manager/topology/import/found_fabric.h"
#include "tree-manager/topology/name_folding.h"
#include "tree-manager/topology/topology_checks.h"

namespace tributary::manager {
namespace {

/// Changes the interfaces' names of the links to accepted names. Two names may become equal.
void set_names(const std::vector<std::string>& names, Topology& topology) {
  static_assert(kNoInterface == kUnnamed);
  std::vector<std::uint32_t> numbers;
  for (const std::string& name : names) {
    const std::string good = accepted_name(name);
    const auto known = std::ranges::find(topology.interfaces, good);
    numbers.push_back(static_cast<std::uint32_t>(known - topology.interfaces.begin()));
    if (known == topology.interfaces.end()) topology.interfaces.push_back(good);
  }
  for (Link& link : topology.links) {
    if (link.interface != kUnnamed) link.interface = numbers[link.interface];
  }
}

bool any_host_has_several(const Topology& topology) {
  constexpr std::uint32_t kNoLink = kUnnamed - 1;
  std::vector<std::uint32_t> first(topology.hosts.size(), kNoLink);
  for (const Link& link : topology.links) {
    if (link.from_kind != Link::End::host) continue;
    if (first[link.from] == kNoLink) first[link.from] = link.interface;
    if (first[link.from] != link.interface) return true;
  }
  return false;
}

Topology without_interfaces(Topology topology) {
  topology.interfaces.clear();
  for (Link& link : topology.links) link.interface = kUnnamed;
  return topology;
}

/// True if every switch of level 1 has links of hosts, all with the same interface's name.
bool are_rails(const Topology& topology) {
  std::vector<std::uint32_t> rail(topology.switches.size(), kUnnamed);
  for (const Link& link : topology.links) {
    if (link.from_kind != Link::End::host || link.interface == kUnnamed) continue;
    if (rail[link.to] != kUnnamed && rail[link.to] != link.interface) return false;
    rail[link.to] = link.interface;
  }
  for (std::size_t i = 0; i < rail.size(); ++i) {
    if ((topology.switches[i].level == 1) != (rail[i] != kUnnamed)) return false;
  }
  return true;
}

void sort_by_rail(Topology& topology) {
  std::vector<std::uint32_t> order(topology.switches.size()), place(topology.switches.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, std::greater{}, [&](std::uint32_t i) {
    return std::pair(topology.switches[i].level, ~topology.switches[i].rail);
  });
  std::vector<SwitchNode> sorted;
  for (const std::uint32_t i : order) {
    place[i] = static_cast<std::uint32_t>(sorted.size());
    sorted.push_back(std::move(topology.switches[i]));
  }
  topology.switches = std::move(sorted);
  for (Link& link : topology.links) {
    link.to = place[link.to];
    if (link.from_kind == Link::End::fabric_switch) link.from = place[link.from];
  }
}

/// Sorts the rails, and sorts the switches of level 1 by their rails: lane i of a group uses rail i.
Topology with_rails(Topology topology) {
  topology.fabric = FabricKind::rail_optimised;
  std::vector<std::uint32_t> order(topology.interfaces.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) {
    return natural_less(topology.interfaces[a], topology.interfaces[b]);
  });
  std::vector<std::uint32_t> rail_of(order.size());
  for (const std::uint32_t interface : order) {
    rail_of[interface] = static_cast<std::uint32_t>(topology.rails.size());
    topology.rails.push_back(topology.interfaces[interface]);
  }
  for (const Link& link : topology.links) {
    const bool named = link.from_kind == Link::End::host && link.interface != kUnnamed;
    if (named) topology.switches[link.to].rail = rail_of[link.interface];
  }
  sort_by_rail(topology);
  return topology;
}

}  // namespace

bool name_interfaces(const std::vector<std::string>& names, Topology& topology) {
  set_names(names, topology);
  const Topology plain = without_interfaces(topology);
  if (any_host_has_several(topology)) {
    if (topology.fabric == FabricKind::fat_tree && are_rails(topology)) topology = with_rails(topology);
    if (!find_unsound(topology)) return true;
    topology = plain;
    return false;
  }
  topology = plain;
  return true;
}

}  // namespace tributary::manager
