#pragma once
// The rate of one line's copies, measured while they run.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>

namespace tributary::client::gpu {

/// One thread notes copies in the order in which they end; any thread may ask for the rate.
class CopyRate {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  /// Shorter copies do not count: a launch and a wake-up are a large part of their time.
  static constexpr std::size_t kCountedMin = std::size_t{1} << 20;

  /// Notes a copy. It begins when it is launched or, if an earlier copy then still runs, at that copy's end.
  void note(std::size_t bytes, TimePoint launched, TimePoint ended) noexcept {
    const TimePoint began = std::max(launched, last_end_);
    last_end_ = ended;
    if (bytes < kCountedMin || ended <= began) return;
    const double sample = static_cast<double>(bytes) / std::chrono::duration<double, std::micro>(ended - began).count();
    const double old = rate_.load(std::memory_order_relaxed);
    rate_.store(old > 0 ? old + (sample - old) * kNewest : sample, std::memory_order_relaxed);
  }
  /// Returns the rate in bytes per microsecond; 0: no copy has counted yet.
  [[nodiscard]] double bytes_per_us() const noexcept { return rate_.load(std::memory_order_relaxed); }

 private:
  static constexpr double kNewest = 0.125;  // weight of the newest copy in the mean
  TimePoint last_end_{};
  std::atomic<double> rate_{0};
};

}  // namespace tributary::client::gpu
