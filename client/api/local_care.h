#pragma once
// Whoever drives a communicator also takes care of the calls in shared memory that nobody waits for.
#include <atomic>
#include <memory>

#include "client/collectives/local/call_queue.h"
#include "tributary/transport/channel.h"

namespace tributary::client {

class LocalCare {
 public:
  /// Once, before any call of it.
  void take(std::shared_ptr<local::GroupCalls> calls) { calls_ = std::move(calls); }

  // The driver.
  /// Does what is to be done. How long it may do something else then, at most `limit`.
  [[nodiscard]] transport::Duration turn(transport::TimePoint now, transport::Duration limit);
  // Any thread.
  [[nodiscard]] bool neglected() const noexcept { return calls_ != nullptr && calls_->queue.neglected(); }
  /// The driver has seen that something is neglected, and comes back soon by itself.
  [[nodiscard]] bool attends() const noexcept { return attends_.load(); }

 private:
  std::shared_ptr<local::GroupCalls> calls_;
  std::atomic<bool> attends_{false};
  std::uint64_t steps_ = 0;
  transport::TimePoint moved_at_{};
  transport::TimePoint inspect_at_{};
  transport::TimePoint attend_at_{};
};

}  // namespace tributary::client
