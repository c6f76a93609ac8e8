#include "tree-manager/topology/difference.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "service-kit/units.h"
#include "tree-manager/topology/name_folding.h"

namespace tributary::manager {
namespace {

using Names = std::vector<std::string>;

/// Lower end, upper end, interface. A dragonfly's links between equal switches may be written in both orders.
using Cable = std::tuple<std::string, std::string, std::string>;

std::map<Cable, std::multiset<std::uint64_t>> cables_of(const Topology& topology) {
  std::map<Cable, std::multiset<std::uint64_t>> cables;
  for (const Link& link : topology.links) {
    std::string from =
        link.from_kind == Link::End::host ? topology.hosts[link.from] : topology.switches[link.from].name;
    std::string to = topology.switches[link.to].name;
    const bool equals = link.from_kind == Link::End::fabric_switch &&
                        topology.switches[link.from].level == topology.switches[link.to].level;
    if (equals && to < from) std::swap(from, to);
    const std::string interface = link.interface == kUnnamed ? std::string() : topology.interfaces[link.interface];
    cables[{std::move(from), std::move(to), interface}].insert(link.rate_bits_per_second);
  }
  return cables;
}

std::string text_of(const std::multiset<std::uint64_t>& rates) {
  std::string text;
  for (const std::uint64_t rate : rates) text += (text.empty() ? "" : " + ") + service::rate_text(rate);
  return text;
}

std::string text_of(const Topology& topology, const SwitchNode& node) {
  std::string text = "level " + std::to_string(node.level);
  if (node.rail != kUnnamed) text += ", rail " + topology.rails[node.rail];
  if (node.group != kUnnamed) text += ", group " + topology.groups[node.group];
  return text;
}

std::string text_of(const AggregatorSite& site) {
  return "host " + site.host +
         (site.line_rate_bits_per_second ? ", line rate " + service::rate_text(*site.line_rate_bits_per_second) : "");
}

class Comparison {
 public:
  Comparison(const Topology& before, const Topology& after) : before_(before), after_(after) {}

  TopologyDifference compare() {
    compare_fabric();
    compare_hosts();
    found_.switches_changed = compare_described("switch ", switches_of(before_), switches_of(after_));
    compare_links();
    found_.aggregators_changed = compare_described("aggregator ", sites_of(before_), sites_of(after_));
    return std::move(found_);
  }

 private:
  using Described = std::map<std::string, std::string>;

  void say(char sign, const std::string& what) { found_.lines.push_back(std::string(1, sign) + " " + what); }

  void say_all(char sign, const std::string& kind, Names names, const std::string& about) {
    for (const std::string& name : fold_names(std::move(names))) say(sign, kind + name + about);
  }

  void compare_fabric() {
    const auto text = [](const Topology& topology) {
      return "fabric " + std::string(to_string(topology.fabric)) +
             (topology.fabric == FabricKind::flat ? ", " + service::rate_text(topology.assumed_rate_bits_per_second)
                                                  : "");
    };
    found_.other_fabric = text(before_) != text(after_);
    if (!found_.other_fabric) return;
    say('-', text(before_));
    say('+', text(after_));
  }

  void compare_hosts() {
    Names before = before_.hosts, after = after_.hosts, removed, added;
    std::ranges::sort(before);
    std::ranges::sort(after);
    std::ranges::set_difference(before, after, std::back_inserter(removed));
    std::ranges::set_difference(after, before, std::back_inserter(added));
    found_.hosts_removed = removed.size();
    found_.hosts_added = added.size();
    say_all('-', "host ", std::move(removed), "");
    say_all('+', "host ", std::move(added), "");
  }

  static Described switches_of(const Topology& topology) {
    Described all;
    for (const SwitchNode& node : topology.switches) all[node.name] = text_of(topology, node);
    return all;
  }

  static Described sites_of(const Topology& topology) {
    Described all;
    for (const AggregatorSite& site : topology.aggregators) all[site.name] = text_of(site);
    return all;
  }

  /// Returns the number of names whose description differs.
  std::size_t compare_described(const std::string& kind, const Described& before, const Described& after) {
    std::map<std::string, Names> removed, added;  // key: description
    std::set<std::string> changed;
    for (const auto& [name, text] : before) {
      const auto other = after.find(name);
      if (other != after.end() && other->second == text) continue;
      removed[text].push_back(name);
      changed.insert(name);
    }
    for (const auto& [name, text] : after) {
      const auto other = before.find(name);
      if (other != before.end() && other->second == text) continue;
      added[text].push_back(name);
      changed.insert(name);
    }
    for (auto& [text, names] : removed) say_all('-', kind, std::move(names), ", " + text);
    for (auto& [text, names] : added) say_all('+', kind, std::move(names), ", " + text);
    return changed.size();
  }

  void compare_links() {
    const auto before = cables_of(before_), after = cables_of(after_);
    std::map<std::string, std::pair<Names, Names>> changes;  // key: difference; lower ends that lose it, that gain it
    const auto note = [&](const Cable& cable, const std::multiset<std::uint64_t>& rates, bool gained) {
      const auto& [from, to, interface] = cable;
      const std::string about =
          " to " + to + ", " + text_of(rates) + (interface.empty() ? "" : ", interface " + interface);
      auto& [lost, won] = changes[about];
      (gained ? won : lost).push_back(from);
    };
    for (const auto& [cable, rates] : before) {
      const auto other = after.find(cable);
      if (other != after.end() && other->second == rates) continue;
      ++(other == after.end() ? found_.links_removed : found_.links_rerated);
      note(cable, rates, false);
    }
    for (const auto& [cable, rates] : after) {
      const auto other = before.find(cable);
      if (other != before.end() && other->second == rates) continue;
      if (other == before.end()) ++found_.links_added;
      note(cable, rates, true);
    }
    for (auto& [about, ends] : changes) say_all('-', "link ", std::move(ends.first), about);
    for (auto& [about, ends] : changes) say_all('+', "link ", std::move(ends.second), about);
  }

  const Topology& before_;
  const Topology& after_;
  TopologyDifference found_;
};

}  // namespace

std::string TopologyDifference::summary() const {
  std::string text;
  const auto add = [&](std::size_t count, const char* one, const char* what) {
    if (count == 0) return;
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + one +
            (count == 1    ? ""
             : *one == 's' ? "es"
                           : "s") +
            " " + what;
  };
  if (other_fabric) text = "another fabric";
  add(hosts_removed, "host", "removed");
  add(hosts_added, "host", "added");
  add(switches_changed, "switch", "changed");
  add(links_removed, "link", "removed");
  add(links_added, "link", "added");
  add(links_rerated, "link", "with another rate");
  add(aggregators_changed, "aggregator", "changed");
  return text.empty() ? "nothing changed" : text;
}

TopologyDifference compare(const Topology& before, const Topology& after) {
  return Comparison(before, after).compare();
}

}  // namespace tributary::manager
