#pragma once
// Ranks of tributary-nccl-check as child processes, with or without a cluster.
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/cluster/child_process.h"
#include "client/cli/cluster/local_cluster.h"

namespace tributary::nccl_test {

class CheckRanks {
 public:
  /// Starts the ranks; `cluster` may be nullptr. Logs go to the folder. `of_one` holds variables for single ranks,
  /// which override the variables for all ranks. `plugin` is a path; empty: the build's plugin.
  CheckRanks(std::uint32_t ranks, const std::vector<std::string>& arguments, const std::string& folder,
             const cli::LocalCluster* cluster, const cli::Environment& variables = {},
             const std::map<std::uint32_t, cli::Environment>& of_one = {}, const std::string& plugin = {});

  /// Waits; returns true if all ranks have ended with 0 in time. Kills the ranks that still run.
  [[nodiscard]] bool all_good(std::chrono::seconds limit);
  /// Waits until some rank has printed this text; returns false when the wait takes too long or all ranks have ended.
  [[nodiscard]] bool wait_for(const std::string& text, std::chrono::seconds limit);
  /// Returns the ranks' output so far, with standard error.
  [[nodiscard]] std::string output() const;
  [[nodiscard]] std::string output_of(std::uint32_t rank) const;
  /// Stops a rank, so that all other ranks wait for it in the end, and then kills it.
  void kill_while_others_wait(std::uint32_t rank, std::chrono::milliseconds wait);
  /// Waits until that rank has ended by itself; nullopt if the wait takes too long.
  [[nodiscard]] std::optional<cli::ExitStatus> end_of(std::uint32_t rank, std::chrono::seconds limit);

 private:
  std::vector<std::string> logs_;
  std::vector<cli::ChildProcess> processes_;
};

}  // namespace tributary::nccl_test
