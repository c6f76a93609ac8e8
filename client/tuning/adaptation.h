#pragma once
// Corrects the policy of trees in use by the times that operations really take, on rank 0.
//
// The cost model chooses before the first operation, and it can be wrong: a link is narrower than the topology says, an
// aggregator is shared or slow, the processors are the limit. So for each collective and class of sizes (a power of
// two) this class measures the choice in use and, where the model does not rule it out, each other path for a few
// operations (a trial). The quickest median stays. For a split it also moves the share until both parts take equally
// long, as the division of Y. Jiang et al. (OSDI 2020) asks for. Where a split takes longer than the links need, the
// processors are the bound, and both parts share them: it tries half of the share, and half of that.
//
//   measuring --3 to 5 operations--> steady --a path is untried, or it is time again--> trial --3 to 5--> steady
//
// A trial that is clearly slower ends after one or two operations. After a round of trials the class rests, first for
// 10 s, then twice as long each time, up to 10 minutes, and a path is tried again only when its trials cost no more than
// 1 % of the time. Operations that take a quarter longer than when the choice was made end the rest; a split whose trees
// suddenly take much longer than its ranks is moved after one. An amendment stops all ranks for a round trip to rank 0,
// so they follow each other only after 10 times as long, and a class in which the job spends next to no time gets none.
//
// A pure state machine: times in, amendments out.
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "client/tuning/policy.h"

namespace tributary::tuning {

/// One operation that has ended here, as far as the choice depends on it.
struct MeasuredOperation {
  std::uint64_t number = 0;
  Collective collective = Collective::all_reduce;
  std::uint64_t bytes = 0;  // bytes of the whole vector
  Path path = Path::tree;   // the path that it took
  double time_us = 0;       // from its start, or the end of the operation before if that is later
  double trees_us = 0;      // Path::split: the trees' part of that time
  double ranks_us = 0;      // Path::split: the ranks' part
};

class Adaptation {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;

  static constexpr std::size_t kSamples = 5;
  /// Operations after a change that are not counted: buffers and connections of the new path are made then.
  static constexpr std::uint32_t kPassedOver = 1;
  static constexpr auto kRestFirst = std::chrono::seconds(10);
  static constexpr auto kRestLast = std::chrono::minutes(10);

  /// Begins with `policy`, made from `figures`, in use among this many ranks.
  Adaptation(const Figures& figures, std::uint32_t ranks, Policy policy);
  ~Adaptation();
  Adaptation(const Adaptation&) = delete;
  Adaptation& operator=(const Adaptation&) = delete;

  /// Takes the operation into account. Returns the amendment on which the ranks should agree now. The caller then calls
  /// took_effect(); until it does, there is no other amendment.
  [[nodiscard]] std::optional<Amendment> add(const MeasuredOperation& operation, TimePoint now);
  /// Notes that the amendment holds from operation `first` on; kNever: it does not hold.
  void took_effect(std::uint64_t first, TimePoint now);
  static constexpr std::uint64_t kNever = UINT64_MAX;

  /// Returns, for people, the choice that has won since the last call, if any. It is in effect already.
  [[nodiscard]] std::optional<Amendment> take_news() { return std::exchange(news_, std::nullopt); }

  [[nodiscard]] const Policy& policy() const noexcept { return policy_; }

 private:
  class SizeClass;

  [[nodiscard]] SizeClass& class_of(const MeasuredOperation& operation);

  const Figures figures_;
  const std::uint32_t ranks_;
  Policy policy_;
  std::vector<std::unique_ptr<SizeClass>> classes_;
  double spent_us_ = 0;  // by all classes
  std::optional<Amendment> pending_;
  std::optional<Amendment> news_;
  SizeClass* pending_class_ = nullptr;
  TimePoint asked_at_{};
  TimePoint next_amendment_at_{};
};

}  // namespace tributary::tuning
