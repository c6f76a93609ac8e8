#pragma once
// All names in the environment that some part of Tributary reads, in one table, and the search for misspelt ones.
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tributary::service {

/// The library's settings, and what plugins and the command read besides. Programs for tests read further names, which
/// begin with TRIBUTARY_TEST_ or TRIBUTARY_CLUSTER_.
[[nodiscard]] std::span<const std::string_view> known_variables();

/// Returns the name that `name` most likely was to be: one that differs in a few letters, or that has one more or one
/// fewer word at its end. Returns nothing if the name is known, or resembles no other.
[[nodiscard]] std::optional<std::string_view> meant_by(std::string_view name);

/// Returns a sentence for each misspelt name in `environment`, which is as `environ`: a list that ends with nullptr.
[[nodiscard]] std::vector<std::string> misspelt_variables(const char* const* environment);
/// Searches this process's own environment.
[[nodiscard]] std::vector<std::string> misspelt_variables();

/// Returns how often a letter must be inserted, removed or replaced, or two neighbours change places, until both are
/// alike.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace tributary::service
