#pragma once
// `tributary-manager export FILE` and `import FILE`: backups, and the way from one kind of store to another.
#include <string>

#include "tree-manager/settings/settings.h"

namespace tributary::manager {

/// Writes all records of the store that the settings name into a file of mode 0600. Managers may run meanwhile.
[[nodiscard]] Status export_archive(const Settings& settings, const std::string& file);
/// Makes the file's records those of the store that the settings name. No manager may run on it meanwhile: Errc::retry
/// says which one does. Errc::mismatch: the store is not empty, and `replace` is false.
[[nodiscard]] Status import_archive(const Settings& settings, const std::string& file, bool replace);

}  // namespace tributary::manager
