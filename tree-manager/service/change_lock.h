#pragma once
// The lock of a cluster's state. One change at a time may alter the state; while it waits for the store, readers pass.
// While the store blocks for long, further changes are refused, so that they do not take all threads from readers.
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "tributary/protocol/assert.h"
#include "tributary/protocol/error.h"
#include "tributary/protocol/reason.h"

namespace tributary::manager {

/// Any thread may call it.
class ChangeLock {
 public:
  /// `patience`: the time for which a change waits for the change before it.
  explicit ChangeLock(std::chrono::milliseconds patience) : patience_(patience) {}

  /// The right to alter the state, and the lock. Both end with it.
  class Change {
   public:
    Change(ChangeLock& of, std::unique_lock<std::mutex> lock) : lock_(std::move(lock)), end_(&of) {}

   private:
    struct End {
      void operator()(ChangeLock* of) const noexcept {
        of->changing_ = false;
        of->change_ended_.notify_one();
      }
    };
    std::unique_lock<std::mutex> lock_;
    std::unique_ptr<ChangeLock, End> end_;  // destroyed first, while the lock is held
  };
  /// Errc::retry: the store blocks the change before it.
  [[nodiscard]] Result<Change> begin_change() {
    std::unique_lock lock(mutex_);
    const bool blocked = waits_ && std::chrono::steady_clock::now() - waits_since_ >= patience_;
    if (blocked || !change_ended_.wait_for(lock, patience_, [this] { return !changing_; })) {
      return fail(Errc::retry, Reason::store_blocked,
                  "the manager's store has not answered for " + std::to_string(patience_.count()) +
                      " ms, so nothing can be changed; try again");
    }
    changing_ = true;
    return Change(*this, std::move(lock));
  }
  [[nodiscard]] std::unique_lock<std::mutex> read() const { return std::unique_lock(mutex_); }

  /// Calls `wait` without the lock; only the thread of the change may do so. Readers see what the change has altered
  /// before this call.
  Status let_readers_pass(const std::function<Status()>& wait) {
    TRIBUTARY_ASSERT(changing_ && !waits_, "a wait without the right to alter the state; another one waits: {}",
                     waits_);
    waits_ = true;
    waits_since_ = std::chrono::steady_clock::now();
    const Passed passed(*this);
    return wait();
  }

 private:
  struct Passed {
    explicit Passed(ChangeLock& lock) : of(lock) { of.mutex_.unlock(); }
    ~Passed() {
      of.mutex_.lock();
      of.waits_ = false;
    }
    Passed(const Passed&) = delete;
    Passed& operator=(const Passed&) = delete;
    ChangeLock& of;
  };

  const std::chrono::milliseconds patience_;
  mutable std::mutex mutex_;  // guards the members below, and the state
  std::condition_variable change_ended_;
  bool changing_ = false;
  bool waits_ = false;
  std::chrono::steady_clock::time_point waits_since_{};  // while waits_
};

}  // namespace tributary::manager
