#pragma once
// Reads Slurm's topology.conf: lines of SwitchName= (topology/tree) or BlockName= (topology/block).
#include <functional>
#include <string>
#include <string_view>

#include "tree-manager/topology/import/found_fabric.h"

namespace tributary::manager {

/// Gives the text of a file that the configuration includes.
using ReadIncluded = std::function<Result<std::string>(const std::string& name)>;

/// Keys are read without regard to case; a line that ends in '\' goes on in the next one; '#' begins a comment.
/// Errc::bad_config names `file` and the lines that are wrong.
[[nodiscard]] Result<FoundFabric> read_slurm_conf(std::string_view text, const std::string& file,
                                                  const ReadIncluded& included);
[[nodiscard]] bool looks_like_slurm_conf(std::string_view text);

}  // namespace tributary::manager
