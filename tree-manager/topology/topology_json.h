#pragma once
// Reads a topology as GET /v1/topology gives it.
#include <nlohmann/json_fwd.hpp>

#include "tree-manager/topology/topology.h"

namespace tributary::manager {

/// Reverses to_json(). Errc::corrupt says what is not as this version expects it.
[[nodiscard]] Result<Topology> topology_from_json(const nlohmann::json& document);

}  // namespace tributary::manager
