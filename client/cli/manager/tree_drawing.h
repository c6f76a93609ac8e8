#pragma once
// Draws the trees of lanes as text.
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tributary::cli {

/// Returns the drawing. `trees` is the manager's list for /v1/trees or /v1/plan. Consecutive ranks share a line.
[[nodiscard]] std::string draw_trees(const nlohmann::json& trees);

}  // namespace tributary::cli
