#pragma once
// The latest times of one choice, for size_class.h.
#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

#include "client/tuning/adaptation.h"

namespace tributary::tuning {

/// The latest times of one choice.
class Samples {
 public:
  struct Times {
    double whole_us = 0, trees_us = 0, ranks_us = 0;
  };
  void clear() noexcept {
    count_ = 0;
    sum_us_ = 0;
  }
  /// Adds times, and forgets the oldest times that a decision does not need any more.
  void add(const Times& times) noexcept;
  /// Forgets all except the last `count` times.
  void keep_last(std::size_t count) noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  /// Returns the last times; there must be some.
  [[nodiscard]] const Times& last() const noexcept { return times_[count_ - 1]; }
  /// Returns whether there are enough times for a decision: few times are enough if they are long and similar.
  [[nodiscard]] bool decide() const;
  /// Returns the least whole time of the last `count` operations; there must be at least this many.
  [[nodiscard]] double least_of_last(std::size_t count) const noexcept {
    double least = times_[count_ - 1].whole_us;
    for (std::size_t i = 2; i <= count; ++i) least = std::min(least, times_[count_ - i].whole_us);
    return least;
  }
  [[nodiscard]] double least() const noexcept { return least_of_last(count_); }
  [[nodiscard]] double greatest() const noexcept {
    double greatest = 0;
    for (std::size_t i = 0; i < count_; ++i) greatest = std::max(greatest, times_[i].whole_us);
    return greatest;
  }
  /// Returns the whole time that a quarter of the operations do not exceed.
  [[nodiscard]] double lower_quartile() const { return sorted(&Times::whole_us)[count_ / 4]; }
  /// Returns whether the operations are long: few of them decide, because they differ little.
  [[nodiscard]] bool are_long() const noexcept;
  /// Returns by how much the median of the whole times may differ by chance, as a part of it.
  [[nodiscard]] double error() const;
  [[nodiscard]] double median(double Times::* of) const { return sorted(of)[count_ / 2]; }

 private:
  using Values = std::array<double, Adaptation::kSamplesMax>;
  [[nodiscard]] Values sorted(double Times::* of) const;

  std::array<Times, Adaptation::kSamplesMax> times_{};
  std::size_t count_ = 0;
  double sum_us_ = 0;  // sum of the whole times, so that no short operation looks at all of them
};

/// Averages the times of operations that overlap.
class OverlapMean {
 public:
  /// Averages at most this many operations.
  static constexpr std::size_t kMost = 16;
  /// Adds an operation's times, scaled by `scale`. Returns the mean over as many operations as were under way at once,
  /// when it has them, or for a short burst when its last operation has ended. Leaves out what remains at the end of a
  /// longer burst. The mean of one operation is its own times.
  [[nodiscard]] std::optional<Samples::Times> add(const MeasuredOperation& operation, double scale) noexcept;
  void clear() noexcept {
    sum_ = {};
    count_ = wanted_ = 0;
    gave_ = false;
  }
  /// Returns how many operations were under way at once in the last mean.
  [[nodiscard]] std::size_t abreast() const noexcept { return abreast_; }

 private:
  Samples::Times sum_;
  std::size_t count_ = 0;
  std::size_t wanted_ = 0;  // the greatest number of operations under way at once since count_ was 0
  std::size_t abreast_ = 1;
  bool gave_ = false;  // the burst has given a mean
};

}  // namespace tributary::tuning
