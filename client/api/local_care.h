#pragma once
// Lets the thread that drives a communicator also drive the calls in shared memory that no thread waits for.
#include <atomic>
#include <memory>

#include "client/collectives/local/call_queue.h"
#include "tributary/transport/channel.h"

namespace tributary::client {

class LocalCare {
 public:
  /// Sets the calls; call this once, before the first of these calls.
  void take(std::shared_ptr<local::GroupCalls> calls) { calls_ = std::move(calls); }

  // Only the driver calls the following function.
  /// Drives neglected calls. Returns how long the driver may then do other work, at most `limit`.
  [[nodiscard]] transport::Duration turn(transport::TimePoint now, transport::Duration limit);
  // Any thread may call the following functions.
  [[nodiscard]] bool neglected() const noexcept { return calls_ != nullptr && calls_->queue.neglected(); }
  /// True if the driver has seen neglected calls, and will soon call turn() again by itself.
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
