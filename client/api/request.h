#pragma once
// One call's outcome: the driver of the communicator sets it once, and any thread may wait for it.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "client/api/fork_guard.h"
#include "client/api/last_error.h"

namespace tributary::client {

class Comm;

class Request {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// `local`: the call runs in shared memory.
  explicit Request(std::shared_ptr<CommErrors> comm, std::weak_ptr<Comm> driver = {}, bool local = false)
      : comm_(std::move(comm)), driver_(std::move(driver)), local_(local) {}

  /// Sets the outcome; the first call counts.
  void complete(const Status& status);
  [[nodiscard]] bool done() const noexcept { return done_.load(std::memory_order_acquire); }
  /// Returns true when it is done. Waits for ever without a deadline.
  [[nodiscard]] bool wait(std::optional<TimePoint> deadline = std::nullopt);
  /// The outcome of a request that is done.
  [[nodiscard]] const Status& outcome() const noexcept { return outcome_; }
  /// Returns the outcome of a request that is done, as a status. Notes an error as this thread's last error. Stores the
  /// source for a caller that wants it.
  tributary_status report_outcome() const noexcept;
  /// Calls `then` once, when the request is done: at once if it is, else on the thread that completes it. Returns
  /// false, and never calls `then`, if another call waits for that already.
  [[nodiscard]] bool when_done(std::function<void()> then);

  /// Stores the sender's rank of a receive in `into`, for its caller; nullptr: not wanted. Call it before the receive
  /// starts.
  void want_source(int* into) noexcept { source_into_ = into; }
  /// Notes the other side of a message: before it starts or, for a receive from any rank, on the driving thread before
  /// complete().
  void note_peer(std::uint32_t rank) noexcept { peer_ = static_cast<int>(rank); }
  /// Returns the other side of a message that has ended well; else -1.
  [[nodiscard]] int peer() const noexcept { return outcome_ ? peer_ : -1; }
  [[nodiscard]] std::uint64_t comm_id() const noexcept { return comm_->id(); }
  [[nodiscard]] bool local() const noexcept { return local_; }
  /// False in a forked child, which must not touch the communicator.
  [[nodiscard]] bool of_this_process() const noexcept { return process_ == fork_generation(); }
  [[nodiscard]] CommErrors* comm() const noexcept { return comm_.get(); }
  /// The communicator whose progress this request needs; nullptr once it is gone.
  [[nodiscard]] std::shared_ptr<Comm> driver() const noexcept { return driver_.lock(); }

 private:
  const std::shared_ptr<CommErrors> comm_;
  const std::weak_ptr<Comm> driver_;  // weak: the communicator holds its requests
  const bool local_;
  const std::uint64_t process_ = fork_generation();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> done_{false};  // set under mutex_, after outcome_; readers need no lock
  Status outcome_;
  std::function<void()> then_;  // under mutex_
  int peer_ = -1;               // set before done_
  int* source_into_ = nullptr;
};

}  // namespace tributary::client
