#pragma once
// Cleans up after a SIGKILL, when no code of this process runs any more.
#include <sys/types.h>

#include <string>

#include "tributary/protocol/error.h"

namespace tributary::cli {

/// A small second process that holds one end of a pipe. When the other end closes, however this process ended, it kills
/// the process groups that it watches and removes the folder. One thread.
class Guardian {
 public:
  /// `folder` is to be removed; empty: none.
  [[nodiscard]] static Result<Guardian> start(const std::string& folder);
  Guardian(Guardian&& from) noexcept;
  Guardian& operator=(Guardian&&) = delete;
  /// Waits until the guardian has done its work.
  ~Guardian();

  /// Tells it to watch or forget a group. A child may call watch() between fork and exec.
  void watch(pid_t group) const noexcept;
  void forget(pid_t group) const noexcept;
  /// Tells it to keep the folder.
  void keep_folder() const noexcept;

 private:
  Guardian(pid_t pid, int pipe) : pid_(pid), pipe_(pipe) {}
  void tell(char what, pid_t group) const noexcept;
  pid_t pid_;
  int pipe_;
};

}  // namespace tributary::cli
