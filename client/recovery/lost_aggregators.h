#pragma once
// The aggregators that the ranks saw fail, and which of them rank 0 has reported to the manager. Rank 0 reports each of
// them once for each generation of trees: the manager would take a second report for a failure after a restart.
#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace tributary::client {

class LostAggregators {
 public:
  /// Notes a lost aggregator of the present or of the last trees. Ignores an empty name.
  void note(const std::string& name) {
    if (!name.empty() && std::ranges::find(names_, name) == names_.end()) names_.push_back(name);
  }
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
  /// Forgets the reported aggregators, because new trees begin to form.
  void forget_told() {
    names_.erase(names_.begin(), names_.begin() + static_cast<std::ptrdiff_t>(told_));
    told_ = asked_ = 0;
  }

 private:
  std::vector<std::string> names_;  // in the order in which they were noted
  std::size_t told_ = 0, asked_ = 0;
};

}  // namespace tributary::client
