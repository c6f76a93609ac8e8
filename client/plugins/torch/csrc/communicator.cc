#include "communicator.h"

#include <future>
#include <utility>

namespace tributary::torch {

bool Communicator::use(const std::function<void(tributary_comm*)>& call) {
  if (!made_here_) return false;
  std::lock_guard lock(mutex_);
  if (comm_ == nullptr) return false;
  call(comm_);
  return true;
}

tributary_comm* Communicator::take() {
  if (!made_here_) return nullptr;
  std::lock_guard lock(mutex_);
  return std::exchange(comm_, nullptr);
}

tributary_status Communicator::close() {
  tributary_comm* comm = take();
  return comm != nullptr ? tributary_comm_destroy(comm) : TRIBUTARY_OK;
}

void Communicator::end(std::chrono::steady_clock::time_point deadline, const std::string& reason) {
  tributary_comm* comm = take();
  if (comm == nullptr) return;
  auto finalized = std::async(std::launch::async, [comm] { return tributary_comm_finalize(comm); });
  if (finalized.wait_until(deadline) == std::future_status::ready) {
    tributary_comm_destroy(comm);
  } else {
    tributary_comm_abort_because(comm, reason.c_str());  // also ends tributary_comm_finalize(), which still runs
  }
}

void Communicator::abort(const std::string& reason) {
  if (tributary_comm* comm = take()) tributary_comm_abort_because(comm, reason.c_str());
}

}  // namespace tributary::torch
