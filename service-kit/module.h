#pragma once
// Modules: shared objects that a program loads while it runs. So the program starts without the modules' libraries.
#include <string>
#include <string_view>
#include <vector>

#include "tributary/protocol/error.h"

namespace tributary::service {

/// The table of functions that a module exports; it begins with the module's version. A module comes from the same
/// build as the program that loads it, so both may use the same C++ types.
struct ModuleTable {
  const char* version;
};

struct ModuleName {
  std::string file;                  // name such as "tributary-aggregator-verbs.so"
  std::string table;                 // symbol of its table
  std::vector<std::string> folders;  // folders to search, in this order; an empty name: the folders of the loader
  std::string remedy;                // a sentence that says what to do if no folder has the file
};

/// Loads the module from the first folder that has it, and returns its table. The module stays until the process ends.
/// Errc::unsupported says what is missing, and what to do.
[[nodiscard]] Result<const ModuleTable*> load_module(const ModuleName& name, std::string_view version);

}  // namespace tributary::service
