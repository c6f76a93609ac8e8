#pragma once
// Counts of what a rank has done, for metrics: the time of its operations by collective and size, their bytes by path,
// the pauses after lost trees, and the reasons for paths. The memory is fixed, whatever the rank calls.
//
// One thread at a time counts, with plain loads and stores, except for values and reasons; any thread may read at any
// time.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "client/operation/value_numbers.h"
#include "tributary/protocol/reason_counts.h"
#include "tributary/protocol/types.h"

namespace tributary::client {

inline constexpr std::size_t kFlightPaths = 5;  // values of FlightPath

/// The numbers at one moment.
struct OperationNumbers {
  /// Bytes of operations are in class n if they are at most upper_bytes(n) and in no lower class: 4 KiB, 64 KiB, 1 MiB,
  /// 16 MiB; the last class has no bound.
  static constexpr std::size_t kSizes = 5;
  [[nodiscard]] static constexpr std::uint64_t upper_bytes(std::size_t number) noexcept {
    return 4096ULL << 4 * number;
  }
  [[nodiscard]] static std::size_t size_class_of(std::uint64_t bytes) noexcept {
    if (bytes <= upper_bytes(0)) return 0;
    const auto number = static_cast<std::size_t>(std::bit_width(bytes - 1) - 9) / 4;  // each class is 16 times as wide
    return std::min(number, kSizes - 1);
  }
  /// The same for times: 16 microseconds, 64, 256 and so on.
  static constexpr std::size_t kTimes = 11;
  [[nodiscard]] static constexpr std::uint64_t upper_us(std::size_t number) noexcept { return 16ULL << 2 * number; }
  [[nodiscard]] static std::size_t time_class_of(std::chrono::nanoseconds time) noexcept {
    const auto us = static_cast<std::uint64_t>(std::max<std::int64_t>(time.count(), 0) + 999) / 1000;
    if (us <= upper_us(0)) return 0;
    const auto number = static_cast<std::size_t>(std::bit_width(us - 1) - 3) / 2;  // each class is four times as wide
    return std::min(number, kTimes - 1);
  }

  struct Histogram {
    std::array<std::uint64_t, kTimes> counts{};
    std::uint64_t sum_ns = 0;
    [[nodiscard]] bool empty() const noexcept {
      return std::ranges::all_of(counts, [](std::uint64_t count) { return count == 0; });
    }
    Histogram& operator+=(const Histogram& other) noexcept {
      for (std::size_t i = 0; i < kTimes; ++i) counts[i] += other.counts[i];
      sum_ns += other.sum_ns;
      return *this;
    }
  };
  std::array<std::array<Histogram, kSizes>, kCollectiveCount> operations{};  // those that have succeeded
  std::array<std::uint64_t, kFlightPaths> bytes{};                           // by FlightPath
  Histogram pauses;  // from the loss of trees until operations went on
  std::uint64_t failures = 0;
  ValueNumbers values{};  // of collectives whose values were counted
  ReasonNumbers reasons{};

  OperationNumbers& operator+=(const OperationNumbers& other) noexcept;
};

class OperationCounts {
 public:
  void succeeded(Collective collective, std::uint64_t bytes, std::size_t path, std::chrono::nanoseconds time) noexcept {
    operations_[static_cast<std::size_t>(collective)][OperationNumbers::size_class_of(bytes)].add(time);
    add(bytes_[path], bytes);
  }
  void failed() noexcept { add(failures_, 1); }
  void paused(std::chrono::nanoseconds time) noexcept { pauses_.add(time); }
  /// Counts a reason, when the path changes: no operation calls it. Any thread may call it.
  void noted(Reason reason) noexcept { reasons_.add(reason); }
  /// Adds the counts of values. Several threads may call it at once.
  void saw(const ValueNumbers& values) noexcept;
  [[nodiscard]] OperationNumbers read() const noexcept;

 private:
  using Word = std::atomic<std::uint64_t>;
  static void add(Word& to, std::uint64_t value) noexcept {
    to.store(to.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
  }
  struct Histogram {
    std::array<Word, OperationNumbers::kTimes> counts{};
    Word sum_ns{0};
    void add(std::chrono::nanoseconds time) noexcept {
      OperationCounts::add(counts[OperationNumbers::time_class_of(time)], 1);
      OperationCounts::add(sum_ns, static_cast<std::uint64_t>(std::max<std::int64_t>(time.count(), 0)));
    }
    [[nodiscard]] OperationNumbers::Histogram read() const noexcept;
  };

  std::array<std::array<Histogram, OperationNumbers::kSizes>, kCollectiveCount> operations_{};
  std::array<Word, kFlightPaths> bytes_{};
  Histogram pauses_{};
  Word failures_{0};
  struct Values {
    Word elements{0}, nans{0}, infinities{0}, subnormals{0};
    void add(const ValueNumbers::Buffer& buffer) noexcept;
    [[nodiscard]] ValueNumbers::Buffer read() const noexcept;
  };
  Values input_{}, result_{};
  ReasonCounts reasons_{};
};

}  // namespace tributary::client
