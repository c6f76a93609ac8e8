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
/// Calls the library one at a time, in the order of use(). Any thread may call abort() at any time.
class Communicator {
 public:
  /// Takes over the communicator that the meeting of all ranks has made.
  explicit Communicator(tributary_comm* comm) : comm_(comm) {}
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  ~Communicator() { close(); }

  /// Runs `call` with the communicator; returns false, without running it, after close() or abort().
  bool use(const std::function<void(tributary_comm*)>& call);
  /// Collective: waits for every rank, within the time-out, then frees the communicator. Call it once. A bad outcome
  /// deserves a warning at most.
  tributary_status close();
  /// Ends the communicator because the process ends. If the other ranks end, too, all have until `deadline` to do so in
  /// order; else the others read that this rank aborted, with `reason`.
  void end(std::chrono::steady_clock::time_point deadline, const std::string& reason);
  void abort(const std::string& reason);

 private:
  tributary_comm* take();

  const MadeHere made_here_;
  std::mutex mutex_;
  tributary_comm* comm_;
};

}  // namespace tributary::torch
