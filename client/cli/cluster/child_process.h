#pragma once
// A child with a process group of its own, which cannot outlive this process.
#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/network/child_host.h"
#include "tributary/protocol/error.h"

namespace tributary::cli {

using Environment = std::map<std::string, std::string>;
/// This process's own environment.
[[nodiscard]] Environment current_environment();

class Guardian;

struct SpawnRequest {
  std::vector<std::string> arguments;  // the first is the program: a path, or a name to look up in PATH
  Environment environment;             // the whole environment, not an addition to this process's
  int output = -1;                     // descriptors that become its standard output and error; -1: this process's
  int error = -1;
  // The guardian kills the child's group if this process dies; the caller tells it to forget() an ended group.
  const Guardian* guardian = nullptr;
  ChildHost host{};
};

struct ExitStatus {
  int code = 0;
  int signal = 0;  // 0: it was not killed
  [[nodiscard]] bool good() const noexcept { return code == 0 && signal == 0; }
  /// The code that a shell shows: 128 + signal.
  [[nodiscard]] int shell_code() const noexcept { return signal != 0 ? 128 + signal : code; }
};
/// Returns "ended with exit code 3", "was killed by signal 9 (Killed)".
[[nodiscard]] std::string to_string(const ExitStatus& status);

/// Owns the process: the destructor kills a live one with its whole group. The kernel kills it when the thread that
/// spawned it ends, so spawn from the main thread. Standard input is empty. One thread at a time.
class ChildProcess {
 public:
  /// Errc::bad_argument: there is no such program (the first argument names it). Errc::io: the process could not be
  /// made.
  [[nodiscard]] static Result<ChildProcess> spawn(const SpawnRequest& request);
  ChildProcess(ChildProcess&& from) noexcept;
  ChildProcess& operator=(ChildProcess&& from) noexcept;
  ~ChildProcess();

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] const std::optional<ExitStatus>& status() const noexcept { return status_; }
  /// Looks whether it has ended; if so, kills the rest of its group.
  const std::optional<ExitStatus>& poll();
  const std::optional<ExitStatus>& wait_until(std::chrono::steady_clock::time_point deadline);
  /// Sends the signal to the whole group; does nothing once the process has ended.
  void signal(int number) const noexcept;
  /// Sends SIGKILL, and waits for the end.
  void kill() noexcept;

 private:
  explicit ChildProcess(pid_t pid) : pid_(pid) {}
  const std::optional<ExitStatus>& reap(int options);
  pid_t pid_ = -1;
  std::optional<ExitStatus> status_;
};

}  // namespace tributary::cli
