#pragma once
// Reports on the path that collectives take, in tributary_comm_info and in the log.
//
// The log warns if the ranks use no tree although no setting forbids trees: each time trees are lost, and once in the
// communicator's life if it has no trees. The log says "in use" only after the trees have carried bytes.
#include <string>
#include <string_view>

#include "client/communicator/tree_life.h"
#include "client/communicator/whole.h"
#include "client/recovery/coordinator.h"

namespace tributary::client {

/// Sets the members of `info` about trees. `in_use`: the trees in use, or nullptr. `reason`: the reason for this path;
/// empty if the reason has not changed.
void describe_trees(const Trees* in_use, const std::string& reason, CommunicatorInfo& info);
/// Returns a line such as "trees are ready: epoch 3, ...".
[[nodiscard]] std::string path_line(const CommunicatorInfo& info, const Trees* in_use, const std::string& host);
/// Returns a text such as "epoch 3, 2 lane(s), tree depth 2, window 8 x 4096 bytes".
[[nodiscard]] std::string trees_text(const CommunicatorInfo& info);
/// Returns whether these ranks would use trees if the manager had trees for them.
[[nodiscard]] bool wants_trees(const CommunicatorSettings& settings, const CommunicatorInfo& info);

/// Counts the reason whose code is at the end of the text, if the rank keeps a record.
void count_reason(const Shared& shared, std::string_view reason);
/// Logs a path without trees; call it after shared.info describes this path. `how` is the line without its prefix.
void tell_lack(Shared& shared, const std::string& how, PathEvent event);
/// On rank 0, called in each tick while no trees are in use: logs the reason once the coordinator knows it.
void watch_for_lack(Shared& shared, const Coordinator& coordinator);
/// Logs, once for each generation of trees, that the trees have carried bytes.
void tell_use(Shared& shared);
/// Returns a text such as "bytes in-network 4096 (50.0 %), between ranks 4096, in shared memory 0".
[[nodiscard]] std::string bytes_by_path(const CommunicatorInfo& info);
/// Returns the numbers of bytes_by_path() and of operations, for the manager.
[[nodiscard]] GroupTraffic traffic_of(const CommunicatorInfo& info);
/// Returns whether a communicator that ends had trees, and the tuning let no operation take them.
[[nodiscard]] bool leaves_trees_unused(const CommunicatorSettings& settings, const CommunicatorInfo& info);
/// Returns the last line that a communicator writes to the log.
[[nodiscard]] std::string end_line(const CommunicatorSettings& settings, const CommunicatorInfo& info);
/// Returns the way in which `info` breaks CommunicatorSettings::require_trees; an empty text if it does not.
[[nodiscard]] std::string unmet_requirement(const CommunicatorSettings& settings, const CommunicatorInfo& info);

}  // namespace tributary::client
