#pragma once
// The names of a topology's hosts and switches while its document is read.
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tree-manager/topology/topology.h"
#include "tree-manager/topology/yaml_fields.h"

namespace tributary::manager {

class NamedNodes {
 public:
  struct Node {
    Link::End kind;
    std::uint32_t index;
    friend bool operator==(const Node&, const Node&) = default;
  };

  explicit NamedNodes(YamlErrors& errors) : errors_(errors) {}

  /// Visits the items of a list until an error is noted; notes an error if the node is no list.
  template <class Visit>
  void each(const YAML::Node& list, const std::string& path, const Visit& visit) {
    if (!list.IsDefined()) return;
    if (!list.IsSequence())
      return errors_.add(list,
                         {.key = path, .why = "it has another form", .allowed = "a list, lines that begin with '-'"});
    std::size_t i = 0;
    for (const YAML::Node& node : list) {
      if (errors_.any()) return;
      visit(node, path + "[" + std::to_string(i++) + "]");
    }
  }

  /// Returns the names of a name or a range. If the text is neither, notes an error and returns none.
  [[nodiscard]] std::vector<std::string> expand(const YAML::Node& node, const std::string& path);
  /// Returns false, and notes an error, for a name that exists already.
  bool define(const YAML::Node& at, const std::string& path, const std::string& name, Node what);
  [[nodiscard]] std::optional<Node> find(const std::string& name) const;
  /// Reads a name, a range or a list of both. All names must be defined.
  [[nodiscard]] std::vector<Node> known(const YAML::Node& node, const std::string& path);

 private:
  YamlErrors& errors_;
  std::unordered_map<std::string, Node> nodes_;
};

/// Gives names numbers, in the order in which they first appear.
class NameNumbers {
 public:
  explicit NameNumbers(std::vector<std::string>& names) : names_(names) {}
  [[nodiscard]] std::uint32_t number_of(const std::string& name);

 private:
  std::vector<std::string>& names_;  // index: number
  std::unordered_map<std::string, std::uint32_t> numbers_;
};

}  // namespace tributary::manager
