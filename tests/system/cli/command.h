#pragma once
// Runs `tributary` as a user does, and looks for processes and files that it leaves behind.
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "client/cli/cluster/child_process.h"

namespace tributary::cli_test {

struct Outcome {
  int code = -1;  // as a shell shows it
  std::string output;
  std::string error;
};

/// A folder of its own, which holds everything that the command writes: it is also the command's TMPDIR.
class Workplace {
 public:
  Workplace();
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;
  ~Workplace();

  [[nodiscard]] std::string path(const std::string& name) const { return folder_ + "/" + name; }
  /// Added to this process's environment, for all commands from now on.
  cli::Environment variables;

  /// Runs `tributary` with these arguments; kills it when it takes longer than the limit.
  Outcome tributary(const std::vector<std::string>& arguments,
                    std::chrono::seconds limit = std::chrono::seconds(120)) const;
  /// The same in two parts, for tests that do something in between.
  [[nodiscard]] cli::ChildProcess start(const std::vector<std::string>& arguments) const;
  Outcome finish(cli::ChildProcess process, std::chrono::seconds limit = std::chrono::seconds(120)) const;

  /// Returns processes that a command has left, by name, and files in its TMPDIR; empty if it left none.
  [[nodiscard]] std::string left_behind() const;
  /// Waits until nothing is left behind, at most for the limit, and returns what is left then.
  [[nodiscard]] std::string left_behind_after(std::chrono::seconds limit) const;

 private:
  std::string folder_;
  std::string temporary_;  // TMPDIR
};

/// Waits until the condition is true; returns false when that takes too long.
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
