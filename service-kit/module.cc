#include "service-kit/module.h"

#include <dlfcn.h>
#include <unistd.h>

namespace tributary::service {
namespace {

/// Returns the error for a file that exists, but that the loader has refused.
std::unexpected<Error> refused(const std::string& path, const std::string& why) {
  return fail(Errc::unsupported, "the module " + path + " cannot be loaded: " + why);
}

Result<void*> open_module(const ModuleName& name) {
  std::string searched;
  for (const std::string& folder : name.folders) {
    const std::string path = folder.empty() ? name.file : folder + "/" + name.file;
    searched += (searched.empty() ? "" : ", ") + (folder.empty() ? "the system's folders" : folder);
    if (!folder.empty() && ::access(path.c_str(), F_OK) != 0) continue;
    if (void* const found = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return found;
    const std::string why = ::dlerror();
    const bool missing = folder.empty() && why.starts_with(name.file + ":");
    if (!missing) return refused(path, why);
  }
  return fail(Errc::unsupported,
              "the module " + name.file + " is not installed (looked in " + searched + "). " + name.remedy);
}

}  // namespace

Result<const ModuleTable*> load_module(const ModuleName& name, std::string_view version) {
  const auto library = open_module(name);
  if (!library) return std::unexpected(library.error());
  const auto* const table = static_cast<const ModuleTable*>(::dlsym(*library, name.table.c_str()));
  if (table == nullptr) return refused(name.file, "it has no table " + name.table);
  if (std::string_view(table->version) != version) {
    return fail(Errc::unsupported, "the module " + name.file + " has version " + table->version +
                                       ", and this program version " + std::string(version) +
                                       ": install both from one build");
  }
  return table;
}

}  // namespace tributary::service
