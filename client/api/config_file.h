#pragma once
// The configuration file that TRIBUTARY_CONFIG names: YAML, one map of setting_help()'s keys.
#include <string>

#include "client/api/settings.h"

namespace tributary::client {

/// Applies the settings of `file`. Errc::bad_config lists every mistake with the file, the line, the value and the
/// allowed values.
[[nodiscard]] Status apply_file(ClientSettings& settings, const std::string& file);

}  // namespace tributary::client
