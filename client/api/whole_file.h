#pragma once
// Writes a file that readers find whole or not at all.
#include <string>

#include "tributary/protocol/error.h"

namespace tributary::client {

/// Writes `text` to a new file beside `path`, which only this user can read, and gives it the name `path`. Errc::io has
/// the system's reason; `path` is then as before.
[[nodiscard]] Status write_whole_file(const std::string& path, const std::string& text);

}  // namespace tributary::client
