#pragma once
// Modules: shared objects that a program loads while it runs, so that it starts without the libraries that they need.
#include <string>
#include <string_view>
#include <vector>

#include "tributary/protocol/error.h"

namespace tributary::service {

/// A module exports one table of functions, which begins with its version. It comes from the same build as the program
/// that loads it, so C++ types may cross.
struct ModuleTable {
  const char* version;
};

struct ModuleName {
  std::string file;                  // "tributary-aggregator-verbs.so"
  std::string table;                 // the symbol of its table
  std::vector<std::string> folders;  // places to look, in this order; an empty one: where the system's loader looks
  std::string remedy;                // a sentence that says what to do where no folder has it
};

/// Loads the module from the first folder that has it, until the process ends, and returns its table. Errc::unsupported
/// says what is missing, and what to do.
[[nodiscard]] Result<const ModuleTable*> load_module(const ModuleName& name, std::string_view version);

}  // namespace tributary::service
