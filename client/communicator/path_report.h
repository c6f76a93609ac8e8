#pragma once
// Reports on the path that collectives take, in tributary_comm_info and in the log.
//
// The log warns if the ranks are on no tree although nobody asked for that: when trees are lost, and once in the
// communicator's life when there are none. It says "in use" only after bytes have gone by the trees.
#include <string>

#include "client/communicator/tree_life.h"
#include "client/communicator/whole.h"
#include "client/recovery/coordinator.h"

namespace tributary::client {

/// Sets the members of `info` about trees. `in_use`: the trees in use, or nullptr. `reason`: why this path, or empty if
/// that is not new.
void describe_trees(const Trees* in_use, const std::string& reason, CommunicatorInfo& info);
/// "trees are ready: epoch 3, ..."
[[nodiscard]] std::string path_line(const CommunicatorInfo& info, const Trees* in_use, const std::string& host);
/// "epoch 3, 2 lane(s), tree depth 2, window 8 x 4096 bytes"
[[nodiscard]] std::string trees_text(const CommunicatorInfo& info);
/// Returns whether these ranks would use trees if they had some.
[[nodiscard]] bool wants_trees(const CommunicatorSettings& settings, const CommunicatorInfo& info);

/// Logs a path that has no trees, after shared.info says so. `how` is the line without its prefix.
void tell_lack(Shared& shared, const std::string& how, PathEvent event);
/// On rank 0, in each tick while no trees are in use: logs why there are none, once the coordinator knows.
void watch_for_lack(Shared& shared, const Coordinator& coordinator);
/// Logs, once for each generation of trees, that bytes have gone by them.
void tell_use(Shared& shared);
/// "bytes in-network 4096 (50.0 %), between ranks 4096, in shared memory 0"
[[nodiscard]] std::string bytes_by_path(const CommunicatorInfo& info);
/// The same numbers, for the manager.
[[nodiscard]] GroupTraffic traffic_of(const CommunicatorInfo& info);
/// The last line of a communicator in the log.
[[nodiscard]] std::string end_line(const CommunicatorSettings& settings, const CommunicatorInfo& info);
/// Returns why `info` breaks CommunicatorSettings::require_trees; an empty text if it does not.
[[nodiscard]] std::string unmet_requirement(const CommunicatorSettings& settings, const CommunicatorInfo& info);

}  // namespace tributary::client
