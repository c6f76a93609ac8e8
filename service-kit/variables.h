#pragma once
// One table of all names in the environment that some part of Tributary reads, and the search for misspelt names.
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tributary::service {

/// Returns the names of the library's settings, and the further names that plugins and the command read. Test programs
/// read other names, which begin with TRIBUTARY_TEST_ or TRIBUTARY_CLUSTER_.
[[nodiscard]] std::span<const std::string_view> known_variables();

/// Returns the known name that the writer of `name` probably meant: it differs in a few letters, or has one word more
/// or less at its end. Returns nullopt if `name` is known, or is similar to no known name.
[[nodiscard]] std::optional<std::string_view> meant_by(std::string_view name);

/// Returns a sentence for each misspelt name in `environment`, which has the form of `environ`: it ends with nullptr.
[[nodiscard]] std::vector<std::string> misspelt_variables(const char* const* environment);
/// Returns the sentences for this process's own environment.
[[nodiscard]] std::vector<std::string> misspelt_variables();

}  // namespace tributary::service
