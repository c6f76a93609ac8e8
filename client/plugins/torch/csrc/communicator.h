#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <string>

#include "process.h"
#include "tributary/tributary.h"

namespace tributary_torch {

/// Owns the tributary_comm of one process group.
///
/// Calls are handed to the library one at a time, in the order of use(). abort() may come from any thread at any time.
class Communicator {
 public:
  /// The meeting of all ranks.
  explicit Communicator(tributary_comm* comm) : comm_(comm) {}
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  ~Communicator() { close(); }

  /// Runs `call` with the communicator; false, without running it, after close() or abort().
  bool use(const std::function<void(tributary_comm*)>& call);
  /// Collective: waits for every rank, within the time-out, then frees. Once is enough. The outcome is for a warning at
  /// most.
  tributary_status close();
  /// The process ends. Where the other ranks end too there is time until `deadline` to do so in order; else they read
  /// that this one aborted, and `reason`.
  void end(std::chrono::steady_clock::time_point deadline, const std::string& reason);
  void abort(const std::string& reason);

 private:
  tributary_comm* take();

  const MadeHere made_here_;
  std::mutex mutex_;
  tributary_comm* comm_;
};

}  // namespace tributary_torch
