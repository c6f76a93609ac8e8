#pragma once
// A program that a test starts, watches and ends.
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tributary::aggregator::test {

class Process {
 public:
  /// Writes output and errors to the file `log`. The program gets this process's environment and `environment`.
  Process(const std::vector<std::string>& command, std::string log, const std::vector<std::string>& environment = {});
  /// Kills the process if it still runs.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void signal(int number) const;
  /// Returns the exit code, or 128 + the signal that ended it; nullopt if it still runs after `limit`.
  [[nodiscard]] std::optional<int> wait(std::chrono::milliseconds limit);
  [[nodiscard]] bool running() { return !wait(std::chrono::milliseconds(0)); }
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] std::string output() const;
  [[nodiscard]] std::size_t open_files() const;
  [[nodiscard]] std::uint64_t resident_bytes() const;

 private:
  pid_t pid_;
  std::string log_;
  std::optional<int> exit_;
};

/// Calls `done` until it returns true or the limit is over; returns its last answer.
[[nodiscard]] bool eventually(const std::function<bool()>& done,
                              std::chrono::milliseconds limit = std::chrono::seconds(15));

/// A new folder, which the destructor deletes.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }
  /// Writes a file, and returns its path.
  std::string write(const std::string& name, const std::string& text, mode_t mode = 0600) const;

 private:
  std::string path_;
};

[[nodiscard]] std::string text_of_file(const std::string& path);

}  // namespace tributary::aggregator::test
