#include "tree-manager/planner/load_change.h"

#include <algorithm>

#include "tree-manager/planner/host_numbers.h"
#include "tree-manager/planner/sites.h"

namespace tributary::manager {
namespace {

/// Gathers the load of each interface.
class Tally {
 public:
  Tally(const DomainTree& domains, FabricLoad& load, LoadChange change)
      : domains_(domains), load_(load), change_(change), numbers_(domains) {}

  /// Returns the host's number in this tally.
  std::uint32_t host(const std::string& name) {
    const std::uint32_t number = numbers_.add(name);
    flows_.resize(numbers_.interfaces(), 0);
    return number;
  }

  void edge(std::uint32_t from, std::uint32_t to, std::uint32_t route, std::uint64_t weight) {
    if (from == to) return;
    const HostPlace a = put(from, route, weight), b = put(to, route, weight);
    // No such uplink: the topology has changed after the tree was planned.
    if (a.domain == kNoDomain || b.domain == kNoDomain) return;
    domains_.each_uplink_between(a.domain, b.domain, [&](std::uint32_t d) { apply(load_.uplinks[d], weight); });
  }

  void aggregator(const std::string& name, std::uint64_t amount) { apply(load_.aggregators, name, amount); }

  void finish() {
    for (const HostNumbers::Host& host : numbers_.hosts()) {
      for (std::uint32_t i = 0; i < host.interfaces; ++i) {
        if (flows_[host.first + i] != 0) apply(load_.hosts, load_name(*host.name, i), flows_[host.first + i]);
      }
    }
  }

 private:
  HostPlace put(std::uint32_t which, std::uint32_t route, std::uint64_t weight) {
    const HostNumbers::Host& host = numbers_.hosts()[which];
    const std::uint32_t interface = numbers_.interface_of(host, route);
    if (interface == kNoInterface) return {};
    flows_[host.first + interface] += weight;
    return host.number == kUnknownHost ? HostPlace{} : domains_.place(host.number, interface);
  }

  void apply(std::uint64_t& at, std::uint64_t amount) const {
    at = change_ == LoadChange::add ? at + amount : at - std::min(at, amount);
  }

  /// Forgets names without load: a flat fabric accepts any host name, and must not collect names for ever.
  void apply(std::unordered_map<std::string, std::uint64_t>& in, const std::string& name, std::uint64_t amount) const {
    if (change_ == LoadChange::add) {
      in[name] += amount;
      return;
    }
    const auto found = in.find(name);
    if (found == in.end()) return;
    apply(found->second, amount);
    if (found->second == 0) in.erase(found);
  }

  const DomainTree& domains_;
  FabricLoad& load_;
  const LoadChange change_;
  HostNumbers numbers_;
  std::vector<std::uint64_t> flows_;  // by the interface's number in numbers_
};

}  // namespace

void change_load(const DomainTree& domains, FabricLoad& load, std::span<const LaneTree> lanes,
                 std::span<const std::string> hosts, LoadChange change) {
  if (lanes.empty()) return;
  load.uplinks.resize(domains.domains().size(), 0);
  const std::uint32_t sum = weight_of(lanes);
  Tally tally(domains, load, change);
  std::vector<std::uint32_t> host_of_rank(hosts.size());
  for (std::size_t r = 0; r < hosts.size(); ++r)
    host_of_rank[r] = r > 0 && hosts[r] == hosts[r - 1] ? host_of_rank[r - 1] : tally.host(hosts[r]);
  for (const LaneTree& lane : lanes) {
    const std::uint64_t weight = lane_load(lane.weight, sum);
    std::vector<std::uint32_t> host_of_node;
    host_of_node.reserve(lane.nodes.size());
    for (const TreeNode& node : lane.nodes) host_of_node.push_back(tally.host(node.host));
    for (std::size_t r = 0; r < hosts.size(); ++r)
      tally.edge(host_of_rank[r], host_of_node[lane.leaf_of_rank[r]], lane.route, weight);
    for (std::size_t n = 0; n < lane.nodes.size(); ++n) {
      const TreeNode& node = lane.nodes[n];
      const bool root = node.parent == kNoParent;
      tally.aggregator(node.aggregator, weight * (node.children.size() + (root ? 0U : 1U)));
      if (!root) tally.edge(host_of_node[n], host_of_node[node.parent], lane.route, weight);
    }
  }
  tally.finish();
}

}  // namespace tributary::manager
