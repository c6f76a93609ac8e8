#pragma once
// Reads YAML, and names file and line of mistakes.
#include <yaml-cpp/yaml.h>

#include <string>
#include <string_view>

#include "tributary/protocol/error.h"

namespace tributary::service {

/// Returns a text "FILE:LINE", or "FILE" for a mark without a line.
[[nodiscard]] std::string place_of(std::string_view file, const YAML::Mark& mark);

/// Returns the document's root. Errc::bad_config, with the line: the text is no YAML.
[[nodiscard]] Result<YAML::Node> parse_yaml(const std::string& text, std::string_view file);

}  // namespace tributary::service
