#pragma once
// Gives out each number once: numbers of groups, and of aggregators' registrations. Numbers follow the clock, so that a
// manager that has lost its store does not give out old numbers. They only grow, even if the clock is set back or the
// manager restarts, because the store holds a number above all numbers that were given out.
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "tributary/protocol/error.h"

namespace tributary::manager {

/// One thread at a time may call it.
class NumberSeries {
 public:
  /// Writes into the store that numbers up to this one may be in use.
  using Promise = std::function<Status(std::uint64_t)>;

  /// `stride`: the series writes to the store once for so many numbers.
  NumberSeries(std::uint64_t stride, Promise promise) : stride_(stride), promise_(std::move(promise)) {}
  /// Notes that `number` is in use.
  void note_used(std::uint64_t number) noexcept;
  /// Notes the number in the store at the start.
  void note_promised(std::uint64_t number) noexcept;
  /// Returns a number that is at least `by_clock` and above all earlier numbers, after the store has the promise.
  [[nodiscard]] Result<std::uint64_t> next(std::uint64_t by_clock);

 private:
  const std::uint64_t stride_;
  const Promise promise_;
  std::uint64_t last_ = 0;
  std::uint64_t promised_ = 0;
};

}  // namespace tributary::manager
