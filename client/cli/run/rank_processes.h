#pragma once
// The ranks of one command, from their start until the last rank ends.
#include <unistd.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/cluster/child_process.h"
#include "client/cli/cluster/guardian.h"
#include "client/cli/run/rank_output.h"
#include "client/cli/run/signal_queue.h"

namespace tributary::cli {

struct RankProcessesSettings {
  std::uint32_t ranks = 1;
  std::vector<std::string> command;
  bool prefix = false;         // put the rank before each line; lines of several ranks never mix in any case
  int output = STDOUT_FILENO;  // descriptors for the ranks' lines
  int error = STDERR_FILENO;
  std::chrono::milliseconds grace{5000};
  std::function<Environment(std::uint32_t rank)> environment;
  std::function<ChildHost(std::uint32_t rank)> host{};  // empty: all ranks are on this host
  std::function<void()> on_child_ended{};               // called when any child has ended
};

/// The ranks. After the first failure the other ranks may go on for `grace`: the library tells them about the failure,
/// and their own error texts say more than this program's. Then they get SIGTERM, and after the same time again
/// SIGKILL.
class RankProcesses {
 public:
  RankProcesses(RankProcessesSettings settings, const SignalQueue& signals, const Guardian& guardian);

  /// Runs the ranks. Returns the exit code of the rank that failed first, or 128 plus the number of a signal that
  /// stopped this process. A rank that failed only because another rank failed (kExitOtherRank), or by a signal of this
  /// program, does not count if another failure comes: it may end before the rank that caused its end. After an error
  /// no rank runs.
  [[nodiscard]] Result<int> run();
  /// True if a signal stopped this process while the ranks ran.
  [[nodiscard]] bool interrupted() const noexcept { return stop_signals_ > 0; }

 private:
  struct Rank {
    std::unique_ptr<ChildProcess> process;
    std::vector<std::unique_ptr<RankOutput>> outputs;
  };
  [[nodiscard]] Status start(std::uint32_t index);
  void wait_for_something();
  void read_outputs();
  void take_signals();
  void look_at_ranks();
  [[nodiscard]] std::vector<std::uint32_t> find_ended_ranks();
  void note_failure(std::uint32_t index, const ExitStatus& status);
  void escalate();
  void signal_all(int number);
  void stop_by(int number);
  void stop_in(std::chrono::milliseconds from_now);

  const RankProcessesSettings settings_;
  const SignalQueue& signals_;
  const Guardian& guardian_;
  std::vector<Rank> ranks_;
  std::uint32_t running_ = 0;
  std::optional<int> code_;     // the run has failed with this code
  bool code_is_final_ = false;  // a cause has the code, and no later failure changes it
  bool signalled_ = false;      // this program has sent a signal to all ranks
  int stop_signals_ = 0;
  std::chrono::steady_clock::time_point output_until_ = std::chrono::steady_clock::time_point::max();
  std::chrono::steady_clock::time_point terminate_at_ = std::chrono::steady_clock::time_point::max();
  std::chrono::steady_clock::time_point kill_at_ = std::chrono::steady_clock::time_point::max();
};

}  // namespace tributary::cli
