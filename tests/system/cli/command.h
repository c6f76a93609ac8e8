#pragma once
// Runs `tributary` like a user, and looks for processes and files that it leaves behind.
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "client/cli/cluster/child_process.h"

namespace tributary::cli_test {

struct Outcome {
  int code = -1;  // exit code, as a shell shows it
  std::string output;
  std::string error;
};

/// A new folder for all files that the command writes: it is also the command's TMPDIR.
class Workplace {
 public:
  Workplace();
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;
  ~Workplace();

  [[nodiscard]] std::string path(const std::string& name) const { return folder_ + "/" + name; }
  /// Adds variables to this process's environment, for all commands from now on.
  cli::Environment variables;

  /// Runs `tributary` with these arguments; kills the process when it runs longer than the limit.
  Outcome tributary(const std::vector<std::string>& arguments,
                    std::chrono::seconds limit = std::chrono::seconds(120)) const;
  /// Does the same in two parts, for tests that act in between.
  [[nodiscard]] cli::ChildProcess start(const std::vector<std::string>& arguments) const;
  Outcome finish(cli::ChildProcess process, std::chrono::seconds limit = std::chrono::seconds(120)) const;

  /// Returns the names of processes that a command has left behind, and the files in its TMPDIR; empty if it left none.
  [[nodiscard]] std::string left_behind() const;
  /// Waits until no process or file is left behind, at most for the limit; then returns those that are left.
  [[nodiscard]] std::string left_behind_after(std::chrono::seconds limit) const;

 private:
  std::string folder_;
  std::string temporary_;  // TMPDIR
};

/// Waits until the condition is true; returns false when the wait takes too long.
template <class Condition>
[[nodiscard]] bool eventually(Condition condition, std::chrono::seconds limit = std::chrono::seconds(30));

[[nodiscard]] std::string read_file(const std::string& path);
[[nodiscard]] std::vector<std::string> lines_of(const std::string& text);
void pause_briefly();

template <class Condition>
bool eventually(Condition condition, std::chrono::seconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    pause_briefly();
  }
  return true;
}

}  // namespace tributary::cli_test
