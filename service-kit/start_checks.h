#pragma once
// Checks for a daemon's --check, in addition to the checks of its settings: they find the reasons for which its start
// would fail on this host. They change nothing.
#include <string>

#include "tributary/protocol/descriptor.h"
#include "tributary/protocol/error.h"

namespace tributary::service {

/// Checks that the host of `listen` is an address or a name of this host; the port may be in use. Errors name the
/// setting `key`.
[[nodiscard]] Status check_listen(const std::string& key, const Endpoint& listen);
enum class PortKind { stream, datagram };
/// Checks that no process holds the port of `listen`, as a start would. Errc::io: a process holds it, or this user may
/// not use it; the configuration may be right.
[[nodiscard]] Status check_port(const std::string& key, const Endpoint& listen, PortKind kind = PortKind::stream);
/// Checks that no process holds the lock on the file `path`. Errc::io: one does. A missing file is good.
[[nodiscard]] Status check_lock(const std::string& key, const std::string& path);
/// Checks that this process could write the file `path`: the file, or if it does not exist its folder, is writable.
[[nodiscard]] Status check_writable_file(const std::string& key, const std::string& path);
/// Checks that this process could use the folder `path`: it is a writable folder, or the process can make it.
[[nodiscard]] Status check_folder(const std::string& key, const std::string& path);

}  // namespace tributary::service
