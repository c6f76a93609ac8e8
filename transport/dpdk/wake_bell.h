#pragma once
// A bell by which other threads wake one thread. Ringing makes no system call while that thread is awake; turn/alarm.h
// says why no ring is missed.
#include <chrono>
#include <memory>

#include "transport/turn/alarm.h"
#include "tributary/protocol/error.h"

namespace tributary::transport::dpdk {

class WakeBell {
 public:
  [[nodiscard]] static Result<std::unique_ptr<WakeBell>> make();
  ~WakeBell();
  WakeBell(const WakeBell&) = delete;
  WakeBell& operator=(const WakeBell&) = delete;

  /// Any thread may call it.
  void ring() noexcept;
  /// Returns whether the bell was rung since the last call. Called by the thread that calls sleep().
  [[nodiscard]] bool take() noexcept { return alarm_.take(); }
  /// Sleeps until the bell is rung, or `limit` is over.
  void sleep(std::chrono::nanoseconds limit) noexcept;

 private:
  explicit WakeBell(int event) : event_(event) {}
  const int event_;
  turn::Alarm alarm_;
};

}  // namespace tributary::transport::dpdk
