#include "tree-manager/topology/topology_yaml.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "service-kit/units.h"
#include "tree-manager/topology/name_folding.h"
#include "tributary/protocol/assert.h"

namespace tributary::manager {
namespace {

constexpr std::size_t kListNamesOnALine = 8;

/// Returns the name in a form that YAML reads as text, even if the name looks like a number.
std::string quoted(const std::string& name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  };
  const bool good = std::ranges::all_of(name, plain) && name.front() != '-' && name.front() != '.' && name != "null" &&
                    name != "Null" && name != "NULL";
  return good ? name : '"' + name + '"';
}

/// Returns one name, or a list of names and ranges.
std::string listed(std::vector<std::string> names) {
  const auto folded = fold_names(std::move(names));
  if (folded.size() == 1) return quoted(folded[0]);
  std::string text = "[";
  for (std::size_t i = 0; i < folded.size(); ++i) {
    if (i != 0) text += i % kListNamesOnALine == 0 ? ",\n      " : ", ";
    text += quoted(folded[i]);
  }
  return text + "]";
}

class YamlWriter {
 public:
  explicit YamlWriter(const Topology& topology) : topology_(topology) {}

  std::string write() {
    text_ = "fabric: " + quoted(std::string(to_string(topology_.fabric))) + "\n";
    if (topology_.fabric == FabricKind::flat) {
      text_ += "assumed_rate: " + service::rate_text(topology_.assumed_rate_bits_per_second) + "\n";
    } else if (topology_.fabric == FabricKind::nested) {
      write_places();
    } else {
      write_switches();
      text_ += "\nhosts:\n";
      for (const std::string& name : in_order(topology_.hosts)) text_ += "  - " + quoted(name) + "\n";
      write_links();
    }
    write_aggregators();
    return std::move(text_);
  }

 private:
  static std::string rate(std::uint64_t bits_per_second) { return service::rate_text(bits_per_second); }

  /// Folds names that are in natural order. Other names keep their order, because a manager may rely on it.
  static std::vector<std::string> in_order(const std::vector<std::string>& names) {
    return std::ranges::is_sorted(names, natural_less) ? fold_names(names) : names;
  }

  void write_switches() {
    text_ += "\nswitches:\n";
    const auto& all = topology_.switches;
    const bool levels = topology_.fabric != FabricKind::dragonfly;
    for (std::size_t begin = 0; begin < all.size();) {
      std::size_t end = begin;
      std::vector<std::string> names;
      const auto key = [](const SwitchNode& it) { return std::tuple(it.level, it.rail, it.group); };
      while (end < all.size() && key(all[end]) == key(all[begin])) names.push_back(all[end++].name);
      for (const std::string& name : in_order(names)) {
        text_ += "  - {name: " + quoted(name);
        if (levels) text_ += ", level: " + std::to_string(all[begin].level);
        if (all[begin].rail != kUnnamed) text_ += ", rail: " + quoted(topology_.rails[all[begin].rail]);
        if (all[begin].group != kUnnamed) text_ += ", group: " + quoted(topology_.groups[all[begin].group]);
        text_ += "}\n";
      }
      begin = end;
    }
  }

  [[nodiscard]] const std::string& from_name(const Link& link) const {
    return link.from_kind == Link::End::host ? topology_.hosts[link.from] : topology_.switches[link.from].name;
  }

  /// Joins links with the same rate and upper end, then links with the same lower ends. The result is in the switches'
  /// order.
  void write_links() {
    using Kind = std::tuple<Link::End, std::uint64_t, std::uint32_t>;  // end, rate and interface
    std::map<std::pair<Kind, std::uint32_t>, std::vector<std::string>> below;
    for (const Link& link : topology_.links) {
      below[{{link.from_kind, link.rate_bits_per_second, link.interface}, link.to}].push_back(from_name(link));
    }
    using Uppers = std::pair<std::uint32_t, std::vector<std::string>>;  // number of the first upper end, and all names
    std::map<std::pair<Kind, std::vector<std::string>>, Uppers> lines;
    std::vector<const decltype(lines)::value_type*> order;
    for (auto& [upper, names] : below) {
      std::ranges::sort(names);
      const bool repeated = std::ranges::adjacent_find(names) != names.end();
      if (repeated) {  // several links between the same two nodes: a list of names would join them
        for (const std::string& name : names) write_link(upper.first, {name}, {topology_.switches[upper.second].name});
        continue;
      }
      const auto [line, added] =
          lines.try_emplace({upper.first, std::move(names)}, upper.second, std::vector<std::string>());
      line->second.second.push_back(topology_.switches[upper.second].name);
      if (added) order.push_back(&*line);
    }
    std::ranges::stable_sort(order, {}, [](const auto* line) {
      return std::pair(std::get<Link::End>(line->first.first), line->second.first);
    });
    for (const auto* line : order) write_link(line->first.first, line->first.second, line->second.second);
  }

  void write_link(const std::tuple<Link::End, std::uint64_t, std::uint32_t>& kind, const std::vector<std::string>& from,
                  const std::vector<std::string>& to) {
    if (!links_begun_) text_ += "\nlinks:\n";
    links_begun_ = true;
    const auto [end, bits, interface] = kind;
    text_ += "  - {from: " + listed(from) + ", to: " + listed(to) + ", rate: " + rate(bits);
    if (interface != kUnnamed) text_ += ", interface: " + quoted(topology_.interfaces[interface]);
    text_ += "}\n";
  }

  void write_places() {
    text_ += "\nplaces:\n";
    std::vector<const Link*> up(topology_.switches.size(), nullptr);
    std::vector<const Link*> home(topology_.hosts.size(), nullptr);
    for (const Link& link : topology_.links) (link.from_kind == Link::End::host ? home : up)[link.from] = &link;
    for (std::size_t i = 0; i < up.size(); ++i) {
      text_ += "  - {name: " + quoted(topology_.switches[i].name);
      if (up[i] != nullptr) text_ += within(*up[i], "uplink");
      text_ += "}\n";
    }
    text_ += "\nhosts:\n";
    for (std::size_t begin = 0; begin < home.size();) {
      std::size_t end = begin;
      std::vector<std::string> names;
      TRIBUTARY_ASSERT(home[begin] != nullptr, "host {} of {} has no place", begin, home.size());
      while (end < home.size() && within(*home[end], "rate") == within(*home[begin], "rate")) {
        names.push_back(topology_.hosts[end++]);
      }
      for (const std::string& name : in_order(names)) {
        text_ += "  - {name: " + quoted(name) + within(*home[begin], "rate") + "}\n";
      }
      begin = end;
    }
  }

  [[nodiscard]] std::string within(const Link& link, const char* rate_key) const {
    return ", in: " + quoted(topology_.switches[link.to].name) + ", " + rate_key + ": " +
           rate(link.rate_bits_per_second);
  }

  void write_aggregators() {
    if (topology_.aggregators.empty()) return;
    text_ += "\naggregators:\n";
    for (const AggregatorSite& site : topology_.aggregators) {
      text_ += "  - {name: " + quoted(site.name) + ", host: " + quoted(site.host);
      if (site.line_rate_bits_per_second) text_ += ", line_rate: " + rate(*site.line_rate_bits_per_second);
      text_ += "}\n";
    }
  }

  const Topology& topology_;
  std::string text_;
  bool links_begun_ = false;
};

}  // namespace

std::string topology_yaml(const Topology& topology) {
  return YamlWriter(topology).write();
}

}  // namespace tributary::manager
