#pragma once
// Draws a lane's tree as text.
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tributary::cli {

/// `trees` is the list that the manager gives for /v1/trees or /v1/plan. Consecutive ranks share a line.
[[nodiscard]] std::string draw_trees(const nlohmann::json& trees);

}  // namespace tributary::cli
