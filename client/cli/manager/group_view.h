#pragma once
// Reads the manager's description of a group; the description of an older manager lacks some members.
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tributary::cli {

/// Bytes by path, from the last report of each group's rank 0.
struct Traffic {
  std::uint64_t in_network = 0, between_ranks = 0, in_shared_memory = 0;
  /// Adds the numbers of a group, if its rank 0 has reported them.
  void add(const nlohmann::json& group);
  [[nodiscard]] std::uint64_t all() const noexcept { return in_network + between_ranks + in_shared_memory; }
};

/// Returns the number of the job's ranks; the group may have only the leaders of hosts.
[[nodiscard]] std::uint64_t processes_of(const nlohmann::json& group);
/// Returns a line for people about each late rank of the group, at most four lines, such as
/// "group 12: rank 37 on node-5 is late by 812 ms, 3 operations behind, for 9 s".
[[nodiscard]] std::vector<std::string> late_lines(const nlohmann::json& group);
/// Returns "in-network" if rank 0 has reported bytes by trees, "ready" if the group has trees, else "fallback".
[[nodiscard]] std::string path_of(const nlohmann::json& group);

}  // namespace tributary::cli
