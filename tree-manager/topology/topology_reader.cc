#include "tree-manager/topology/topology_reader.h"

#include <algorithm>
#include <unordered_set>

#include "service-kit/units.h"
#include "tree-manager/topology/name_range.h"
#include "tree-manager/topology/named_nodes.h"
#include "tree-manager/topology/topology_checks.h"
#include "tributary/protocol/assert.h"

namespace tributary::manager {
namespace {

constexpr std::size_t kLinksMax = 1U << 23;
constexpr std::uint32_t kSpineLevel = 2;  // level of the spines of a dragonfly+

Result<FabricKind> parse_fabric(std::string_view text) {
  for (const FabricKind kind : kFabricKinds) {
    if (to_string(kind) == text) return kind;
  }
  return fail(Errc::bad_config, "there is no such fabric");
}

std::string fabric_names() {
  std::string names;
  for (const FabricKind kind : kFabricKinds) names += (names.empty() ? "" : ", ") + std::string(to_string(kind));
  return names;
}

Result<std::uint64_t> parse_positive_rate(std::string_view text) {
  auto rate = service::parse_rate(text);
  if (rate && *rate == 0) return fail(Errc::bad_config, "a rate of 0 carries nothing; leave the link out");
  return rate;
}

/// Fills one Topology from one document.
class Reader {
 public:
  Reader(const YAML::Node& root, const std::string& file) : errors_(file), root_(root, "", errors_) {}

  Result<Topology> read() {
    out_.fabric = root_.parsed<FabricKind>("fabric", FabricKind::fat_tree, parse_fabric, fabric_names());
    if (out_.fabric == FabricKind::flat) {
      out_.assumed_rate_bits_per_second =
          root_.parsed<std::uint64_t>("assumed_rate", kAssumedRateDefault, parse_positive_rate);
    } else if (out_.fabric == FabricKind::nested) {
      read_nested();
    } else {
      read_switched();
    }
    read_aggregators();
    if (!errors_.any() && out_.fabric != FabricKind::flat) check();
    root_.finish();
    if (errors_.any()) return std::unexpected(errors_.status().error());
    return std::move(out_);
  }

 private:
  using Node = NamedNodes::Node;

  [[nodiscard]] bool is_dragonfly() const {
    return out_.fabric == FabricKind::dragonfly || out_.fabric == FabricKind::dragonfly_plus;
  }

  void read_switched() {
    nodes_.each(root_.require("switches", "the list of switches, each with name and level"), "switches",
                [&](const YAML::Node& node, const std::string& path) { read_switch(node, path); });
    const YAML::Node hosts = root_.require("hosts", "the list of host names, as node-1 or node-[1-16]");
    nodes_.each(hosts, "hosts", [&](const YAML::Node& node, const std::string& path) {
      for (std::string& name : nodes_.expand(node, path)) add_host(node, path, std::move(name));
    });
    const YAML::Node links = root_.require("links", "the list of links, each with from, to and rate");
    nodes_.each(links, "links", [&](const YAML::Node& node, const std::string& path) { read_link(node, path); });
  }

  /// Reads places, outer places before inner places. Each place becomes a switch, and its uplink a link.
  void read_nested() {
    nodes_.each(root_.require("places", "the list of places, the outermost first, each with name, in and uplink"),
                "places", [&](const YAML::Node& node, const std::string& path) { read_place(node, path); });
    set_levels();
    nodes_.each(root_.require("hosts", "the list of hosts, each with name, in and rate"), "hosts",
                [&](const YAML::Node& node, const std::string& path) { read_nested_host(node, path); });
  }

  bool add_host(const YAML::Node& at, const std::string& path, std::string name) {
    const auto index = static_cast<std::uint32_t>(out_.hosts.size());
    if (!nodes_.define(at, path, name, {Link::End::host, index})) return false;
    out_.hosts.push_back(std::move(name));
    return true;
  }

  bool add_switch(const YAML::Node& at, const std::string& path, SwitchNode node) {
    const auto index = static_cast<std::uint32_t>(out_.switches.size());
    if (!nodes_.define(at, path, node.name, {Link::End::fabric_switch, index})) return false;
    out_.switches.push_back(std::move(node));
    return true;
  }

  void read_switch(const YAML::Node& node, const std::string& path) {
    YamlMap map(node, path, errors_);
    const YAML::Node name_node = map.require("name", "the switch's name, or a range as leaf-[1-8]");
    const auto level = read_level(map, node, path);
    const bool rails = out_.fabric == FabricKind::rail_optimised;
    const YAML::Node rail = rails ? map.take("rail") : YAML::Node(YAML::NodeType::Undefined);
    const YAML::Node group = is_dragonfly() ? map.require("group", "the name of the group that the switch belongs to")
                                            : YAML::Node(YAML::NodeType::Undefined);
    map.finish();
    if (rails && level == 1 && !rail.IsDefined())
      errors_.add(node, {.key = path + ".rail",
                         .why = "the key is missing",
                         .allowed = "the name of the rail that this switch of level 1 carries"});
    if (errors_.any()) return;
    std::vector<std::string> names = nodes_.expand(name_node, path + ".name");
    const auto rail_numbers = numbers(rail, path + ".rail", rails_, names.size());
    const auto group_numbers = numbers(group, path + ".group", groups_, names.size());
    for (std::size_t i = 0; i < names.size() && !errors_.any(); ++i) {
      SwitchNode made{std::move(names[i]), level, rail_numbers[i], group_numbers[i]};
      if (!add_switch(name_node, path + ".name", std::move(made))) return;
    }
  }

  std::uint32_t read_level(YamlMap& map, const YAML::Node& node, const std::string& path) {
    if (out_.fabric == FabricKind::dragonfly) return 1;
    const std::uint64_t most = out_.fabric == FabricKind::dragonfly_plus ? kSpineLevel : kSwitchLevelsMax;
    const auto level =
        map.parsed<std::uint64_t>("level", 0, [&](std::string_view text) { return parse_whole_number(text, 1, most); });
    if (level == 0)
      errors_.add(node, {.key = path + ".level",
                         .why = "the key is missing",
                         .allowed = "1 where worker hosts attach, 2 above that, and so on"});
    return static_cast<std::uint32_t>(level);
  }

  /// Returns the number of a name for each of `count` switches. The document has one name for all switches, or a range
  /// with one name for each.
  std::vector<std::uint32_t> numbers(const YAML::Node& node, const std::string& path, NameNumbers& known,
                                     std::size_t count) {
    std::vector<std::uint32_t> found(count, kUnnamed);
    if (!node.IsDefined()) return found;
    const auto names = nodes_.expand(node, path);
    if (!errors_.any() && names.size() != 1 && names.size() != count) {
      errors_.add(node, path,
                  std::to_string(names.size()) + " names for " + std::to_string(count) +
                      " switches; write one for all, or a range with one for each");
    }
    if (errors_.any()) return found;
    for (std::size_t i = 0; i < count; ++i) found[i] = known.number_of(names[names.size() == 1 ? 0 : i]);
    return found;
  }

  void read_link(const YAML::Node& node, const std::string& path) {
    YamlMap map(node, path, errors_);
    const YAML::Node mesh = is_dragonfly() ? map.take("mesh") : YAML::Node(YAML::NodeType::Undefined);
    const std::string what = "a name, a range as node-[1-16], or a list of these";
    const YAML::Node from = mesh.IsDefined() ? mesh : map.require("from", what);
    const YAML::Node to = mesh.IsDefined() ? mesh : map.require("to", what);
    const auto rate = map.parsed<std::uint64_t>("rate", 0, parse_positive_rate);
    const std::uint32_t interface = read_interface(map);
    map.finish();
    const auto from_nodes = nodes_.known(from, path + (mesh.IsDefined() ? ".mesh" : ".from"));
    const auto to_nodes = nodes_.known(to, path + (mesh.IsDefined() ? ".mesh" : ".to"));
    if (!errors_.any() && rate == 0)
      errors_.add(
          node,
          {.key = path + ".rate", .why = "the key is missing", .allowed = "a rate with a unit, for example 100Gbit/s"});
    for (std::size_t i = 0; i < from_nodes.size(); ++i) {
      for (std::size_t j = mesh.IsDefined() ? i + 1 : 0; j < to_nodes.size() && !errors_.any(); ++j)
        add_link(node, path, from_nodes[i], to_nodes[j], rate, interface);
    }
  }

  std::uint32_t read_interface(YamlMap& map) {
    const YAML::Node node = map.take("interface");
    if (!node.IsDefined()) return kUnnamed;
    const auto name = scalar(node, map.path_of("interface"), errors_);
    if (!name) return kUnnamed;
    if (const auto ok = check_name(*name); !ok) return map.complain("interface", ok.error().message), kUnnamed;
    return interfaces_.number_of(*name);
  }

  void add_link(const YAML::Node& at, const std::string& path, Node a, Node b, std::uint64_t rate,
                std::uint32_t interface) {
    if (out_.links.size() >= kLinksMax)
      return errors_.add(at, path, "more than " + std::to_string(kLinksMax) + " links");
    if (a.kind == Link::End::fabric_switch && b.kind == Link::End::host) std::swap(a, b);
    if (b.kind == Link::End::host) return errors_.add(at, path, "a link between two hosts; one end must be a switch");
    if (a.kind == Link::End::fabric_switch) {
      if (interface != kUnnamed)
        return errors_.add(at, path, "'interface' is for links of hosts, not between switches");
      if (const std::string why = why_no_link(a, b); !why.empty()) return errors_.add(at, path, why);
      if (out_.switches[a.index].level > out_.switches[b.index].level) std::swap(a, b);
    }
    TRIBUTARY_ASSERT(b.kind == Link::End::fabric_switch, "the upper end of link {} is no switch", out_.links.size());
    out_.links.push_back({a.kind, a.index, b.index, rate, interface});
  }

  /// Returns the reason why the fabric must not have a link between two such switches; empty if it may.
  [[nodiscard]] std::string why_no_link(Node a, Node b) const {
    const SwitchNode& one = out_.switches[a.index];
    const SwitchNode& other = out_.switches[b.index];
    if (a == b) return "a link from switch '" + one.name + "' to itself";
    const bool level = one.level == other.level;
    switch (out_.fabric) {
      case FabricKind::dragonfly:
        return "";
      case FabricKind::dragonfly_plus:
        if (one.group == other.group)
          return level ? "a link between two switches of one level and group; a dragonfly+'s group is a fat-tree" : "";
        return level && one.level == kSpineLevel ? ""
                                                 : "a link between groups; only switches of level 2 have such links";
      default:
        break;
    }
    if (level) {
      return "a link between two switches of level " + std::to_string(one.level) +
             "; a fat-tree's links join different levels";
    }
    const bool across = one.rail != kUnnamed && other.rail != kUnnamed && one.rail != other.rail;
    return across ? "a link from rail '" + out_.rails[one.rail] + "' to rail '" + out_.rails[other.rail] +
                        "'; rails meet only at switches without a rail"
                  : "";
  }

  void read_place(const YAML::Node& node, const std::string& path) {
    YamlMap map(node, path, errors_);
    const YAML::Node name_node = map.require("name", "the place's name, or a range as rack-[1-8]");
    const YAML::Node in_node = map.take("in");
    const auto uplink = map.parsed<std::uint64_t>("uplink", 0, parse_positive_rate);
    map.finish();
    const auto in = nodes_.known(in_node, path + ".in");
    const bool outermost = out_.switches.empty();
    if (!errors_.any() && (outermost ? in_node.IsDefined() || uplink != 0 : in.size() != 1 || uplink == 0)) {
      errors_.add(node, path,
                  outermost ? "the first place is the outermost: it has neither 'in' nor 'uplink'"
                            : "a place has 'in', the one place above it in this list, and 'uplink', as 400Gbit/s");
    }
    if (errors_.any()) return;
    for (std::string& name : nodes_.expand(name_node, path + ".name")) {
      const auto index = static_cast<std::uint32_t>(out_.switches.size());
      if (outermost && index != 0) return errors_.add(name_node, path + ".name", "one place is the outermost");
      if (!add_switch(name_node, path + ".name", {.name = std::move(name)})) return;
      if (!outermost) out_.links.push_back({Link::End::fabric_switch, index, in[0].index, uplink});
    }
  }

  /// The level of a place is one above the highest place in it. Outer places come before the places in them.
  void set_levels() {
    for (std::size_t i = out_.links.size(); i-- > 0;) {
      const Link& link = out_.links[i];
      SwitchNode& above = out_.switches[link.to];
      above.level = std::max(above.level, out_.switches[link.from].level + 1);
      if (above.level <= kSwitchLevelsMax) continue;
      return root_.complain("places", "more than " + std::to_string(kSwitchLevelsMax) + " places within one another");
    }
  }

  void read_nested_host(const YAML::Node& node, const std::string& path) {
    YamlMap map(node, path, errors_);
    const YAML::Node name_node = map.require("name", "the host's name, or a range as node-[1-16]");
    const auto in = nodes_.known(map.require("in", "the place that the host is in"), path + ".in");
    const auto rate = map.parsed<std::uint64_t>("rate", 0, parse_positive_rate);
    map.finish();
    if (!errors_.any() && rate == 0)
      errors_.add(
          node,
          {.key = path + ".rate", .why = "the key is missing", .allowed = "a rate with a unit, for example 100Gbit/s"});
    if (!errors_.any() && (in.size() != 1 || in[0].kind == Link::End::host))
      map.complain("in", "a host is in one place");
    if (errors_.any()) return;
    for (std::string& name : nodes_.expand(name_node, path + ".name")) {
      const auto index = static_cast<std::uint32_t>(out_.hosts.size());
      if (!add_host(name_node, path + ".name", std::move(name))) return;
      out_.links.push_back({Link::End::host, index, in[0].index, rate});
    }
  }

  void read_aggregators() {
    nodes_.each(root_.take("aggregators"), "aggregators", [&](const YAML::Node& node, const std::string& path) {
      YamlMap map(node, path, errors_);
      AggregatorSite site{map.text("name", "the aggregator's name"), map.text("host", "the host it runs on"), {}};
      const auto rate = map.parsed<std::uint64_t>("line_rate", 0, parse_positive_rate);
      if (rate != 0) site.line_rate_bits_per_second = rate;
      map.finish();
      if (errors_.any()) return;
      check_site(map, site);
      out_.aggregators.push_back(std::move(site));
    });
  }

  void check_site(YamlMap& map, const AggregatorSite& site) {
    if (!site_names_.insert(site.name).second)
      map.complain("name", "the aggregator '" + site.name + "' stands here twice");
    if (auto ok = check_name(site.name); !ok) map.complain("name", ok.error().message);
    if (auto ok = check_name(site.host); !ok) map.complain("host", ok.error().message);
    if (out_.fabric == FabricKind::flat) return;
    const auto host = nodes_.find(site.host);
    if (!host || host->kind != Link::End::host) map.complain("host", "no host has the name '" + site.host + "'");
  }

  void check() {
    if (const auto unsound = find_unsound(out_)) root_.complain(unsound->key, unsound->why);
  }

  YamlErrors errors_;
  YamlMap root_;
  Topology out_;
  NamedNodes nodes_{errors_};
  NameNumbers rails_{out_.rails}, groups_{out_.groups}, interfaces_{out_.interfaces};
  std::unordered_set<std::string> site_names_;
};

}  // namespace

Result<Topology> read_topology(const YAML::Node& root, const std::string& file) {
  return Reader(root, file).read();
}

}  // namespace tributary::manager
