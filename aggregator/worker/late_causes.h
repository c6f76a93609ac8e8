#pragma once
// Guesses why a child of a lane is late: because it begins its operations late, or because its data come slowly. If the
// child has told a trouble of its own, and most other children have not, this trouble is the cause.
//
// A child that calls late sends nothing at first, and then its segments come as fast as the others': the lag of an
// operation's first segment is the greatest. On a slow link the first segment comes in time, and the lag grows with each
// further segment, until the window is full. A child that still sends the operation before is not late with the first
// segment: only the time in which nothing came counts.
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
  }
  /// Notes what a child tells about itself.
  void says(std::uint32_t child, const RankTroubles& troubles, TimePoint now) noexcept {
    TRIBUTARY_ASSERT(child < children_.size(), "child {} of {} tells its troubles", child, children_.size());
    children_[child].troubles = troubles;
    children_[child].troubles_at = now;
  }
  /// Returns the cause. `waited_for`: the time for which the oldest segment has waited for this child until now; 0: it
  /// does not.
  [[nodiscard]] LateCause cause(std::uint32_t child, Duration waited_for, TimePoint now) const noexcept {
    TRIBUTARY_ASSERT(child < children_.size(), "child {} of {}", child, children_.size());
    TroublesMean others;
    for (std::uint32_t other = 0; other < children_.size(); ++other) {
      if (other != child) others.add(troubles_of(other, now));
    }
    const LateCause seen = seen_cause(child, waited_for);
    // A process that stands still may have told a trouble before. A process that waits for a processor tells it again.
    if (seen == LateCause::silent && now - children_[child].troubles_at > waited_for) return seen;
    return cause_of(troubles_of(child, now), others.mean(), seen);
  }

 private:
  [[nodiscard]] RankTroubles troubles_of(std::uint32_t child, TimePoint now) const noexcept {
    const Child& it = children_[child];
    return now - it.troubles_at <= kTroublesValid ? it.troubles : RankTroubles{};
  }
  /// Returns the cause by the times of the contributions alone.
  [[nodiscard]] LateCause seen_cause(std::uint32_t child, Duration waited_for) const noexcept {
    if (waited_for >= kSilent) return LateCause::silent;
    const Child& it = children_[child];
    const Duration first = it.first + it.first_now, most = it.most + it.most_now;
    if (most == Duration::zero()) return LateCause::unknown;
    return first * 2 >= most ? LateCause::late_call : LateCause::slow_data;
  }

  struct Child {
    std::uint64_t operation = UINT64_MAX;  // the operation of the last contribution
    TimePoint last{};                      // time of the last contribution
    Duration first_now{}, most_now{};      // of this operation: see contributed()
    Duration first{}, most{};              // sums over the operations before, of which each counts less than the next
    RankTroubles troubles{};               // its last word about itself
    TimePoint troubles_at{};
  };

  std::vector<Child> children_;
};

}  // namespace tributary::aggregator
