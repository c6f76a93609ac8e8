#include "tree-manager/topology/import/slurm_yaml.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>

#include "service-kit/yaml_text.h"
#include "tree-manager/topology/import/slurm_tree.h"

namespace tributary::manager {
namespace {

constexpr std::size_t kTopologiesMax = 1024;

std::size_t line_of(const YAML::Node& node) {
  return node.IsDefined() && node.Mark().line >= 0 ? static_cast<std::size_t>(node.Mark().line) + 1 : 1;
}

/// Returns the value, or an undefined node for an absent key.
YAML::Node member(const YAML::Node& map, std::string_view key) {
  if (map.IsMap()) {
    for (const auto& entry : map) {
      if (entry.first.IsScalar() && entry.first.Scalar() == key) return entry.second;
    }
  }
  return YAML::Node(YAML::NodeType::Undefined);
}

std::string text_of(const YAML::Node& node) {
  return node.IsDefined() && node.IsScalar() ? node.Scalar() : std::string();
}

bool is_true(const YAML::Node& node) {
  const std::string text = text_of(node);
  return text == "true" || text == "True" || text == "TRUE" || text == "yes";
}

class SlurmYamlReader {
 public:
  explicit SlurmYamlReader(const std::string& file) : notes_(file) {}

  Result<FoundFabric> read(const YAML::Node& root, const std::string& name) {
    const YAML::Node chosen = choose(root, name);
    if (!notes_.any_wrong()) read_topology(chosen);
    if (auto ok = notes_.status(); !ok) return std::unexpected(ok.error());
    notes_.report(fabric_.warnings);
    return std::move(fabric_);
  }

 private:
  YAML::Node choose(const YAML::Node& root, const std::string& name) {
    if (root.IsMap() && name.empty()) return root;
    if (!root.IsSequence() || root.size() == 0 || root.size() > kTopologiesMax) {
      notes_.wrong(line_of(root),
                   "a list of topologies is expected, each with 'topology' and 'tree', 'block' or 'flat'");
      return root;
    }
    YAML::Node chosen(YAML::NodeType::Undefined);
    for (const YAML::Node& one : root) {
      const bool wanted =
          name.empty() ? is_true(member(one, "cluster_default")) : text_of(member(one, "topology")) == name;
      if (!wanted) continue;
      chosen.reset(one);
      break;
    }
    if (chosen.IsDefined()) return chosen;
    if (!name.empty()) notes_.wrong(line_of(root), "no topology has the name '" + name + "'");
    return root[0];
  }

  void read_topology(const YAML::Node& topology) {
    const YAML::Node tree = member(topology, "tree"), block = member(topology, "block");
    if (tree.IsDefined()) return read_switches(member(tree, "switches"), tree, "switch");
    if (block.IsDefined()) return read_switches(member(block, "blocks"), block, "block");
    if (is_true(member(topology, "flat"))) {
      fabric_.flat = true;
      return;
    }
    notes_.wrong(line_of(topology), "neither 'tree' nor 'block' nor 'flat: true' is here; no other fabric is known");
  }

  void read_switches(const YAML::Node& list, const YAML::Node& at, const char* kind) {
    tree_.blocks = std::string_view(kind) == "block";
    if (!list.IsDefined() || !list.IsSequence() || list.size() == 0 || list.size() > kFoundNodesMax) {
      return notes_.wrong(line_of(at),
                          std::string("a list '") + kind + (tree_.blocks ? "s" : "es") + "' is expected here");
    }
    for (const YAML::Node& node : list) {
      read_switch(node, kind);
      if (notes_.any_wrong()) return;
    }
    join_slurm_tree(tree_, notes_, fabric_);
  }

  void read_switch(const YAML::Node& node, const char* kind) {
    SlurmSwitch made{.name = text_of(member(node, kind)), .line = line_of(node)};
    if (made.name.empty()) return notes_.wrong(made.line, std::string("'") + kind + ": NAME' is missing");
    add_names(member(node, "children"), made.switches);
    add_names(member(node, "nodes"), made.nodes);
    constexpr std::array<std::string_view, 4> kKnown = {"switch", "block", "children", "nodes"};
    for (const auto& entry : node) {
      const std::string key = text_of(entry.first);
      if (std::ranges::find(kKnown, key) == kKnown.end()) notes_.skipped(line_of(entry.first), key);
    }
    tree_.children += made.switches.size() + made.nodes.size();
    tree_.switches.push_back(std::move(made));
  }

  /// Takes a host list, or a list of host lists.
  void add_names(const YAML::Node& node, std::vector<std::string>& names) {
    if (!node.IsDefined() || node.IsNull()) return;
    if (node.IsSequence()) {
      for (const YAML::Node& one : node) {
        if (!notes_.any_wrong()) add_list(one, names);
      }
    } else {
      add_list(node, names);
    }
  }

  void add_list(const YAML::Node& node, std::vector<std::string>& names) {
    if (!node.IsScalar()) return notes_.wrong(line_of(node), "a host list is expected, as node[01-04]");
    const std::size_t left = kFoundLinksMax - std::min(kFoundLinksMax, tree_.children);
    if (auto ok = expand_hostlist(node.Scalar(), left, names); !ok) notes_.wrong(line_of(node), ok.error().message);
  }

  ImportNotes notes_;
  SlurmTree tree_;
  FoundFabric fabric_;
};

}  // namespace

Result<FoundFabric> read_slurm_yaml(const std::string& text, const std::string& file, const std::string& name) {
  const auto root = service::parse_yaml(text, file);
  if (!root) return std::unexpected(root.error());
  try {
    return SlurmYamlReader(file).read(*root, name);
  } catch (const YAML::Exception& error) {
    return fail(Errc::bad_config, file + ": " + error.what());
  }
}

bool looks_like_slurm_yaml(std::string_view text) {
  constexpr int kLinesSeen = 200;
  for (int i = 0; i < kLinesSeen && !text.empty(); ++i) {
    std::string_view line = next_line(text);
    const std::string_view word = next_word(line);
    if (word == "topology:" || (word == "-" && next_word(line) == "topology:")) return true;
  }
  return false;
}

}  // namespace tributary::manager
