#pragma once
// What cleans up when we cannot: after SIGKILL nothing of this process runs any more.
#include <sys/types.h>

#include <string>

#include "tributary/protocol/error.h"

namespace tributary::cli {

/// A small second process that holds one end of a pipe. When the other end closes, however this process ended, it kills
/// the process groups it was told of and removes the folder. One thread.
class Guardian {
 public:
  /// `folder`: to be removed; empty: none.
  [[nodiscard]] static Result<Guardian> start(const std::string& folder);
  Guardian(Guardian&& from) noexcept;
  Guardian& operator=(Guardian&&) = delete;
  /// Waits until it has done its work.
  ~Guardian();

  /// Also from a child between fork and exec.
  void watch(pid_t group) const noexcept;
  void forget(pid_t group) const noexcept;
  /// The folder is to stay.
  void keep_folder() const noexcept;

 private:
  Guardian(pid_t pid, int pipe) : pid_(pid), pipe_(pipe) {}
  void tell(char what, pid_t group) const noexcept;
  pid_t pid_;
  int pipe_;
};

}  // namespace tributary::cli
