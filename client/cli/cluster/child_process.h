#pragma once
// A child with a process group of its own that cannot outlive us.
#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tributary/protocol/error.h"

namespace tributary::cli {

using Environment = std::map<std::string, std::string>;
/// This process's own.
[[nodiscard]] Environment current_environment();

class Guardian;

struct SpawnRequest {
  std::vector<std::string> arguments;  // the first is the program: a path, or a name that PATH leads to
  Environment environment;             // whole, not what is added
  int output = -1;                     // descriptors that become its standard output and error; -1: ours
  int error = -1;
  const Guardian* guardian = nullptr;  // watches its group from before it begins; who sees it end tells it to forget()
};

struct ExitStatus {
  int code = 0;
  int signal = 0;  // 0: it ended by itself
  [[nodiscard]] bool good() const noexcept { return code == 0 && signal == 0; }
  /// As a shell shows it: 128 + signal.
  [[nodiscard]] int shell_code() const noexcept { return signal != 0 ? 128 + signal : code; }
};
/// "ended with exit code 3", "was killed by signal 9 (Killed)"
[[nodiscard]] std::string to_string(const ExitStatus& status);

/// Owns the process: whoever drops a live one kills it with its whole group. When the thread that spawned it ends, the
/// kernel kills it: spawn from the main thread. Standard input is empty. Not for several threads at once.
class ChildProcess {
 public:
  /// Errc::bad_argument: there is no such program (the first argument names it). Errc::io: no process could be made.
  [[nodiscard]] static Result<ChildProcess> spawn(const SpawnRequest& request);
  ChildProcess(ChildProcess&& from) noexcept;
  ChildProcess& operator=(ChildProcess&& from) noexcept;
  ~ChildProcess();

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] const std::optional<ExitStatus>& status() const noexcept { return status_; }
  /// Looks whether it has ended; then whatever is left of its group is killed.
  const std::optional<ExitStatus>& poll();
  const std::optional<ExitStatus>& wait_until(std::chrono::steady_clock::time_point deadline);
  /// To the whole group; nothing once it has ended.
  void signal(int number) const noexcept;
  /// SIGKILL, and waits for the end.
  void kill() noexcept;

 private:
  explicit ChildProcess(pid_t pid) : pid_(pid) {}
  const std::optional<ExitStatus>& reap(int options);
  pid_t pid_ = -1;
  std::optional<ExitStatus> status_;
};

}  // namespace tributary::cli
