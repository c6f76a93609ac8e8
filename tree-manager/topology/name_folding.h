#pragma once
// The reverse of name_range.h: writes many names as few ranges, such as "node-[001-032]".
#include <string>
#include <string_view>
#include <vector>

namespace tributary::manager {

/// Compares names as people do: "node-2" is before "node-10".
[[nodiscard]] bool natural_less(std::string_view a, std::string_view b);

/// Returns ranges and names that expand_names() turns into the same names, in natural order. Equal names become
/// one.
[[nodiscard]] std::vector<std::string> fold_names(std::vector<std::string> names);

}  // namespace tributary::manager
