#pragma once
// Says which thread may drive a communicator: its progress thread, or one caller who waits for an operation and would
// otherwise only sleep. A hand-over between threads costs more than a small operation, so a caller keeps the seat from
// call to call: the thread stays away as long as callers come back (see ProgressThread).
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace tributary::client {

class DrivingSeat {
 public:
  enum class Driver : std::uint8_t { nobody, thread, caller };
  using TimePoint = std::chrono::steady_clock::time_point;

  /// The progress thread has the seat from the start.
  DrivingSeat() = default;
  DrivingSeat(const DrivingSeat&) = delete;
  DrivingSeat& operator=(const DrivingSeat&) = delete;

  /// Returns nobody if the seat was free: it now belongs to `who`, which sees everything that the last driver did.
  /// Otherwise returns the present driver.
  Driver try_take(Driver who) noexcept {
    Driver present = Driver::nobody;
    driver_.compare_exchange_strong(present, who);
    return present;
  }
  void leave() noexcept {
    driver_.store(Driver::nobody);
    // Sequentially consistent, as the counting in wait_while(): of two threads, at least one sees the store of the
    // other.
    if (waiting_.load() > 0) notify();
  }
  [[nodiscard]] Driver driver() const noexcept { return driver_.load(); }
  /// Waits while `present` drives, at most until the deadline, or until close().
  void wait_while(Driver present, TimePoint deadline) {
    waiting_.fetch_add(1);
    {
      std::unique_lock lock(mutex_);
      changed_.wait_until(lock, deadline, [&] { return closed_ || driver_.load() != present; });
    }
    waiting_.fetch_sub(1);
  }
  /// Lets waiting threads go on, because no driver will leave the seat any more.
  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
  }
  [[nodiscard]] bool closed() {
    const std::lock_guard lock(mutex_);
    return closed_;
  }

 private:
  void notify() noexcept {
    {
      const std::lock_guard lock(mutex_);
    }  // every thread that has seen the old driver waits by now
    changed_.notify_all();
  }

  std::atomic<Driver> driver_{Driver::thread};
  std::atomic<std::uint32_t> waiting_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool closed_ = false;  // under mutex_
};

}  // namespace tributary::client
