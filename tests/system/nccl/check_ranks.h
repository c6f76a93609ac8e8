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
  /// Starts them; `cluster` may be nullptr. Logs go to the folder. `of_one` holds variables for single ranks, which
  /// come last.
  CheckRanks(std::uint32_t ranks, const std::vector<std::string>& arguments, const std::string& folder,
             const cli::LocalCluster* cluster, const cli::Environment& variables = {},
             const std::map<std::uint32_t, cli::Environment>& of_one = {});

  /// Waits; true when all have ended with 0 in time. What still runs then is killed.
  [[nodiscard]] bool all_good(std::chrono::seconds limit);
  /// Waits until some rank has printed this; false when that takes too long or all have ended.
  [[nodiscard]] bool wait_for(const std::string& text, std::chrono::seconds limit);
  /// What the ranks have printed so far, standard error too.
  [[nodiscard]] std::string output() const;
  [[nodiscard]] std::string output_of(std::uint32_t rank) const;
  /// Stops a rank, so that all others come to wait for it, and kills it then.
  void kill_while_others_wait(std::uint32_t rank, std::chrono::milliseconds wait);
  /// Waits until that rank has ended by itself; nothing when it takes too long.
  [[nodiscard]] std::optional<cli::ExitStatus> end_of(std::uint32_t rank, std::chrono::seconds limit);

 private:
  std::vector<std::string> logs_;
  std::vector<cli::ChildProcess> processes_;
};

}  // namespace tributary::nccl_test
