#pragma once
// Cleans up after a SIGKILL of this process, when its own code cannot run.
#include <sys/types.h>

#include <string>

#include "tributary/protocol/error.h"

namespace tributary::cli {

/// A small second process that holds one end of a pipe. When the other end closes, because this process has ended in
/// any way, the guardian kills the process groups that it watches and removes the folder. One thread uses this class.
class Guardian {
 public:
  /// `folder`: the folder to remove; empty: none.
  [[nodiscard]] static Result<Guardian> start(const std::string& folder);
  Guardian(Guardian&& from) noexcept;
  Guardian& operator=(Guardian&&) = delete;
  /// Waits until the guardian has done its work.
  ~Guardian();

  /// Tells the guardian to watch or to forget a group. A child may call watch() between fork and exec.
  void watch(pid_t group) const noexcept;
  void forget(pid_t group) const noexcept;
  /// Tells the guardian to keep the folder.
  void keep_folder() const noexcept;

 private:
  Guardian(pid_t pid, int pipe) : pid_(pid), pipe_(pipe) {}
  void tell(char what, pid_t group) const noexcept;
  pid_t pid_;
  int pipe_;
};

}  // namespace tributary::cli
