#pragma once
// Corrects the policy of trees in use by the times that operations really take, on rank 0.
//
// The cost model chooses before the first operation, and it can be wrong: a link is slower than the topology says, an
// aggregator is shared or slow, or the processors are the limit. So for each collective and each class of sizes (a
// power of two), Adaptation measures the choice in use. It also measures each other path for a few operations (a
// *trial*), unless the model rules the path out. If the choice in use takes what the model expects, the model knows the
// links: then the ranks alone have their first trial only when it costs at most 1 % of the time. The path with the least median stays. For a split it also moves the
// share until both parts take the same time, as in the division of Y. Jiang et al. (OSDI 2020). If a split takes longer
// than the links need, the processors are the limit, and both parts share them: it then tries half of the trees' share,
// then a quarter, and so on.
//
//   measuring --3 to 5 operations--> steady --a path has no trial yet, or its pause is over--> trial --3 to 5--> steady
//
// Other load on the hosts slows down all paths, and may slow down the one choice and not the other. So trees and splits
// must win three times: in the trial, then against a few more operations with the old choice, and then with their first
// operations after the change. The ranks alone need to win only once, because no choice may be slower than they are.
//
// Operations that overlap end in no steady rhythm: two may end at once, and then none for a while. So their times are
// averaged over as many of them as are under way at once, and such an average counts as one operation. A tree gets them
// as a stream, in which its levels are filled only once; the model assumes the same.
//
// Short operations differ more from each other, so up to 64 of them decide, and a path must win by more than their
// medians differ by chance. Where two paths are equally quick, chance lets them win in turn: after two changes of path,
// the next change must save twice as much, then four times as much (constancy.h). A choice is judged by the operations
// that began under it, whatever path they took: in a short operation the share of a split may be rounded to nothing, or
// to the whole operation. A trial that is clearly slower ends after one or two operations. After a round of trials the
// class rests: first for 10 s, then twice as long each time, up to 10 minutes. A path has another trial only when its
// trials cost at most 1 % of the time. If operations become a quarter slower than when the choice was made, the rest
// ends; if the trials then change nothing, such an alarm must wait (alarm.h). If the trees of a split suddenly take
// much longer than its ranks, its share moves after one operation. If the manager reports new rates, because other
// groups have begun or ended, each class begins again with the model's choice for these rates. An amendment stops all
// ranks for a round trip to rank 0, so the next amendment comes after 10 times this time at the earliest. A class in
// which the job spends very little time gets no amendment.
//
// A pure state machine: times go in, amendments come out.
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "client/tuning/policy.h"

namespace tributary::tuning {

/// The facts that decide the choice, of one operation that has ended on rank 0.
struct MeasuredOperation {
  std::uint64_t number = 0;
  Collective collective = Collective::all_reduce;
  std::uint64_t bytes = 0;      // bytes of the whole vector
  Path path = Path::tree;       // the path that the operation took
  double time_us = 0;           // time since its start, or since the previous operation's end if this is later
  double latency_us = 0;        // time since its start; more than time_us: it overlapped with the previous operation
  std::uint64_t under_way = 0;  // number of other operations under way when it ended
  double trees_us = 0;          // Path::split: time of the trees' part
  double ranks_us = 0;          // Path::split: time of the ranks' part
};

class Adaptation {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;

  /// The number of operations that decide. Short operations differ more from each other, so more of them decide: as
  /// many as take kEnoughUs together, at most kSamplesMax.
  static constexpr std::size_t kSamples = 5;
  static constexpr std::size_t kSamplesMax = 64;
  static constexpr double kEnoughUs = 50'000;
  /// The number of operations after a change of path whose times do not count, because they also make the new path's
  /// buffers and connections.
  static constexpr std::uint32_t kPassedOver = 1;
  static constexpr auto kRestFirst = std::chrono::seconds(10);
  static constexpr auto kRestLast = std::chrono::minutes(10);

  /// Begins with `policy`, which was made from `figures`, and which this many ranks use.
  Adaptation(const Figures& figures, std::uint32_t ranks, Policy policy);
  ~Adaptation();
  Adaptation(const Adaptation&) = delete;
  Adaptation& operator=(const Adaptation&) = delete;

  /// Notes an operation. Returns the amendment on which the ranks should agree now, if there is one. The caller must
  /// then call took_effect(); until then add() returns no other amendment.
  [[nodiscard]] std::optional<Amendment> add(const MeasuredOperation& operation, TimePoint now);
  /// Notes that the amendment holds from operation `first` on; kNever: it does not hold.
  void took_effect(std::uint64_t first, TimePoint now);
  static constexpr std::uint64_t kNever = UINT64_MAX;

  /// Begins again with the model's choices in `wanted`, which is made from `figures`. The ranks keep their policy. Each
  /// class in use asks them for the model's choice by an amendment, even if another choice has won.
  void begin_again(const Figures& figures, Policy wanted);

  /// Returns, for people, the choice that has won since the last call, if there is one. It is already in effect.
  [[nodiscard]] std::optional<Amendment> take_news() { return std::exchange(news_, std::nullopt); }

  [[nodiscard]] const Policy& policy() const noexcept { return policy_; }

 private:
  class SizeClass;

  [[nodiscard]] SizeClass& class_of(const MeasuredOperation& operation);
  [[nodiscard]] std::unique_ptr<SizeClass> make_class(Collective collective, std::uint64_t size) const;
  void restart_classes();

  Figures figures_;
  const std::uint32_t ranks_;
  Policy policy_;  // the ranks' policy
  Policy wanted_;  // the model's policy from figures_
  std::vector<std::unique_ptr<SizeClass>> classes_;
  double spent_us_ = 0;  // time of the operations of all classes
  std::optional<Amendment> pending_;
  bool begins_again_ = false;  // classes begin again when the ranks have agreed on pending_
  std::optional<Amendment> news_;
  SizeClass* pending_class_ = nullptr;
  TimePoint asked_at_{};
  TimePoint next_amendment_at_{};
};

}  // namespace tributary::tuning
