#pragma once
// Reads Slurm's topology.yaml: a list of topologies, each of which is a tree of switches, a set of blocks, or flat.
#include <string>

#include "tree-manager/topology/import/found_fabric.h"

namespace tributary::manager {

/// `name` chooses one of the topologies; empty: the cluster's default, else the first. Errc::bad_config names `file`
/// and the wrong line.
[[nodiscard]] Result<FoundFabric> read_slurm_yaml(const std::string& text, const std::string& file,
                                                  const std::string& name);
[[nodiscard]] bool looks_like_slurm_yaml(std::string_view text);

}  // namespace tributary::manager
