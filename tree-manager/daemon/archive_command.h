#pragma once
// `tributary-manager export FILE` and `import FILE`, for backups and for moves between kinds of stores.
#include <string>

#include "tree-manager/settings/settings.h"

namespace tributary::manager {

/// Writes all records of the store that the settings name into a file of mode 0600. Managers may run meanwhile.
[[nodiscard]] Status export_archive(const Settings& settings, const std::string& file);
/// Replaces the records of the store that the settings name by the file's records. No manager may run on this store
/// meanwhile: Errc::retry names the manager that does. Errc::mismatch: the store is not empty, and `replace` is false.
[[nodiscard]] Status import_archive(const Settings& settings, const std::string& file, bool replace);

}  // namespace tributary::manager
