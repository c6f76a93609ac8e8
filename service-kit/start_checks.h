#pragma once
// Checks for a daemon's --check, in addition to the checks of its settings: they find the reasons for which its start
// would fail on this host. They change nothing, and the same daemon may run meanwhile.
#include <string>

#include "tributary/protocol/descriptor.h"
#include "tributary/protocol/error.h"

namespace tributary::service {

/// Checks that the host of `listen` is an address or a name of this host. The running daemon may use the port. Errors
/// name the setting `key`.
[[nodiscard]] Status check_listen(const std::string& key, const Endpoint& listen);
/// Checks that this process could write the file `path`: the file, or if it does not exist its folder, is writable.
[[nodiscard]] Status check_writable_file(const std::string& key, const std::string& path);
/// Checks that this process could use the folder `path`: it is a writable folder, or the process can make it.
[[nodiscard]] Status check_folder(const std::string& key, const std::string& path);

}  // namespace tributary::service
