#pragma once
// Reads the output of ibnetdiscover: the description of all nodes (the default form), or the list of ports (-p).
#include <string>
#include <string_view>

#include "tree-manager/topology/import/found_fabric.h"

namespace tributary::manager {

/// Errc::bad_config names `file` and the wrong lines. The adapters of a host become one host. Routers, and switches'
/// own aggregation nodes, are left out.
[[nodiscard]] Result<FoundFabric> read_ibnetdiscover(std::string_view text, const std::string& file);
/// Recognizes this format by its first lines.
[[nodiscard]] bool looks_like_ibnetdiscover(std::string_view text);

}  // namespace tributary::manager
