#pragma once
// The reverse of name_range.h: many names as few ranges, "node-[001-032]".
#include <string>
#include <string_view>
#include <vector>

namespace tributary::manager {

/// Compares as people do: "node-2" before "node-10".
[[nodiscard]] bool natural_less(std::string_view a, std::string_view b);

/// Returns ranges and names which expand_names() turns into the same names, in natural order. Equal names are folded
/// into one.
[[nodiscard]] std::vector<std::string> fold_names(std::vector<std::string> names);

}  // namespace tributary::manager
