#pragma once
// The commands that show what the manager knows, and the two that ask something of it. Each returns what the process is
// to end with.
#include <cstdint>
#include <string>
#include <vector>

#include "client/cli/manager/access.h"

namespace tributary::cli {

[[nodiscard]] int status(const ManagerOptions& options);
/// `name`: of one; empty: all.
[[nodiscard]] int aggregators(const ManagerOptions& options, const std::string& name);
/// `group`: the number of one; empty: all.
[[nodiscard]] int groups(const ManagerOptions& options, const std::string& group);
[[nodiscard]] int trees(const ManagerOptions& options, const std::string& group);
[[nodiscard]] int topology(const ManagerOptions& options);
[[nodiscard]] int drain(const ManagerOptions& options, const std::string& name, bool undo);

struct PlanOptions {
  std::vector<std::string> hosts;    // names, or ranges as node-[1-4]; by rank
  std::uint32_t ranks_per_host = 1;  // each host stands for so many ranks in a row
  std::uint32_t lanes = 1;
  std::uint32_t levels = 0;         // 0: the planner chooses
  std::uint32_t window = 0;         // 0: the manager's
  std::uint32_t segment_bytes = 0;  // 0: the manager's
};
[[nodiscard]] int plan(const ManagerOptions& options, const PlanOptions& plan);

}  // namespace tributary::cli
