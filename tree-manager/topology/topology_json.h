#pragma once
// Reads a topology in the form of GET /v1/topology.
#include <nlohmann/json_fwd.hpp>

#include "tree-manager/topology/topology.h"

namespace tributary::manager {

/// Reverses to_json(). Errc::corrupt names the part that this version does not expect.
[[nodiscard]] Result<Topology> topology_from_json(const nlohmann::json& document);

}  // namespace tributary::manager
