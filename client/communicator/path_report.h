#pragma once
// Reports on the path that collectives take, in tributary_comm_info and in the log.
#include <string>

#include "client/communicator/tree_life.h"

namespace tributary::client {

/// Sets the members of `info` about trees. `in_use`: the trees in use, or nullptr. `reason`: why this path, or empty if
/// that is not new.
void describe_trees(const Trees* in_use, const std::string& reason, CommunicatorInfo& info);
/// "in-network reduction in use: epoch 3, ..."
[[nodiscard]] std::string path_line(const CommunicatorInfo& info, const Trees* in_use, const std::string& host);

}  // namespace tributary::client
