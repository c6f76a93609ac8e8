#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "tributary/tributary.h"

namespace tributary_torch {

/// Owns the tributary_comm of one process group.
///
/// Calls are handed to the library one at a time, in the order of use(). abort() may come from any thread at any time.
class Communicator {
 public:
  /// Collective. Rank 0 makes the unique id and leaves it, or the reason why there is none, in `store`, which belongs
  /// to this group alone.
  Communicator(c10d::Store& store, int rank, int size, std::chrono::milliseconds timeout);
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  ~Communicator() { close(); }

  /// Runs `call` with the communicator; false, without running it, after close() or abort().
  bool use(const std::function<void(tributary_comm*)>& call);
  /// Collective: waits for every rank, within the time-out, then frees. Once is enough. The outcome is for a warning at
  /// most.
  tributary_status close();
  void abort();

 private:
  tributary_comm* take();

  std::mutex mutex_;
  tributary_comm* comm_ = nullptr;
};

}  // namespace tributary_torch
