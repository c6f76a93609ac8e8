#pragma once
// The commands that show the manager's state, and the two commands that send it a request. Each function returns the
// exit code of the process.
#include <cstdint>
#include <string>
#include <vector>

#include "client/cli/manager/access.h"

namespace tributary::cli {

[[nodiscard]] int status(const ManagerOptions& options);
/// Lists aggregators. `name`: one aggregator; empty: all aggregators.
[[nodiscard]] int aggregators(const ManagerOptions& options, const std::string& name);
/// A filter of groups by the job's name and by the user; an empty name accepts all.
struct GroupFilter {
  std::string job;
  std::string user;
};
/// Lists groups. `group`: the number of one group, or the name of a job; empty: all groups.
[[nodiscard]] int groups(const ManagerOptions& options, const std::string& group, GroupFilter filter);
/// Draws trees. `group`: the number of one group; empty: all groups.
[[nodiscard]] int trees(const ManagerOptions& options, const std::string& group, const GroupFilter& filter);

struct DrainOptions {
  bool undo = false;
  double wait_seconds = 0;  // longest wait until the aggregator has no lanes; 0: do not wait
};
[[nodiscard]] int drain(const ManagerOptions& options, const std::string& name, const DrainOptions& drain);

struct PlanOptions {
  std::vector<std::string> hosts;    // names by rank, or ranges such as node-[1-4]
  std::uint32_t ranks_per_host = 1;  // number of consecutive ranks on each host
  std::uint32_t lanes = 0;           // 0: as many as save time
  std::uint32_t levels = 0;          // 0: the planner chooses
  std::uint32_t window = 0;          // 0: the manager's default
  std::uint32_t segment_bytes = 0;   // 0: the manager's default
  std::string rail;                  // the only rail of all ranks; empty: the lanes take the rails in turn
};
[[nodiscard]] int plan(const ManagerOptions& options, const PlanOptions& plan);

}  // namespace tributary::cli
