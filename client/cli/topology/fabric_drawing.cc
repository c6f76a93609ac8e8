#include "client/cli/topology/fabric_drawing.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "client/cli/terminal/counted.h"
#include "client/cli/terminal/table.h"
#include "client/cli/topology/places.h"
#include "tree-manager/topology/name_folding.h"

namespace tributary::cli {
namespace {

using manager::FabricKind;
using manager::kUnnamed;
using manager::Link;
using manager::Topology;

constexpr std::size_t kNamesShown = 8;

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kNamesShown; ++i) text += (i == 0 ? "" : ", ") + names[i];
  return names.size() <= kNamesShown ? text : text + fmt::format(" and {} more", names.size() - kNamesShown);
}

class Drawing {
 public:
  explicit Drawing(const Topology& topology) : topology_(topology), places_(places_of(topology)) {
    for (const auto& site : topology.aggregators)
      sites_[site.host] += (sites_[site.host].empty() ? "" : ", ") + site.name;
  }

  std::string draw() {
    for (const FabricPlace& place : places_) {
      if (!place.outermost) continue;
      text_ += title(place) + "\n";
      draw_inside(place, "");
    }
    return printable_lines();
  }

 private:
  /// Hosts that differ only in their names.
  struct HostRow {
    std::vector<std::string> names;
    std::string about;
  };

  [[nodiscard]] std::vector<HostRow> rows_of(const FabricPlace& place) const {
    std::map<std::pair<std::string, std::string>, std::vector<std::string>> rows;  // by aggregators, then other facts
    for (const Link* link : place.hosts) {
      const std::string& name = topology_.hosts[link->from];
      std::string about = " at " + rate_text(link->rate_bits_per_second);
      if (link->interface != kUnnamed) about += ", interface " + topology_.interfaces[link->interface];
      const auto site = sites_.find(name);
      rows[{site == sites_.end() ? "" : ", aggregator " + site->second, about}].push_back(name);
    }
    std::vector<HostRow> list;
    for (auto& [about, names] : rows) list.push_back({std::move(names), about.second + about.first});
    return list;
  }

  [[nodiscard]] static std::string text_of(const HostRow& row) {
    return joined(manager::fold_names(row.names)) + row.about;
  }

  [[nodiscard]] std::string title(const FabricPlace& place) const {
    std::string text = name_of(place);
    if (place.uplinks != 0) {
      text +=
          fmt::format("  {}, {} up", counted(place.uplinks, "link", "links"), rate_text(place.uplink_bits_per_second));
      const double ratio =
          static_cast<double>(place.below_bits_per_second) / static_cast<double>(place.uplink_bits_per_second);
      if (place.below_bits_per_second != 0)
        text += ratio < 1000 ? fmt::format(", {:.3g}:1", ratio) : fmt::format(", {:.0f}:1", ratio);
    }
    return text;
  }

  [[nodiscard]] std::string name_of(const FabricPlace& place) const {
    if (place.switches.empty()) {
      const std::uint32_t group = group_of(place);
      return group == kUnnamed ? std::string(to_string(topology_.fabric)) : "group " + topology_.groups[group];
    }
    std::vector<std::string> names;
    for (const std::uint32_t i : place.switches) names.push_back(topology_.switches[i].name);
    std::string text = joined(manager::fold_names(std::move(names)));
    const auto& first = topology_.switches[place.switches[0]];
    if (first.rail != kUnnamed) text += ", rail " + topology_.rails[first.rail];
    return text;
  }

  /// Returns the dragonfly group that contains all switches of the place; kUnnamed: there is none.
  [[nodiscard]] std::uint32_t group_of(const FabricPlace& place) const {
    if (!place.switches.empty()) return topology_.switches[place.switches[0]].group;
    if (place.level > 2 || place.inside.empty()) return kUnnamed;
    return group_of(places_[place.inside[0]]);
  }

  void draw_inside(const FabricPlace& place, const std::string& indent) {
    const std::vector<HostRow> rows = rows_of(place);
    std::size_t left = rows.size() + place.inside.size();
    for (const HostRow& row : rows) text_ += indent + branch(--left == 0) + text_of(row) + "\n";
    std::vector<std::uint32_t> inside = place.inside;
    std::ranges::stable_sort(inside, [&](std::uint32_t a, std::uint32_t b) {
      return manager::natural_less(name_of(places_[a]), name_of(places_[b]));
    });
    for (const std::uint32_t inner : inside) {
      const bool last = --left == 0;
      const FabricPlace& next = places_[inner];
      const auto below = rows_of(next);
      const bool short_form = below.size() == 1 && next.inside.empty();
      text_ += indent + branch(last) + title(next) + (short_form ? ": " + text_of(below[0]) : "") + "\n";
      if (!short_form) draw_inside(next, indent + (last ? "   " : "│  "));
    }
  }

  static const char* branch(bool last) { return last ? "└─ " : "├─ "; }

  /// Returns the text without control characters: names from outside must not control the terminal.
  std::string printable_lines() {
    for (char& c : text_) {
      if (c != '\n' && (static_cast<unsigned char>(c) < ' ' || c == 127)) c = '?';
    }
    return std::move(text_);
  }

  const Topology& topology_;
  const std::vector<FabricPlace> places_;
  std::unordered_map<std::string, std::string> sites_;  // aggregators of each host
  std::string text_;
};

}  // namespace

std::string draw_fabric(const Topology& topology, const std::string& source) {
  std::string head = fmt::format("fabric {}, {}", to_string(topology.fabric), source);
  if (topology.fabric == FabricKind::flat) {
    head += fmt::format("\nevery host has {}\n", rate_text(topology.assumed_rate_bits_per_second));
    for (const auto& site : topology.aggregators) head += fmt::format("aggregator {} on {}\n", site.name, site.host);
    return head;
  }
  return head +
         fmt::format(": {}, {}, {}\n", counted(topology.hosts.size(), "host", "hosts"),
                     counted(topology.switches.size(), "switch", "switches"),
                     counted(topology.links.size(), "link", "links")) +
         Drawing(topology).draw();
}

}  // namespace tributary::cli
