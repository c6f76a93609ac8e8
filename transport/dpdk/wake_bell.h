#pragma once
// A thread sleeps, another one wakes it. No system call where nobody sleeps.
#include <atomic>
#include <chrono>
#include <memory>

#include "tributary/protocol/error.h"

namespace tributary::transport::dpdk {

class WakeBell {
 public:
  [[nodiscard]] static Result<std::unique_ptr<WakeBell>> make();
  ~WakeBell();
  WakeBell(const WakeBell&) = delete;
  WakeBell& operator=(const WakeBell&) = delete;

  /// Any thread.
  void ring() noexcept;
  /// Whether it was rung since the last call. One thread, as sleep().
  [[nodiscard]] bool take() noexcept;
  /// Until it is rung, or `limit` is over.
  void sleep(std::chrono::nanoseconds limit) noexcept;

 private:
  explicit WakeBell(int event) : event_(event) {}
  const int event_;
  std::atomic<bool> rung_{false};
  std::atomic<bool> asleep_{false};
};

}  // namespace tributary::transport::dpdk
