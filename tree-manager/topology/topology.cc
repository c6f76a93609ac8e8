#include "tree-manager/topology/topology.h"

#include <nlohmann/json.hpp>
#include <numeric>
#include <unordered_map>

#include "service-kit/units.h"
#include "service-kit/yaml_text.h"
#include "tree-manager/topology/name_range.h"
#include "tree-manager/topology/yaml_fields.h"
#include "tributary/protocol/assert.h"

namespace tributary::manager {
namespace {

constexpr std::size_t kNodesMax = 1U << 20;
constexpr std::size_t kLinksMax = 1U << 23;

Result<FabricKind> parse_fabric(std::string_view text) {
  for (const FabricKind kind : {FabricKind::flat, FabricKind::fat_tree}) {
    if (to_string(kind) == text) return kind;
  }
  return fail(Errc::bad_config, "'" + std::string(text) + "' is no fabric known here; accepted: flat, fat-tree");
}

/// Fills one Topology from one document.
class Reader {
 public:
  Reader(const YAML::Node& root, std::string file) : errors_(std::move(file)), root_(root, "", errors_) {}

  Result<Topology> read() {
    topology_.fabric = root_.parsed<FabricKind>("fabric", FabricKind::fat_tree, parse_fabric);
    if (topology_.fabric == FabricKind::flat) {
      read_flat();
    } else {
      read_fat_tree();
    }
    root_.finish();
    if (errors_.any()) return std::unexpected(errors_.status().error());
    return std::move(topology_);
  }

 private:
  struct Name {
    Link::End kind;
    std::uint32_t index;
  };

  void read_flat() {
    topology_.assumed_rate_bits_per_second =
        root_.parsed<std::uint64_t>("assumed_rate", kAssumedRateDefault, parse_positive_rate);
    read_aggregators();
  }

  void read_fat_tree() {
    each(root_.require("switches", "the list of switches, each with name and level"), "switches",
         [&](const YAML::Node& node, const std::string& path) { read_switch(node, path); });
    const YAML::Node hosts = root_.require("hosts", "the list of host names, as node-1 or node-[1-16]");
    each(hosts, "hosts", [&](const YAML::Node& node, const std::string& path) {
      for (std::string& name : names(node, path)) {
        if (define(node, path, name, {Link::End::host, index_of(topology_.hosts)})) {
          topology_.hosts.push_back(std::move(name));
        }
      }
    });
    const YAML::Node links = root_.require("links", "the list of links, each with from, to and rate");
    each(links, "links", [&](const YAML::Node& node, const std::string& path) { read_link(node, path); });
    read_aggregators();
    if (!errors_.any()) check_hosts_linked(hosts);
    if (!errors_.any()) check_connected(links);
  }

  static Result<std::uint64_t> parse_positive_rate(std::string_view text) {
    auto rate = service::naming(text, service::parse_rate(text));
    if (rate && *rate == 0) return fail(Errc::bad_config, "a rate of 0 carries nothing; leave the link out");
    return rate;
  }

  template <class T>
  static std::uint32_t index_of(const std::vector<T>& next) {
    return static_cast<std::uint32_t>(next.size());
  }

  template <class Visit>
  void each(const YAML::Node& list, const std::string& path, const Visit& visit) {
    if (!list.IsDefined()) return;
    if (!list.IsSequence()) return errors_.add(list, path, "a list (lines that begin with '-') is expected here");
    std::size_t i = 0;
    for (const YAML::Node& node : list) {
      if (errors_.any()) return;
      visit(node, path + "[" + std::to_string(i++) + "]");
    }
  }

  std::vector<std::string> names(const YAML::Node& node, const std::string& path) {
    const auto text = scalar(node, path, errors_);
    if (!text) return {};
    auto expanded = expand_names(*text);
    if (!expanded) return errors_.add(node, path, expanded.error().message), std::vector<std::string>{};
    TRIBUTARY_ASSERT(!expanded->empty(), "'{}' stands for no name", *text);
    return std::move(*expanded);
  }

  bool define(const YAML::Node& at, const std::string& path, const std::string& name, Name what) {
    if (names_.size() >= kNodesMax) {
      errors_.add(at, path, "more than " + std::to_string(kNodesMax) + " hosts and switches");
      return false;
    }
    if (names_.emplace(name, what).second) return true;
    errors_.add(at, path, "the name '" + name + "' is used twice");
    return false;
  }

  void read_switch(const YAML::Node& node, const std::string& path) {
    YamlMap map(node, path, errors_);
    const YAML::Node name_node = map.require("name", "the switch's name, or a range as leaf-[1-8]");
    const auto level = map.parsed<std::uint64_t>(
        "level", 0, [](std::string_view text) { return parse_whole_number(text, 1, kSwitchLevelsMax); });
    map.finish();
    if (level == 0) errors_.add(node, path, "'level' is missing: 1 where worker hosts attach, 2 above that, and so on");
    if (errors_.any()) return;
    for (std::string& name : names(name_node, path + ".name")) {
      if (!define(name_node, path + ".name", name, {Link::End::fabric_switch, index_of(topology_.switches)})) return;
      topology_.switches.push_back({std::move(name), static_cast<std::uint32_t>(level)});
    }
  }

  std::vector<Name> link_ends(YamlMap& map, const std::string& key, const std::string& path) {
    std::vector<Name> ends;
    const YAML::Node node = map.require(key, "a name, a range as node-[1-16], or a list of these");
    if (!node.IsDefined()) return ends;
    const auto add = [&](const YAML::Node& item, const std::string& where) {
      for (const std::string& name : names(item, where)) {
        const auto found = names_.find(name);
        if (found == names_.end()) return errors_.add(item, where, "no host or switch has the name '" + name + "'");
        const auto [kind, index] = found->second;
        const std::size_t size = kind == Link::End::host ? topology_.hosts.size() : topology_.switches.size();
        TRIBUTARY_ASSERT(index < size, "'{}' is number {} of {}", name, index, size);
        ends.push_back(found->second);
      }
    };
    if (node.IsSequence()) {
      each(node, path + "." + key, add);
    } else {
      add(node, path + "." + key);
    }
    return ends;
  }

  void read_link(const YAML::Node& node, const std::string& path) {
    YamlMap map(node, path, errors_);
    const auto from = link_ends(map, "from", path);
    const auto to = link_ends(map, "to", path);
    const auto rate = map.parsed<std::uint64_t>("rate", 0, parse_positive_rate);
    map.finish();
    if (!errors_.any() && rate == 0) errors_.add(node, path, "'rate' is missing: for example 100Gbit/s");
    for (const Name& a : from) {
      for (const Name& b : to) {
        if (errors_.any()) return;
        add_link(node, path, a, b, rate);
      }
    }
  }

  void add_link(const YAML::Node& at, const std::string& path, Name a, Name b, std::uint64_t rate) {
    if (topology_.links.size() >= kLinksMax) {
      return errors_.add(at, path, "more than " + std::to_string(kLinksMax) + " links");
    }
    if (a.kind == Link::End::fabric_switch && b.kind == Link::End::host) std::swap(a, b);
    if (b.kind == Link::End::host) return errors_.add(at, path, "a link between two hosts; one end must be a switch");
    if (a.kind == Link::End::fabric_switch) {
      const std::uint32_t level_a = topology_.switches[a.index].level;
      const std::uint32_t level_b = topology_.switches[b.index].level;
      if (level_a == level_b) {
        return errors_.add(at, path,
                           "a link between two switches of level " + std::to_string(level_a) +
                               "; a fat-tree's links join different levels");
      }
      if (level_a > level_b) std::swap(a, b);
    }
    TRIBUTARY_ASSERT(b.kind == Link::End::fabric_switch, "the upper end of link {} is no switch",
                     topology_.links.size());
    topology_.links.push_back({a.kind, a.index, b.index, rate});
  }

  void read_aggregators() {
    each(root_.take("aggregators"), "aggregators", [&](const YAML::Node& node, const std::string& path) {
      YamlMap map(node, path, errors_);
      AggregatorSite site{map.text("name", "the aggregator's name"), map.text("host", "the host it runs on"), {}};
      const auto rate = map.parsed<std::uint64_t>("line_rate", 0, parse_positive_rate);
      if (rate != 0) site.line_rate_bits_per_second = rate;
      map.finish();
      if (errors_.any()) return;
      check_site(map, site);
      topology_.aggregators.push_back(std::move(site));
    });
  }

  void check_site(YamlMap& map, const AggregatorSite& site) {
    for (const AggregatorSite& other : topology_.aggregators) {
      if (other.name == site.name) map.complain("name", "the aggregator '" + site.name + "' stands here twice");
    }
    if (auto ok = check_name(site.name); !ok) map.complain("name", ok.error().message);
    if (auto ok = check_name(site.host); !ok) map.complain("host", ok.error().message);
    if (topology_.fabric == FabricKind::flat) return;
    const auto host = names_.find(site.host);
    if (host == names_.end() || host->second.kind != Link::End::host) {
      map.complain("host", "no host has the name '" + site.host + "'");
    }
  }

  void check_hosts_linked(const YAML::Node& at) {
    std::vector<bool> linked(topology_.hosts.size(), false);
    for (const Link& link : topology_.links) {
      if (link.from_kind == Link::End::host) linked[link.from] = true;
    }
    for (std::size_t i = 0; i < linked.size(); ++i) {
      if (!linked[i]) return errors_.add(at, "hosts", "host '" + topology_.hosts[i] + "' has no link");
    }
  }

  /// Union-find over all nodes: hosts first, then switches.
  void check_connected(const YAML::Node& at) {
    if (topology_.switches.empty()) return errors_.add(at, "switches", "a fat-tree has at least one switch");
    const std::size_t hosts = topology_.hosts.size();
    std::vector<std::uint32_t> leader(hosts + topology_.switches.size());
    std::iota(leader.begin(), leader.end(), 0U);
    const auto find = [&](std::size_t i) {
      auto x = static_cast<std::uint32_t>(i);
      while (leader[x] != x) x = leader[x] = leader[leader[x]];
      return x;
    };
    for (const Link& link : topology_.links) {
      leader[find(link.from + (link.from_kind == Link::End::host ? 0 : hosts))] = find(hosts + link.to);
    }
    const std::uint32_t first = find(hosts);
    for (std::size_t i = 0; i < topology_.switches.size(); ++i) {
      if (find(hosts + i) == first) continue;
      return errors_.add(at, "links",
                         "switch '" + topology_.switches[i].name + "' is not connected with switch '" +
                             topology_.switches[0].name + "' by any links");
    }
  }

  YamlErrors errors_;
  YamlMap root_;
  Topology topology_;
  std::unordered_map<std::string, Name> names_;
};

}  // namespace

std::string_view to_string(FabricKind kind) noexcept {
  return kind == FabricKind::flat ? "flat" : "fat-tree";
}

Result<Topology> parse_topology(const std::string& text, const std::string& file) {
  const auto root = service::parse_yaml(text, file);
  if (!root) return std::unexpected(root.error());
  try {
    auto topology = Reader(*root, file).read();
    if (topology) topology->text = text;
    return topology;
  } catch (const YAML::Exception& error) {
    return fail(Errc::bad_config, file + ": " + error.what());
  }
}

Result<Topology> load_topology(const std::string& path) {
  const auto text = read_text_file(path, "topology file");
  if (!text) return std::unexpected(text.error());
  return parse_topology(*text, path);
}

nlohmann::json to_json(const Topology& topology) {
  using nlohmann::json;
  json switches = json::array();
  for (const SwitchNode& node : topology.switches) switches.push_back({{"name", node.name}, {"level", node.level}});
  json links = json::array();
  for (const Link& link : topology.links) {
    const bool host = link.from_kind == Link::End::host;
    TRIBUTARY_ASSERT(
        link.to < topology.switches.size() && link.from < (host ? topology.hosts.size() : topology.switches.size()),
        "link {} leads from {} to {}", links.size(), link.from, link.to);
    links.push_back({{"from", host ? topology.hosts[link.from] : topology.switches[link.from].name},
                     {"to", topology.switches[link.to].name},
                     {"rate_bits_per_second", link.rate_bits_per_second}});
  }
  json aggregators = json::array();
  for (const AggregatorSite& site : topology.aggregators) {
    aggregators.push_back({{"name", site.name}, {"host", site.host}});
    if (site.line_rate_bits_per_second) {
      aggregators.back()["line_rate_bits_per_second"] = *site.line_rate_bits_per_second;
    }
  }
  json result = {{"fabric", to_string(topology.fabric)},
                 {"hosts", topology.hosts},
                 {"switches", std::move(switches)},
                 {"links", std::move(links)},
                 {"aggregators", std::move(aggregators)}};
  if (topology.fabric == FabricKind::flat) {
    result["assumed_rate_bits_per_second"] = topology.assumed_rate_bits_per_second;
  }
  return result;
}

}  // namespace tributary::manager
