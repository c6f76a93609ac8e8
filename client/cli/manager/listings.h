#pragma once
// The commands that show the manager's state, and the two that ask it for something. Each returns the exit code of the
// process.
#include <cstdint>
#include <string>
#include <vector>

#include "client/cli/manager/access.h"

namespace tributary::cli {

[[nodiscard]] int status(const ManagerOptions& options);
/// `name` is the name of one aggregator; empty: all aggregators.
[[nodiscard]] int aggregators(const ManagerOptions& options, const std::string& name);
/// Chooses groups by the job's name and by the user; an empty name chooses all.
struct GroupFilter {
  std::string job;
  std::string user;
};
/// `group` is the number of one group, or the name of a job; empty: all.
[[nodiscard]] int groups(const ManagerOptions& options, const std::string& group, GroupFilter filter);
/// `group` is the number of one group; empty: all.
[[nodiscard]] int trees(const ManagerOptions& options, const std::string& group, const GroupFilter& filter);

struct DrainOptions {
  bool undo = false;
  double wait_seconds = 0;  // longest wait until the aggregator has no lanes; 0: does not wait
};
[[nodiscard]] int drain(const ManagerOptions& options, const std::string& name, const DrainOptions& drain);

struct PlanOptions {
  std::vector<std::string> hosts;    // names by rank, or ranges such as node-[1-4]
  std::uint32_t ranks_per_host = 1;  // consecutive ranks on each host
  std::uint32_t lanes = 0;           // 0: as many as save time
  std::uint32_t levels = 0;          // 0: the planner chooses
  std::uint32_t window = 0;          // 0: the manager's default
  std::uint32_t segment_bytes = 0;   // 0: the manager's default
};
[[nodiscard]] int plan(const ManagerOptions& options, const PlanOptions& plan);

}  // namespace tributary::cli
