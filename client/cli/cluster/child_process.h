#pragma once
// A child process with a process group of its own; it cannot outlive this process.
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
/// Returns the environment of this process.
[[nodiscard]] Environment current_environment();

class Guardian;

struct SpawnRequest {
  std::vector<std::string> arguments;  // the first is the program: a path, or a name to find in PATH
  Environment environment;             // the whole environment of the child
  int output = -1;                     // descriptor for its standard output and error; -1: this process's
  int error = -1;
  // If this process dies, the guardian kills the child's group; the caller tells it to forget() a group that has ended.
  const Guardian* guardian = nullptr;
  ChildHost host{};
};

struct ExitStatus {
  int code = 0;
  int signal = 0;  // number of the signal that killed it; 0: none did
  [[nodiscard]] bool good() const noexcept { return code == 0 && signal == 0; }
  /// Returns the code that a shell would show: 128 + signal.
  [[nodiscard]] int shell_code() const noexcept { return signal != 0 ? 128 + signal : code; }
};
/// Returns a text such as "ended with exit code 3" or "was killed by signal 9 (Killed)".
[[nodiscard]] std::string to_string(const ExitStatus& status);

/// A child process. The destructor kills a live child with its whole group. When the thread that spawned the child
/// ends, the kernel kills the child, so spawn from the main thread. Standard input is empty. Only one thread may use
/// it.
class ChildProcess {
 public:
  /// Starts a child. Errc::bad_argument: the program (the first argument) does not exist. Errc::io: the system could
  /// not make a process.
  [[nodiscard]] static Result<ChildProcess> spawn(const SpawnRequest& request);
  ChildProcess(ChildProcess&& from) noexcept;
  ChildProcess& operator=(ChildProcess&& from) noexcept;
  ~ChildProcess();

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] const std::optional<ExitStatus>& status() const noexcept { return status_; }
  /// Checks whether the child has ended; if so, kills the rest of its group.
  const std::optional<ExitStatus>& poll();
  const std::optional<ExitStatus>& wait_until(std::chrono::steady_clock::time_point deadline);
  /// Sends the signal to the whole group; does nothing after the child has ended.
  void signal(int number) const noexcept;
  /// Sends SIGKILL, and waits until the child has ended.
  void kill() noexcept;

 private:
  explicit ChildProcess(pid_t pid) : pid_(pid) {}
  const std::optional<ExitStatus>& reap(int options);
  pid_t pid_ = -1;
  std::optional<ExitStatus> status_;
};

}  // namespace tributary::cli
