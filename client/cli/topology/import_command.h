#pragma once
#include <string>
#include <vector>

#include "tree-manager/topology/import/import.h"

namespace tributary::cli {

struct ImportCommand {
  std::vector<std::string> files;  // none, or "-": standard input
  std::vector<std::string> hosts;  // names, or ranges of names
  std::string output;              // empty: standard output
  manager::ImportOptions settings;
};

/// Reads the files, and writes a topology for the manager. Lists on standard error the parts that it left out. Returns
/// the exit code of the process.
[[nodiscard]] int import_topology_files(const ImportCommand& command);

}  // namespace tributary::cli
