#include "tree-manager/topology/topology.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "service-kit/yaml_text.h"
#include "tree-manager/topology/topology_reader.h"
#include "tree-manager/topology/yaml_fields.h"
#include "tributary/protocol/assert.h"

namespace tributary::manager {
std::string_view to_string(FabricKind kind) noexcept {
  switch (kind) {
    case FabricKind::flat:
      return "flat";
    case FabricKind::fat_tree:
      return "fat-tree";
    case FabricKind::nested:
      return "nested";
    case FabricKind::rail_optimised:
      return "rail-optimised";
    case FabricKind::dragonfly:
      return "dragonfly";
    case FabricKind::dragonfly_plus:
      return "dragonfly+";
  }
  std::unreachable();
}

Result<Topology> parse_topology(const std::string& text, const std::string& file) {
  const auto root = service::parse_yaml(text, file);
  if (!root) return std::unexpected(root.error());
  try {
    auto topology = read_topology(*root, file);
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
  for (const SwitchNode& node : topology.switches) {
    switches.push_back({{"name", node.name}, {"level", node.level}});
    if (node.rail != kUnnamed) switches.back()["rail"] = topology.rails[node.rail];
    if (node.group != kUnnamed) switches.back()["group"] = topology.groups[node.group];
  }
  json links = json::array();
  for (const Link& link : topology.links) {
    const bool host = link.from_kind == Link::End::host;
    TRIBUTARY_ASSERT(
        link.to < topology.switches.size() && link.from < (host ? topology.hosts.size() : topology.switches.size()),
        "link {} leads from {} to {}", links.size(), link.from, link.to);
    links.push_back({{"from", host ? topology.hosts[link.from] : topology.switches[link.from].name},
                     {"to", topology.switches[link.to].name},
                     {"rate_bits_per_second", link.rate_bits_per_second}});
    if (link.interface != kUnnamed) links.back()["interface"] = topology.interfaces[link.interface];
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
  if (!topology.rails.empty()) result["rails"] = topology.rails;
  if (topology.fabric == FabricKind::flat) {
    result["assumed_rate_bits_per_second"] = topology.assumed_rate_bits_per_second;
  }
  return result;
}

}  // namespace tributary::manager
