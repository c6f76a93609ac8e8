#include "tree-manager/topology/named_nodes.h"

#include "tree-manager/topology/name_range.h"
#include "tributary/protocol/assert.h"

namespace tributary::manager {
namespace {

constexpr std::size_t kNodesMax = 1U << 20;

}  // namespace

std::vector<std::string> NamedNodes::expand(const YAML::Node& node, const std::string& path) {
  const auto text = scalar(node, path, errors_);
  if (!text) return {};
  auto expanded = expand_names(*text);
  if (!expanded) return errors_.add(node, path, expanded.error().message), std::vector<std::string>{};
  TRIBUTARY_ASSERT(!expanded->empty(), "'{}' stands for no name", *text);
  return std::move(*expanded);
}

bool NamedNodes::define(const YAML::Node& at, const std::string& path, const std::string& name, Node what) {
  if (nodes_.size() >= kNodesMax) {
    errors_.add(at, path, "more than " + std::to_string(kNodesMax) + " hosts and switches");
    return false;
  }
  if (nodes_.emplace(name, what).second) return true;
  errors_.add(at, path, "the name '" + name + "' is used twice");
  return false;
}

std::optional<NamedNodes::Node> NamedNodes::find(const std::string& name) const {
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) return std::nullopt;
  return found->second;
}

std::vector<NamedNodes::Node> NamedNodes::known(const YAML::Node& node, const std::string& path) {
  std::vector<Node> found;
  if (!node.IsDefined()) return found;
  const auto add = [&](const YAML::Node& item, const std::string& where) {
    for (const std::string& name : expand(item, where)) {
      const auto node_of_name = find(name);
      if (!node_of_name) return errors_.add(item, where, "no host or switch has the name '" + name + "'");
      found.push_back(*node_of_name);
    }
  };
  if (node.IsSequence()) {
    each(node, path, add);
  } else {
    add(node, path);
  }
  return found;
}

std::uint32_t NameNumbers::number_of(const std::string& name) {
  const auto [it, added] = numbers_.emplace(name, static_cast<std::uint32_t>(names_.size()));
  if (added) names_.push_back(name);
  return it->second;
}

}  // namespace tributary::manager
