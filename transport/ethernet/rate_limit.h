#pragma once
// A token bucket: it allows `per_second` events a second, and as many events at once. Used by one thread, or under its
// owner's lock.
#include <algorithm>
#include <chrono>
#include <cstdint>

namespace tributary::transport::ethernet {

class RateLimit {
 public:
  explicit RateLimit(std::uint32_t per_second) : per_second_(per_second), left_(per_second) {}
  [[nodiscard]] bool take(std::chrono::steady_clock::time_point now) noexcept {
    const std::chrono::duration<double> since = now - last_;
    last_ = now;
    left_ = std::min<double>(per_second_, left_ + since.count() * per_second_);
    if (left_ < 1) return false;
    left_ -= 1;
    return true;
  }

 private:
  const double per_second_;
  double left_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace tributary::transport::ethernet
