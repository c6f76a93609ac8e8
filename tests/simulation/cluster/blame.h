#pragma once
// Whom an error of a communicator blames, so that it can be held against what has befallen the ranks.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tributary::simulation {

/// The ranks that this error says are to blame, for being gone, late or silent; not those that it names besides. None:
/// it blames nobody for that, so that a group of ranks that all called the same must never see it.
[[nodiscard]] std::optional<std::vector<std::uint32_t>> blamed(const std::string& message);

}  // namespace tributary::simulation
