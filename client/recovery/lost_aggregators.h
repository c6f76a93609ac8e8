#pragma once
// The aggregators that the ranks saw fail, and which of them rank 0 has reported to the manager. Rank 0 reports each of
// them once for each generation of trees: the manager would take a second report for a failure after a restart.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "client/control/control_message.h"
#include "tributary/protocol/reason.h"

namespace tributary::client {

class LostAggregators {
 public:
  /// Notes a lost aggregator of the present or of the last trees. Ignores an empty name.
  void note(const std::string& name) {
    if (!name.empty() && std::ranges::find(names_, name) == names_.end()) names_.push_back(name);
  }
  /// Notes the aggregator that a rank blames for a failed lane or join, unless the reason shows that this aggregator
  /// lives and can take lanes again: a group avoids a lost aggregator for minutes. The manager knows by itself that an
  /// aggregator drains, and whoever saw a lane end reports the loss that ended it. Memory comes back when the lanes of
  /// earlier trees have sent their last frames, so only the last of many refusals in a row counts. Refusals of several
  /// ranks for the same trees count as one.
  void note(const LaneFailure& failure) {
    const Reason reason = split_code(failure.reason).reason;
    if (reason == Reason::draining || reason == Reason::lane_ended) return;
    if (reason == Reason::no_memory) {
      if (!std::exchange(refused_, true)) ++refusals_;
      if (refusals_ < kRefusalsInARow) return;
    }
    note(failure.aggregator);
  }
  /// Notes that trees are in use.
  void found_trees() noexcept { refusals_ = 0; }
  /// Returns the aggregators that rank 0 has not reported to the manager yet.
  [[nodiscard]] std::vector<std::string> untold() const {
    return {names_.begin() + static_cast<std::ptrdiff_t>(told_), names_.end()};
  }
  [[nodiscard]] bool any_untold() const noexcept { return told_ < names_.size(); }
  /// Notes that rank 0 now sends a request that reports untold().
  void ask() noexcept { asked_ = names_.size(); }
  /// Notes that rank 0 now requests a new group; this request reports no lost aggregators.
  void ask_without() noexcept { asked_ = 0; }
  /// Notes that the manager has answered: only aggregators that were noted after the request are untold now.
  void answered() noexcept { told_ = std::max(told_, std::exchange(asked_, 0)); }
  /// Forgets the reported aggregators, because new trees begin to form: from now on the ranks speak of these.
  void forget_told() {
    names_.erase(names_.begin(), names_.begin() + static_cast<std::ptrdiff_t>(told_));
    told_ = asked_ = 0;
    refused_ = false;
  }

 private:
  // The pauses between so many requests for trees add up to more than the time for a lane's last frames (5 s).
  static constexpr std::uint32_t kRefusalsInARow = 8;

  std::vector<std::string> names_;  // in the order in which they were noted
  std::size_t told_ = 0, asked_ = 0;
  std::uint32_t refusals_ = 0;  // trees refused for want of memory since trees were last in use
  bool refused_ = false;        // the trees that form now are among them
};

}  // namespace tributary::client
