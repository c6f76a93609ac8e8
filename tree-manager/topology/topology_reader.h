#pragma once
#include <yaml-cpp/yaml.h>

#include <string>

#include "tree-manager/topology/topology.h"

namespace tributary::manager {

/// Reads a whole document, and checks it. Throws YAML::Exception if yaml-cpp throws it.
[[nodiscard]] Result<Topology> read_topology(const YAML::Node& root, const std::string& file);

}  // namespace tributary::manager
