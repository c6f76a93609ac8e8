#pragma once
// Watches the children of one lane: their lags, and the one child for which the others wait.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "aggregator/worker/lane_lag.h"
#include "aggregator/worker/late_causes.h"
#include "aggregator/worker/operation_progress.h"
#include "aggregator/worker/straggler.h"
#include "aggregator/worker/worker.h"

namespace tributary::aggregator {

class LaneWatch {
 public:
  using TimePoint = LaneLag::TimePoint;

  /// `claims`, `settings` and `metrics` must outlive the watch.
  LaneWatch(const TokenClaims& claims, const WorkerSettings& settings, WorkerMetrics& metrics);
  /// Ends the notice that a child is late.
  ~LaneWatch();
  LaneWatch(const LaneWatch&) = delete;
  LaneWatch& operator=(const LaneWatch&) = delete;

  /// `rank`: empty if the child is an aggregator.
  void joined(std::uint32_t child, std::string name, std::optional<std::uint32_t> rank) {
    names_[child] = std::move(name);
    ranks_[child] = rank;
  }
  /// True if there are children to compare. Then note each contribution that the lane has accepted.
  [[nodiscard]] bool compares() const noexcept { return compares_; }
  void contributed(std::uint32_t child, std::uint64_t sequence, std::uint64_t operation, TimePoint now) noexcept {
    causes_.contributed(child, operation, lag_.contributed(child, sequence, now, metrics_.lag), now);
    progress_.contributed(child, operation);
  }
  /// Notes what a child tells about itself.
  void says(std::uint32_t child, const RankWord& word, TimePoint now) noexcept { causes_.says(child, word, now); }
  /// Notes what a child sees of another one. It may name a rank that the lane does not have.
  void seen(const Sighting& sighting, TimePoint now) noexcept;
  /// Notes that the result of a segment goes to the children.
  void answered(std::uint64_t sequence, TimePoint now) noexcept {
    if (compares()) lag_.answered(sequence, now, metrics_.segment_time);
  }
  /// The children to ask: a bit for each.
  struct Questions {
    std::uint64_t words = 0;      // for a word about themselves
    std::uint64_t sightings = 0;  // the children about which to ask all others
  };
  /// Finds out which children the lane waits for. Call it some 20 times a second.
  [[nodiscard]] Questions look(TimePoint now);
  /// Returns the child's rank; nullopt if it is an aggregator.
  [[nodiscard]] std::optional<std::uint32_t> rank_of(std::uint32_t child) const noexcept { return ranks_[child]; }
  /// Returns a bit for each child that is a rank.
  [[nodiscard]] std::uint64_t ranks() const noexcept;
  /// Fills in what the status says about children.
  void add_to(LaneStatus& status, TimePoint now) const;

 private:
  [[nodiscard]] Questions to_ask(const LaneLag::Wait& wait, TimePoint now);
  void tell(std::uint32_t child, bool late, TimePoint now);
  [[nodiscard]] LateCause cause(std::uint32_t child, TimePoint now) const noexcept;

  const bool compares_;
  const TokenClaims& claims_;
  const WorkerSettings& settings_;
  WorkerMetrics& metrics_;
  LaneLag lag_;
  StragglerWatch straggler_;
  OperationProgress progress_;
  LateCauses causes_;
  std::vector<std::string> names_;                   // names of the children that ever joined; index: child
  std::vector<std::optional<std::uint32_t>> ranks_;  // index: child
  std::optional<std::uint32_t> told_;                // the child that on_straggler has reported as late
  TimePoint told_at_{};
};

}  // namespace tributary::aggregator
