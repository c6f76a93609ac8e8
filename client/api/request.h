#pragma once
// The outcome of one call: the driver of the communicator sets it once, and any thread may wait for it.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "client/api/call_values.h"
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

  /// Sets the outcome; later calls do nothing.
  void complete(const Status& status);
  [[nodiscard]] bool done() const noexcept { return done_.load(std::memory_order_acquire); }
  /// Waits until the request is done, and returns true; false at the deadline. Without a deadline, only the request's
  /// end ends the wait.
  [[nodiscard]] bool wait(std::optional<TimePoint> deadline = std::nullopt);
  /// Returns the outcome of a request that is done.
  [[nodiscard]] const Status& outcome() const noexcept { return outcome_; }
  /// Returns the outcome of a request that is done, as a status. Notes an error as this thread's last error. Stores the
  /// sender's rank if want_source() was called.
  tributary_status report_outcome() const noexcept;
  /// Calls `then` once, when the request is done: at once if it is done already, else on the thread that completes it.
  /// Returns false, and never calls `then`, if when_done() was called before.
  [[nodiscard]] bool when_done(std::function<void()> then);

  /// Sets the place `into` for the sender's rank of a receive; nullptr: the caller does not want it. Call it before the
  /// receive starts.
  void want_source(int* into) noexcept { source_into_ = into; }
  /// Notes the other side of a message. Call it before the message starts or, for a receive from any rank, on the
  /// driving thread before complete().
  void note_peer(std::uint32_t rank) noexcept { peer_ = static_cast<int>(rank); }
  /// Returns the other side of a message that has ended without an error; else -1.
  [[nodiscard]] int peer() const noexcept { return outcome_ ? peer_ : -1; }
  /// Keeps the memory that holds the operation's input as long as the request lives. Call it before the operation
  /// starts.
  void keep(std::unique_ptr<std::byte[]> input) noexcept { input_ = std::move(input); }
  /// Makes complete() count the result. Call it before the operation starts. The buffers must live until complete().
  void count_values(std::unique_ptr<CallValues> values) noexcept { values_ = std::move(values); }
  /// Returns the counts: of the input, and once the request is done also of the result; nullptr: nothing is counted.
  [[nodiscard]] const CallValues* values() const noexcept { return values_.get(); }
  [[nodiscard]] std::uint64_t comm_id() const noexcept { return comm_->id(); }
  [[nodiscard]] bool local() const noexcept { return local_; }
  /// False in a forked child, which must not touch the communicator.
  [[nodiscard]] bool of_this_process() const noexcept { return process_ == fork_generation(); }
  [[nodiscard]] CommErrors* comm() const noexcept { return comm_.get(); }
  /// Returns the communicator that must make progress for this request; nullptr if it is gone.
  [[nodiscard]] std::shared_ptr<Comm> driver() const noexcept { return driver_.lock(); }

 private:
  const std::shared_ptr<CommErrors> comm_;
  const std::weak_ptr<Comm> driver_;  // weak, because the communicator holds its requests
  const bool local_;
  const std::uint64_t process_ = fork_generation();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> done_{false};  // set after outcome_, with mutex_ held; readers need no lock
  Status outcome_;
  std::function<void()> then_;          // guarded by mutex_
  int peer_ = -1;                       // set before done_
  std::unique_ptr<CallValues> values_;  // set before the start; complete() changes it with mutex_ held
  int* source_into_ = nullptr;
  std::unique_ptr<std::byte[]> input_;  // nullptr: the input is in other memory
};

}  // namespace tributary::client
