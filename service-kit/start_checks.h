#pragma once
// Checks for a daemon's --check, besides the checks of its settings: they find all that would make its start fail on
// this host. Changes nothing, and lets the same daemon run meanwhile.
#include <string>

#include "tributary/protocol/descriptor.h"
#include "tributary/protocol/error.h"

namespace tributary::service {

/// Checks that `host` is an address or a name of this host. The port may be in use: by the running daemon. Errors name
/// the setting `key`.
[[nodiscard]] Status check_listen(const std::string& key, const Endpoint& listen);
/// Checks that this process could write the file `path`: it, or else its folder, is writable.
[[nodiscard]] Status check_writable_file(const std::string& key, const std::string& path);
/// Checks that this process could use the folder `path`: it is a writable folder, or else can be made.
[[nodiscard]] Status check_folder(const std::string& key, const std::string& path);

}  // namespace tributary::service
