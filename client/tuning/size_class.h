#pragma once
// The state of one class of sizes of one collective, for adaptation.h.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

#include "client/tuning/adaptation.h"

namespace tributary::tuning {

/// A path and, for a split, the share of the trees.
struct Choice {
  Path path = Path::tree;
  std::uint32_t tree_share = 0;  // out of kWholeShare; only for Path::split
  friend bool operator==(const Choice&, const Choice&) = default;
};

/// The latest times of one choice.
class Samples {
 public:
  struct Times {
    double whole_us = 0, trees_us = 0, ranks_us = 0;
  };
  void clear() noexcept { count_ = 0; }
  /// Adds times, and forgets the oldest times that a decision does not need any more.
  void add(const Times& times) noexcept;
  /// Forgets all except the last `count` times.
  void keep_last(std::size_t count) noexcept {
    if (count >= count_) return;
    std::ranges::rotate(times_, times_.begin() + static_cast<std::ptrdiff_t>(count_ - count));
    count_ = count;
  }
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

  [[nodiscard]] double sum_of_last(std::size_t count) const noexcept;

  std::array<Times, Adaptation::kSamplesMax> times_{};
  std::size_t count_ = 0;
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

/// A decision: nothing, or the choice that the ranks should use from now on.
using Decision = std::optional<Choice>;

class Adaptation::SizeClass {
 public:
  /// `size` is any size of the class, `in_use` the ranks' step for this size, and `wanted` the model's step. If the two
  /// steps differ, the first decision asks for `wanted`.
  SizeClass(Collective collective, std::uint64_t size, const Step& in_use, const Step& wanted);

  [[nodiscard]] bool holds(Collective collective, std::uint64_t size) const noexcept {
    return collective == collective_ && size > above_ && size <= upto_;
  }
  [[nodiscard]] Collective collective() const noexcept { return collective_; }
  /// Returns the size with which the class was made.
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] Amendment amendment(const Choice& choice) const noexcept;
  /// Returns the time that all operations of the class have taken.
  [[nodiscard]] double spent_us() const noexcept { return spent_us_; }

  /// Notes the times of an operation if it began under the choice in effect.
  void note(const MeasuredOperation& operation);
  /// Decides by the noted times and by the model.
  [[nodiscard]] Decision decide(const Figures& figures, std::uint32_t ranks, TimePoint now);
  /// Returns the choice that has won a trial since the last call; nullopt if there is none.
  [[nodiscard]] std::optional<Amendment> take_news() {
    if (!std::exchange(won_, false)) return std::nullopt;
    return amendment(best_);
  }
  /// Notes that the last decision holds from operation `first` on; kNever: it does not hold, and the choice on which
  /// the ranks agreed last counts as the best so far.
  void took_effect(std::uint64_t first);

 private:
  struct Prospect {
    Choice choice;
    double time_us = 0;  // the expected time
  };
  [[nodiscard]] const Choice& in_effect() const noexcept { return trial_ ? *trial_ : best_; }
  [[nodiscard]] Decision ask_first();
  [[nodiscard]] Decision judge_trial(const Figures& figures, std::uint32_t ranks, TimePoint now);
  [[nodiscard]] Decision judge_steady(const Figures& figures, std::uint32_t ranks, TimePoint now);
  [[nodiscard]] Decision next(const Figures& figures, std::uint32_t ranks, TimePoint now);
  [[nodiscard]] Decision rest();
  [[nodiscard]] std::size_t operations_became_slow() const;
  [[nodiscard]] bool trees_became_slow(TimePoint now);
  void learn_from_parts(const Figures& figures);
  void know(const Choice& choice, double time_us);
  [[nodiscard]] Decision balance(const Figures& figures, TimePoint now);
  [[nodiscard]] Decision try_out(const Choice& choice);
  [[nodiscard]] std::optional<Prospect> prospect(Path path, const Figures& figures, std::uint32_t ranks) const;
  [[nodiscard]] std::optional<Prospect> prospect_of_split(const Figures& figures, std::uint32_t ranks) const;
  [[nodiscard]] std::optional<Prospect> prospect_of_less(const Figures& figures, std::uint32_t ranks) const;
  [[nodiscard]] double expected_us(Path path, const Figures& figures, std::uint32_t ranks) const;

  const Collective collective_;
  const std::uint64_t size_, above_, upto_;
  const schedule::Algorithm algorithm_;
  Choice best_;
  double best_us_ = 0;    // latest median of best_; 0: not measured yet
  double chosen_us_ = 0;  // least median of best_ since it was chosen
  double error_ = 0;      // the error of best_us_, as a part of it
  std::optional<Choice> trial_;
  Choice told_;  // the choice on which the ranks agreed last
  bool agreed_ = true;
  bool asks_first_;           // the first decision asks for best_, because the ranks use another choice
  double moved_at_ = 1;       // the trees' time divided by the ranks' time at the last move of a split's share
  double moved_in_vain_ = 1;  // the same quotient if the move saved no time, else 1
  bool won_ = false;
  bool balances_ = false;                           // the trial moves the share of a split
  std::array<bool, kPathCount> tried_{};            // paths tried in this round
  std::array<double, kPathCount> known_us_{};       // times measured in this round; 0: not measured
  std::uint32_t split_share_ = 0;                   // the share with which the split's time was measured
  std::uint32_t least_tried_ = kWholeShare;         // the least of the smaller shares tried in this round
  std::array<TimePoint, kPathCount> not_before_{};  // by path: earliest time of its next trial
  Samples samples_;
  OverlapMean overlapping_;
  std::uint64_t from_operation_ = 0;
  std::uint32_t pass_over_;
  TimePoint rest_until_{};
  TimePoint balance_at_{};
  TimePoint sudden_at_{};  // time from which on a single operation may decide again
  Duration sudden_rest_ = kRestFirst;
  double spent_us_ = 0;
  Duration rest_ = kRestFirst;
};

}  // namespace tributary::tuning
