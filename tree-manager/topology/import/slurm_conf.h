#pragma once
// Reads Slurm's topology.conf: lines of SwitchName= (topology/tree) or BlockName= (topology/block).
#include <functional>
#include <string>
#include <string_view>

#include "tree-manager/topology/import/found_fabric.h"

namespace tributary::manager {

/// Returns the text of a file that the configuration includes.
using ReadIncluded = std::function<Result<std::string>(const std::string& name)>;

/// The case of keys does not matter; a line that ends in '\' continues on the next line; '#' begins a comment.
/// Errc::bad_config names `file` and the wrong lines.
[[nodiscard]] Result<FoundFabric> read_slurm_conf(std::string_view text, const std::string& file,
                                                  const ReadIncluded& included);
[[nodiscard]] bool looks_like_slurm_conf(std::string_view text);

}  // namespace tributary::manager
