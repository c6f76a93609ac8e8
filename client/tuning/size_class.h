#pragma once
// The state of one class of sizes of one collective, for adaptation.h.
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "client/tuning/adaptation.h"
#include "client/tuning/alarm.h"
#include "client/tuning/choice.h"
#include "client/tuning/constancy.h"
#include "client/tuning/samples.h"

namespace tributary::tuning {

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
  /// A choice and its median.
  struct Timed {
    Choice choice;
    double time_us = 0;
    double error = 0;  // error of the median, as a part of the median
  };
  [[nodiscard]] const Choice& in_effect() const noexcept { return trial_ ? *trial_ : best_; }
  [[nodiscard]] Decision ask_first();
  [[nodiscard]] Decision judge_trial(const Figures& figures, std::uint32_t ranks, TimePoint now);
  [[nodiscard]] Decision end_balance(const Figures& figures, TimePoint now);
  [[nodiscard]] Decision end_trial(const Figures& figures, std::uint32_t ranks, TimePoint now);
  [[nodiscard]] Decision end_return(const Figures& figures, std::uint32_t ranks, TimePoint now);
  [[nodiscard]] Decision confirm(TimePoint now);
  [[nodiscard]] double gain_needed(double least, double error) const;
  [[nodiscard]] double constancy(TimePoint now) const;
  [[nodiscard]] TimePoint earliest_next(double difference_us, TimePoint now) const;
  void win(const Timed& it, TimePoint now);
  [[nodiscard]] Decision judge_steady(const Figures& figures, std::uint32_t ranks, TimePoint now);
  [[nodiscard]] Decision next(const Figures& figures, std::uint32_t ranks, TimePoint now);
  [[nodiscard]] Decision rest();
  [[nodiscard]] std::size_t operations_became_slow(TimePoint now) const;
  [[nodiscard]] bool trees_became_slow(TimePoint now);
  void learn_from_parts(const Figures& figures);
  void know(const Choice& choice, double time_us);
  [[nodiscard]] Decision balance(const Figures& figures, TimePoint now);
  [[nodiscard]] Decision try_out(const Choice& choice);
  [[nodiscard]] std::optional<Prospect> prospect(Path path, const Figures& figures, std::uint32_t ranks) const;
  [[nodiscard]] std::optional<Prospect> prospect_of_split(const Figures& figures, std::uint32_t ranks) const;
  [[nodiscard]] std::optional<Prospect> prospect_of_less(const Figures& figures, std::uint32_t ranks) const;
  [[nodiscard]] double time_of_trees_part(double part, const Figures& figures, std::uint32_t ranks) const;
  [[nodiscard]] double expected_us(Path path, const Figures& figures, std::uint32_t ranks) const;
  [[nodiscard]] double modelled_us(Path path, const Figures& figures, std::uint32_t ranks) const;
  [[nodiscard]] bool defer_ranks(double ranks_us, const Figures& figures, std::uint32_t ranks);

  const Collective collective_;
  const std::uint64_t size_, above_, upto_;
  const schedule::Algorithm algorithm_;
  Choice best_;
  double best_us_ = 0;    // latest median of best_; 0: not measured yet
  double chosen_us_ = 0;  // least median of best_ since it was chosen
  double error_ = 0;      // the error of best_us_, as a part of it
  std::optional<Choice> trial_;
  std::optional<Timed> challenger_;  // has won the first part of its trial; trial_ is best_ again
  std::optional<Timed> beaten_;      // the choice before best_, until the first operations of best_ confirm the change
  Choice told_;                      // the choice on which the ranks agreed last
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
  Alarm alarm_;
  Constancy constancy_;
  TimePoint rest_until_{};
  TimePoint balance_at_{};
  TimePoint sudden_at_{};  // time from which on a single operation may decide again
  Duration sudden_rest_ = kRestFirst;
  double spent_us_ = 0;
  /// The first trial of the ranks alone waits until spent_us_ is as much; 0: it is not deferred.
  double ranks_deferred_us_ = 0;
  Duration rest_ = kRestFirst;
};

}  // namespace tributary::tuning
