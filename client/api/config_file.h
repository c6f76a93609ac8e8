#pragma once
// Reads the configuration file that TRIBUTARY_CONFIG names: YAML, one map with the keys of setting_help().
#include <string>

#include "client/api/settings.h"

namespace tributary::client {

/// Applies the settings of `file`. Errc::bad_config lists all mistakes, each with the file, the line, the value and the
/// allowed values.
[[nodiscard]] Status apply_file(ClientSettings& settings, const std::string& file);

}  // namespace tributary::client
