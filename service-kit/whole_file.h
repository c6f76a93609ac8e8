#pragma once
// Writes a file that readers find whole or not at all.
#include <sys/types.h>

#include <string>

#include "tributary/protocol/error.h"

namespace tributary::service {

/// Writes `text` to a new file beside `path`, with this mode less the process's mask, and gives it the name `path`.
/// Errc::io has the system's reason; `path` is then as before.
[[nodiscard]] Status write_whole_file(const std::string& path, const std::string& text, mode_t mode);

}  // namespace tributary::service
