#include "tree-manager/topology/import/arrange.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "service-kit/units.h"
#include "tree-manager/topology/import/rails.h"
#include "tree-manager/topology/import/switch_levels.h"
#include "tree-manager/topology/name_folding.h"

namespace tributary::manager {
namespace {

constexpr std::size_t kNamesShown = 5;
constexpr const char* kOneGroup = "fabric";

class Arranger {
 public:
  Arranger(FoundFabric found, const ImportRates& rates) : found_(std::move(found)), rates_(rates) {
    imported_.warnings = std::move(found_.warnings);
    if (rates_.host_bits_per_second == 0) rates_.host_bits_per_second = kAssumedRateDefault;
    if (rates_.switch_bits_per_second == 0 && found_.links_are_cables) {
      rates_.switch_bits_per_second = rates_.host_bits_per_second;
    }
  }

  Result<Imported> arrange(bool rate_given) {
    if (found_.flat) return flat();
    rate_given_ = rate_given;
    set_rates();
    join_cables();
    tree_ = work_out_levels(found_.nodes, links_);
    if (tree_) leave_out_equals();
    keep_largest_part();
    const auto deepest = std::ranges::max_element(found_.nodes, {}, &FoundNode::level);
    if (deepest != found_.nodes.end() && deepest->level > kSwitchLevelsMax) {
      return fail(Errc::bad_config, "the switch '" + accepted_name(deepest->name) + "' is " +
                                        std::to_string(deepest->level) + " levels above the hosts; at most " +
                                        std::to_string(kSwitchLevelsMax) + " are accepted");
    }
    if (!any_host_) return fail(Errc::bad_config, "no host is connected to a switch, so there is nothing to plan with");
    if (!found_.links_are_cables) widen_uplinks();
    build();
    if (!name_interfaces(found_.interfaces, imported_.topology)) {
      imported_.warnings.emplace_back(
          "hosts have several interfaces, but their switches reach each other only through hosts: each host's "
          "interfaces are taken as one with the sum of the rates");
    }
    return std::move(imported_);
  }

 private:
  Result<Imported> flat() {
    imported_.topology.fabric = FabricKind::flat;
    imported_.topology.assumed_rate_bits_per_second = rates_.host_bits_per_second;
    return std::move(imported_);
  }

  void warn(std::size_t count, const std::string& what) {
    if (count != 0) imported_.warnings.emplace_back(std::to_string(count) + " " + what);
  }

  [[nodiscard]] bool between_switches(const FoundLink& link) const {
    return found_.nodes[link.a].is_switch && found_.nodes[link.b].is_switch;
  }

  void set_rates() {
    std::size_t assumed = 0, enough = 0;
    for (FoundLink& link : found_.links) {
      if (link.rate_bits_per_second != 0) continue;
      const bool upper = between_switches(link);
      link.rate_bits_per_second = upper ? rates_.switch_bits_per_second : rates_.host_bits_per_second;
      ++(link.rate_bits_per_second == 0 ? enough : assumed);
    }
    if (!rate_given_) {
      warn(assumed, "links have no rate in their source: " + service::rate_text(rates_.host_bits_per_second) +
                        " is taken; give theirs with --rate");
    }
    warn(enough,
         "links between switches have no rate in their source: each is taken to carry what all hosts below can "
         "send; give theirs with --switch-rate");
  }

  /// Makes one link of all cables between two nodes, or between an interface and a switch. The lower index comes first.
  void join_cables() {
    std::size_t loops = 0, between_hosts = 0;
    for (FoundLink link : found_.links) {
      if (link.a > link.b) std::swap(link.a, link.b);
      if (link.a == link.b) {
        ++loops;
      } else if (!found_.nodes[link.a].is_switch && !found_.nodes[link.b].is_switch) {
        ++between_hosts;
      } else {
        links_.push_back(link);
      }
    }
    const auto ends = [](const FoundLink& it) { return std::tuple(it.a, it.b, it.interface); };
    std::ranges::stable_sort(links_, {}, ends);
    std::size_t kept = 0;
    for (const FoundLink& link : links_) {
      if (kept != 0 && ends(links_[kept - 1]) == ends(link)) {
        links_[kept - 1].rate_bits_per_second += link.rate_bits_per_second;
      } else {
        links_[kept++] = link;
      }
    }
    links_.resize(kept);
    warn(loops, "links from a node to itself were left out");
    warn(between_hosts, "links between two hosts were left out");
  }

  void leave_out_equals() {
    std::string example;
    const std::size_t before = links_.size();
    std::erase_if(links_, [&](const FoundLink& link) {
      const FoundNode &a = found_.nodes[link.a], &b = found_.nodes[link.b];
      if (!between_switches(link) || a.level != b.level || a.level == 0) return false;
      if (example.empty()) example = a.name + " - " + b.name + ", level " + std::to_string(a.level);
      return true;
    });
    warn(before - links_.size(), "links between switches of one level were left out (" + example +
                                     "): trees use no ways across, and these close cycles");
  }

  [[nodiscard]] std::uint32_t find(std::uint32_t x) {
    while (leader_[x] != x) x = leader_[x] = leader_[leader_[x]];
    return x;
  }

  void keep_largest_part() {
    leader_.resize(found_.nodes.size());
    std::iota(leader_.begin(), leader_.end(), 0U);
    std::vector<bool> linked(found_.nodes.size(), false);
    for (const FoundLink& link : links_) {
      leader_[find(link.a)] = find(link.b);
      linked[link.a] = linked[link.b] = true;
    }
    std::vector<std::uint32_t> hosts(found_.nodes.size(), 0);
    for (std::uint32_t i = 0; i < found_.nodes.size(); ++i) {
      if (!found_.nodes[i].is_switch && linked[i]) ++hosts[find(i)];
    }
    const auto largest = std::ranges::max_element(hosts);
    any_host_ = largest != hosts.end() && *largest != 0;
    kept_.assign(found_.nodes.size(), false);
    std::vector<std::string> lonely, unreached, idle;
    for (std::uint32_t i = 0; i < found_.nodes.size(); ++i) {
      const FoundNode& node = found_.nodes[i];
      const bool same = any_host_ && find(i) == static_cast<std::uint32_t>(largest - hosts.begin());
      kept_[i] = same && linked[i] && (!node.is_switch || node.level != 0);
      if (kept_[i]) continue;
      (node.is_switch ? idle : linked[i] ? unreached : lonely).push_back(accepted_name(node.name));
    }
    std::erase_if(links_, [&](const FoundLink& link) { return !kept_[link.a] || !kept_[link.b]; });
    warn_of(std::move(lonely), "hosts without a link to a switch were left out");
    warn_of(std::move(unreached), "hosts were left out that the largest part of the fabric does not reach");
    warn_of(std::move(idle), "switches without a way to a host of the largest part were left out");
  }

  void warn_of(std::vector<std::string> names, const std::string& what) {
    if (names.empty()) return;
    const std::size_t count = names.size();
    auto folded = fold_names(std::move(names));
    const std::size_t more = folded.size() - std::min(folded.size(), kNamesShown);
    folded.resize(folded.size() - more);
    std::string list;
    for (const std::string& name : folded) list += (list.empty() ? "" : ", ") + name;
    warn(count, what + ": " + list + (more == 0 ? "" : ", ..."));
  }

  /// Gives a rate to each link between switches that has none: the rate at which the hosts below its lower end can
  /// send, divided by the number of this end's links up.
  void widen_uplinks() {
    std::vector<std::uint64_t> below(found_.nodes.size(), 0);
    std::vector<std::uint32_t> ways(found_.nodes.size(), 0);
    const auto lower = [&](const FoundLink& link) {
      return found_.nodes[link.a].level < found_.nodes[link.b].level ? link.a : link.b;
    };
    for (const FoundLink& link : links_) {
      if (between_switches(link)) {
        ++ways[lower(link)];
      } else {
        below[found_.nodes[link.a].is_switch ? link.a : link.b] += link.rate_bits_per_second;
      }
    }
    std::vector<FoundLink*> upper;
    for (FoundLink& link : links_) {
      if (between_switches(link)) upper.push_back(&link);
    }
    std::ranges::stable_sort(upper, {}, [&](const FoundLink* it) { return found_.nodes[lower(*it)].level; });
    for (FoundLink* link : upper) {
      const std::uint32_t from = lower(*link);
      const std::uint64_t share = std::max<std::uint64_t>(below[from] / ways[from], 1);
      if (link->rate_bits_per_second == 0) link->rate_bits_per_second = share;
      below[from == link->a ? link->b : link->a] += share;
    }
  }

  void build() {
    std::vector<std::uint32_t> order(found_.nodes.size());
    std::iota(order.begin(), order.end(), 0U);
    std::erase_if(order, [&](std::uint32_t i) { return !kept_[i]; });
    const std::vector<std::string> names = name(order);
    std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) {
      if (found_.nodes[a].level != found_.nodes[b].level) return found_.nodes[a].level > found_.nodes[b].level;
      return natural_less(names[a], names[b]);
    });
    Topology& topology = imported_.topology;
    topology.fabric = tree_ ? FabricKind::fat_tree : FabricKind::dragonfly;
    if (!tree_) {
      topology.groups.emplace_back(kOneGroup);
      imported_.warnings.emplace_back(
          std::string(
              "the cables between the switches with hosts form no tree: the switches are taken as one group '") +
          kOneGroup + "' of a dragonfly; name the groups by hand where there are several");
    }
    std::vector<std::uint32_t> places(found_.nodes.size(), 0);
    for (const std::uint32_t i : order) {
      if (found_.nodes[i].is_switch) {
        places[i] = static_cast<std::uint32_t>(topology.switches.size());
        topology.switches.push_back({.name = names[i], .level = found_.nodes[i].level});
        if (!tree_) topology.switches.back().group = 0;
      } else {
        places[i] = static_cast<std::uint32_t>(topology.hosts.size());
        topology.hosts.push_back(names[i]);
      }
    }
    for (const FoundLink& link : links_) {
      const bool a_below = found_.nodes[link.a].level < found_.nodes[link.b].level;
      const std::uint32_t from = a_below ? link.a : link.b, to = a_below ? link.b : link.a;
      const auto kind = found_.nodes[from].is_switch ? Link::End::fabric_switch : Link::End::host;
      topology.links.push_back({kind, places[from], places[to], link.rate_bits_per_second, link.interface});
    }
    std::ranges::stable_sort(topology.links, {},
                             [](const Link& it) { return std::tuple(it.from_kind, it.from, it.to); });
  }

  /// Returns a unique name for each node.
  std::vector<std::string> name(const std::vector<std::uint32_t>& order) {
    std::vector<std::string> names(found_.nodes.size());
    std::unordered_map<std::string, std::uint32_t> uses;
    for (const std::uint32_t i : order) ++uses[names[i] = accepted_name(found_.nodes[i].name)];
    std::unordered_set<std::string> taken;
    std::size_t renamed = 0, changed = 0;
    for (const std::uint32_t i : order) {
      const FoundNode& node = found_.nodes[i];
      std::string wanted = names[i];
      if (uses[wanted] > 1 && !node.distinct.empty()) wanted += "-" + accepted_name(node.distinct);
      std::string unlike = wanted;
      for (std::uint32_t k = 2; !taken.insert(unlike).second; ++k) unlike = wanted + "." + std::to_string(k);
      if (unlike != node.name) ++(unlike == names[i] ? changed : renamed);
      names[i] = std::move(unlike);
    }
    warn(changed, "names have '-' in place of characters that no name may have");
    warn(renamed, "nodes share a name with another; each has a different ending now");
    return names;
  }

  FoundFabric found_;
  ImportRates rates_;
  bool rate_given_ = false;
  bool any_host_ = false;
  bool tree_ = true;
  Imported imported_;
  std::vector<FoundLink> links_;
  std::vector<std::uint32_t> leader_;
  std::vector<bool> kept_;
};

}  // namespace

Result<Imported> arrange(FoundFabric found, const ImportRates& rates) {
  return Arranger(std::move(found), rates).arrange(rates.host_bits_per_second != 0);
}

}  // namespace tributary::manager
