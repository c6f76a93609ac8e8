#pragma once

#include <memory>
#include <string>

#include "tributary/tributary.h"

namespace tributary::jax {

/// One communicator of MPI: the ranks' own tributary_comm, or the reason why there is none.
///
/// MPI_Comm_split cannot pass a failure on, because XLA ignores what it returns. So a communicator that could not be
/// made has the reason, and every later call on it ends with this reason.
class Communicator {
 public:
  explicit Communicator(std::string failure) : failure_(std::move(failure)) {}
  Communicator(tributary_comm* comm, int rank, int size) : comm_(comm), rank_(rank), size_(size) {}
  ~Communicator() { close(); }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  /// Returns nullptr if the communicator could not be made, or has ended.
  [[nodiscard]] tributary_comm* comm() const { return comm_; }
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] const std::string& failure() const { return failure_; }

  /// Waits until the operations of all its ranks have ended. Collective, unless the communicator has failed. With a
  /// reason: ends the operations of all ranks at once, with an error that has this reason.
  void close(const std::string& reason = {}) {
    if (comm_ != nullptr && reason.empty()) tributary_comm_destroy(comm_);
    if (comm_ != nullptr && !reason.empty()) tributary_comm_abort_because(comm_, reason.c_str());
    comm_ = nullptr;
    failure_ = "the communicator has ended";
  }

 private:
  tributary_comm* comm_ = nullptr;
  int rank_ = 0;
  int size_ = 1;
  std::string failure_;
};

}  // namespace tributary::jax
