#pragma once
// The file with the keys of identity tokens. A reader of the file can forge every identity, so only the manager's user
// may read it.
#include <string>

#include "tree-manager/identity/identity_token.h"

namespace tributary::manager {

/// Reads the file. Errc::bad_config: the file is missing, has other content, or users other than its owner have access
/// to it.
[[nodiscard]] Result<IdentityKeys> load_identity_keys(const std::string& path);
/// Returns the text of such a file.
[[nodiscard]] Result<std::string> read_identity_keys(const std::string& path);
/// Puts a new key before the older keys; the new key signs the next tokens. If there is no file, makes one of mode
/// 0600.
[[nodiscard]] Status add_identity_key(const std::string& path);
/// Writes the whole file under another name and then renames it. Mode 0600.
[[nodiscard]] Status write_private_file(const std::string& path, const std::string& text);

}  // namespace tributary::manager
