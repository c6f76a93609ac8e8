#pragma once
// The file with the keys of identity tokens. Its readers can be anybody, so it is for the manager's user alone.
#include <string>

#include "tree-manager/identity/identity_token.h"

namespace tributary::manager {

/// Errc::bad_config: the file is missing, holds something else, or others than its owner can use it.
[[nodiscard]] Result<IdentityKeys> load_identity_keys(const std::string& path);
/// Puts a new key before the others; it signs the next tokens. If there is no file, makes one of mode 0600.
[[nodiscard]] Status add_identity_key(const std::string& path);
/// Writes the whole file under another name and then renames it. Mode 0600.
[[nodiscard]] Status write_private_file(const std::string& path, const std::string& text);

}  // namespace tributary::manager
