#pragma once
#include <string>
#include <vector>

#include "tree-manager/topology/import/import.h"

namespace tributary::cli {

struct ImportCommand {
  std::vector<std::string> files;  // none, or "-": standard input
  std::vector<std::string> hosts;  // names or ranges
  std::string output;              // empty: standard output
  manager::ImportOptions settings;
};

/// Reads the files, and writes a topology that the manager takes. Says on standard error what was left out. Returns the
/// exit code of the process.
[[nodiscard]] int import_topology_files(const ImportCommand& command);

}  // namespace tributary::cli
