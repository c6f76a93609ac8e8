#pragma once
// Finds the ranks that an error of a communicator blames, so that the error can be compared with the faults of the run.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tributary::simulation {

/// Returns the ranks that the error blames for being gone, late or silent, and leaves out other ranks that its text
/// names. nullopt: the error blames no rank, so ranks that all made the same calls must never see it.
[[nodiscard]] std::optional<std::vector<std::uint32_t>> blamed(const std::string& message);

}  // namespace tributary::simulation
