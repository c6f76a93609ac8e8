#pragma once
#include <chrono>
#include <cstdint>

namespace tributary::manager {

/// The manager's clock; tests replace it. Any thread may call it.
class Clock {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  virtual ~Clock() = default;
  [[nodiscard]] virtual TimePoint now() const = 0;                   // time for leases
  [[nodiscard]] virtual std::int64_t unix_milliseconds() const = 0;  // time for tokens and records
  [[nodiscard]] std::int64_t unix_seconds() const { return unix_milliseconds() / 1000; }
};

class SystemClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const override { return std::chrono::steady_clock::now(); }
  [[nodiscard]] std::int64_t unix_milliseconds() const override {
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
};

}  // namespace tributary::manager
