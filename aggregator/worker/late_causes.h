#pragma once
// Guesses why a child of a lane is late: because it begins its operations late, or because its data come slowly. If the
// child has told a trouble of its own, and most other children have not, this trouble is the cause.
//
// When the lane has waited for a child for a while, the aggregator wants a word from it. A child that answers that it
// has called nothing is not slow: the call is missing. A child that does not answer is silent, unless another rank of
// its host sees that it waits for a processor.
//
// A child that calls late sends nothing at first, and then its segments come as fast as the others': the lag of an
// operation's first segment is the greatest. On a slow link the first segment comes in time, and the lag grows with
// each further segment, until the window is full. A child that still sends the operation before is not late with the
// first segment: only the time in which nothing came counts.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "tributary/protocol/assert.h"
#include "tributary/protocol/late_rank.h"
#include "tributary/protocol/rank_troubles.h"

namespace tributary::aggregator {

class LateCauses {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::nanoseconds;
  static constexpr Duration kSilent =
      std::chrono::milliseconds(900);  // shorter than a wait after which a child is late
  /// A child for which the lane has waited for this time is asked for a word, and again after each pause. While a
  /// question has no answer, there is a further one only after kAskAgain: a process that stands still finds few when it
  /// goes on.
  static constexpr Duration kAskAfter = std::chrono::milliseconds(400), kAskPause = std::chrono::milliseconds(250);
  /// A question without an answer is asked again after this time, because it may have been dropped, and a few times.
  static constexpr Duration kAskAgain = std::chrono::seconds(5);
  static constexpr std::uint32_t kRepeatsMax = 3;
  /// A child that does not answer for this time is silent. The witnesses' second answer comes earlier.
  static constexpr Duration kAnswerLimit = std::chrono::milliseconds(350);

  explicit LateCauses(std::uint32_t children) : children_(children) {}

  /// Notes a contribution to `operation`. `lag`: the time since the first contribution to its segment.
  void contributed(std::uint32_t child, std::uint64_t operation, Duration lag, TimePoint now) noexcept {
    TRIBUTARY_ASSERT(child < children_.size(), "child {} of {} contributes", child, children_.size());
    Child& it = children_[child];
    if (operation != it.operation) {
      it.first = (it.first + it.first_now) * 3 / 4;
      it.most = (it.most + it.most_now) * 3 / 4;
      it.operation = operation;
      it.first_now = std::min(lag, now - it.last);
      it.most_now = lag;
    }
    it.most_now = std::max(it.most_now, lag);
    it.last = now;
    it.unanswered = false;  // it lives
  }
  /// Notes what a child tells about itself.
  void says(std::uint32_t child, const RankWord& word, TimePoint now) noexcept {
    TRIBUTARY_ASSERT(child < children_.size(), "child {} of {} tells about itself", child, children_.size());
    children_[child].word = word;
    children_[child].word_at = now;
    children_[child].unanswered = false;
  }
  /// Returns whether to ask this child for a word now, and notes that it was asked. `waited_for`: as for cause().
  [[nodiscard]] bool ask(std::uint32_t child, Duration waited_for, TimePoint now) noexcept {
    TRIBUTARY_ASSERT(child < children_.size(), "child {} of {} is asked", child, children_.size());
    Child& it = children_[child];
    if (waited_for < kAskAfter || now - it.asked_at < (it.unanswered ? kAskAgain : kAskPause)) return false;
    if (it.unanswered) {
      if (it.repeats >= kRepeatsMax) return false;
      ++it.repeats;
    } else {
      it.first_asked_at = now;
      it.repeats = it.others_asked = 0;
    }
    it.asked_at = now;
    return it.unanswered = true;
  }
  /// Returns whether to ask the other children now what they see of this child, which does not answer, and notes that
  /// they were asked.
  [[nodiscard]] bool ask_others(std::uint32_t child, TimePoint now) noexcept {
    TRIBUTARY_ASSERT(child < children_.size(), "others are asked about child {} of {}", child, children_.size());
    Child& it = children_[child];
    if (!it.unanswered || it.others_asked >= kWitnessQuestionsMax) return false;
    if (now - it.first_asked_at < witness_after(it.others_asked)) return false;
    ++it.others_asked;
    return true;
  }
  /// Notes what another child sees of this one.
  void seen(std::uint32_t child, const Sighting& sighting, TimePoint now) noexcept {
    TRIBUTARY_ASSERT(child < children_.size(), "child {} of {} is seen", child, children_.size());
    children_[child].sighting = sighting;
    children_[child].seen_at = now;
  }
  /// Returns the cause. `waited_for`: the time for which the oldest segment has waited for this child until now; 0: it
  /// does not.
  [[nodiscard]] LateCause cause(std::uint32_t child, Duration waited_for, TimePoint now) const noexcept {
    TRIBUTARY_ASSERT(child < children_.size(), "child {} of {}", child, children_.size());
    TroublesMean others;
    for (std::uint32_t other = 0; other < children_.size(); ++other) {
      if (other != child) others.add(troubles_of(other, now));
    }
    const LateCause seen = seen_cause(child, waited_for, now);
    const Child& it = children_[child];
    if (seen == LateCause::silent && it.unanswered && it.seen_at > it.first_asked_at) {
      if (it.sighting.stopped) return seen;
      return cause_of({.processor_wait = it.sighting.processor_wait}, others.mean(), seen);
    }
    // A process that stands still may have told a trouble before. A process that waits for a processor tells it again.
    if (seen == LateCause::silent && now - it.word_at > waited_for) return seen;
    return cause_of(troubles_of(child, now), others.mean(), seen);
  }

 private:
  [[nodiscard]] RankTroubles troubles_of(std::uint32_t child, TimePoint now) const noexcept {
    const Child& it = children_[child];
    return now - it.word_at <= kTroublesValid ? it.word.troubles : RankTroubles{};
  }
  /// Returns the cause without the child's troubles.
  [[nodiscard]] LateCause seen_cause(std::uint32_t child, Duration waited_for, TimePoint now) const noexcept {
    const Child& it = children_[child];
    const Duration first = it.first + it.first_now, most = it.most + it.most_now;
    const bool answers = now - it.word_at <= waited_for && !it.silent(now);
    if (!answers && (waited_for >= kSilent || (waited_for >= kAskAfter && it.silent(now)))) return LateCause::silent;
    // A wait much longer than its lags before is no lag: the call, or the data, may never come.
    if (answers && waited_for >= kAskAfter && waited_for > most)
      return it.word.idle ? LateCause::not_called : LateCause::slow_data;
    if (most == Duration::zero()) return LateCause::unknown;
    return first * 2 >= most ? LateCause::late_call : LateCause::slow_data;
  }

  struct Child {
    std::uint64_t operation = UINT64_MAX;  // the operation of the last contribution
    TimePoint last{};                      // time of the last contribution
    Duration first_now{}, most_now{};      // of this operation: see contributed()
    Duration first{}, most{};              // sums over the operations before, of which each counts less than the next
    RankWord word{};                       // its last word about itself
    TimePoint word_at{};
    TimePoint asked_at{};            // time of the last question
    bool unanswered = false;         // nothing has come since first_asked_at
    TimePoint first_asked_at{};      // time of the first question without an answer
    std::uint32_t repeats = 0;       // number of questions since then
    std::uint32_t others_asked = 0;  // number of questions to other children about this one
    Sighting sighting{};             // the last answer to them
    TimePoint seen_at{};

    [[nodiscard]] bool silent(TimePoint now) const noexcept {
      return unanswered && now - first_asked_at >= kAnswerLimit;
    }
  };

  std::vector<Child> children_;
};

}  // namespace tributary::aggregator
