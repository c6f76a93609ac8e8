#pragma once
// Reads the manager's description of a group; a manager of an older version leaves members out.
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tributary::cli {

/// Bytes by path, as rank 0 of each group told them last.
struct Traffic {
  std::uint64_t in_network = 0, between_ranks = 0, in_shared_memory = 0;
  /// Adds the figures of a group, if its rank 0 has reported any.
  void add(const nlohmann::json& group);
  [[nodiscard]] std::uint64_t all() const noexcept { return in_network + between_ranks + in_shared_memory; }
};

/// Ranks of the job, for which leaders of hosts may stand.
[[nodiscard]] std::uint64_t processes_of(const nlohmann::json& group);
/// "in-network" once bytes have gone that way, as far as rank 0 has told; "ready" before; else "fallback".
[[nodiscard]] std::string path_of(const nlohmann::json& group);

}  // namespace tributary::cli
