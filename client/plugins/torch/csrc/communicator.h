#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <string>

#include "process.h"
#include "tributary/tributary.h"

namespace tributary::torch {

/// Owns the tributary_comm of one process group.
///
/// Only one thread at a time calls the library, in the order of the use() calls. Any thread may call abort() at any
/// time.
class Communicator {
 public:
  /// Takes over the communicator that all ranks have made together.
  explicit Communicator(tributary_comm* comm) : comm_(comm) {}
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  ~Communicator() { close(); }

  /// Runs `call` with the communicator. After close() or abort() it does not run `call`, and returns false.
  bool use(const std::function<void(tributary_comm*)>& call);
  /// A collective call: waits for every rank, at most for the time-out, then frees the communicator. Call it once. If
  /// it fails, a warning is enough.
  tributary_status close();
  /// Ends the communicator because the process ends. If all ranks end their communicators until `deadline`, they end in
  /// order. Otherwise the other ranks get an error: this rank aborted, with `reason`.
  void end(std::chrono::steady_clock::time_point deadline, const std::string& reason);
  void abort(const std::string& reason);

 private:
  tributary_comm* take();

  const MadeHere made_here_;
  std::mutex mutex_;
  tributary_comm* comm_;
};

}  // namespace tributary::torch
