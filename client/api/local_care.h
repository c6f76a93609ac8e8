#pragma once
// Lets the thread that drives a communicator also drive the calls in shared memory that no thread waits for.
#include <atomic>
#include <memory>

#include "client/collectives/local/call_queue.h"
#include "tributary/transport/channel.h"

namespace tributary::client {

class LocalCare {
 public:
  /// Call once, before any call is made.
  void take(std::shared_ptr<local::GroupCalls> calls) { calls_ = std::move(calls); }

  // Called by the driver.
  /// Drives neglected calls. Returns for how long the driver may then do something else, at most `limit`.
  [[nodiscard]] transport::Duration turn(transport::TimePoint now, transport::Duration limit);
  // Called by any thread.
  [[nodiscard]] bool neglected() const noexcept { return calls_ != nullptr && calls_->queue.neglected(); }
  /// True if the driver has seen that calls are neglected, and will come back soon by itself.
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
