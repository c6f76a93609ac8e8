#pragma once
// Counts of reasons, for metrics: how often each has arisen. Their memory is fixed.
#include <array>
#include <atomic>
#include <cstdint>

#include "tributary/protocol/reason.h"

namespace tributary {

/// The counts at one moment. One thread at a time uses them.
class ReasonNumbers {
 public:
  void add(Reason reason, std::uint64_t times = 1) noexcept { counts_[static_cast<std::size_t>(reason)] += times; }
  [[nodiscard]] std::uint64_t of(Reason reason) const noexcept { return counts_[static_cast<std::size_t>(reason)]; }
  ReasonNumbers& operator+=(const ReasonNumbers& other) noexcept {
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
    return *this;
  }
  /// Calls `each` with the code and the count of every reason that has arisen.
  template <class Each>
  void for_each(Each each) const {
    for (const ReasonRow& row : kReasons) {
      if (const std::uint64_t count = of(row.reason); count != 0) each(row.code, count);
    }
  }
  friend bool operator==(const ReasonNumbers&, const ReasonNumbers&) = default;

 private:
  std::array<std::uint64_t, kReasonCount> counts_{};  // the first, of Reason::none, is never shown
};

/// Any thread may count and read at any time.
class ReasonCounts {
 public:
  void add(Reason reason) noexcept {
    counts_[static_cast<std::size_t>(reason)].fetch_add(1, std::memory_order_relaxed);
  }
  [[nodiscard]] ReasonNumbers read() const noexcept {
    ReasonNumbers numbers;
    for (const ReasonRow& row : kReasons)
      numbers.add(row.reason, counts_[static_cast<std::size_t>(row.reason)].load(std::memory_order_relaxed));
    return numbers;
  }

 private:
  std::array<std::atomic<std::uint64_t>, kReasonCount> counts_{};
};

}  // namespace tributary
