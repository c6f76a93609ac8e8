#pragma once
// Says which thread may drive a communicator: its progress thread, or one caller that waits for an operation and would
// else only sleep. A change of the driver costs more time than a small operation. So a caller keeps the seat from call
// to call: the progress thread stays away as long as callers come back (see ProgressThread).
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

  /// Makes the seat; the progress thread has it first.
  DrivingSeat() = default;
  DrivingSeat(const DrivingSeat&) = delete;
  DrivingSeat& operator=(const DrivingSeat&) = delete;

  /// Returns nobody if the seat was free: it now belongs to `who`, which sees all writes of the last driver. Else
  /// returns the present driver.
  Driver try_take(Driver who) noexcept {
    Driver present = Driver::nobody;
    driver_.compare_exchange_strong(present, who);
    return present;
  }
  void leave() noexcept {
    driver_.store(Driver::nobody);
    // The store is sequentially consistent, as the count in wait_while(): at least one of the two threads sees the
    // other's store.
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
  /// Lets waiting threads go on, because from now on no driver leaves the seat.
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
    }  // every thread that has seen the old driver is now in its wait
    changed_.notify_all();
  }

  std::atomic<Driver> driver_{Driver::thread};
  std::atomic<std::uint32_t> waiting_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool closed_ = false;  // guarded by mutex_
};

}  // namespace tributary::client
