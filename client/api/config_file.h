#pragma once
// Reads the configuration file that TRIBUTARY_CONFIG names: YAML, one map with the keys of setting_help().
#include <string>

#include "client/api/settings.h"
#include "service-kit/settings_table.h"

namespace tributary::client {

/// Applies the settings of `file`, and adds them to `written`. Errc::bad_config lists every mistake with the file, the
/// line, the value and the allowed values.
[[nodiscard]] Status apply_file(ClientSettings& settings, const std::string& file, service::Written& written);

}  // namespace tributary::client
