#pragma once
// The aggregators that the ranks saw fail, and how many of them the manager was told about. Each is reported once for
// each generation of trees: a second report would count against the same aggregator after its restart.
#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace tributary::client {

class LostAggregators {
 public:
  /// Notes an aggregator of the present trees, or of the last ones. An empty name is ignored.
  void note(const std::string& name) {
    if (!name.empty() && std::ranges::find(names_, name) == names_.end()) names_.push_back(name);
  }
  /// Returns the aggregators that were not reported to the manager yet.
  [[nodiscard]] std::vector<std::string> untold() const {
    return {names_.begin() + static_cast<std::ptrdiff_t>(told_), names_.end()};
  }
  [[nodiscard]] bool any_untold() const noexcept { return told_ < names_.size(); }
  /// Notes that the manager is asked now, with untold().
  void ask() noexcept { asked_ = names_.size(); }
  /// Notes that the manager is asked for a new group; that request says nothing about lost aggregators.
  void ask_without() noexcept { asked_ = 0; }
  /// Notes that the manager has answered: only aggregators noted since it was asked are untold.
  void answered() noexcept { told_ = std::max(told_, std::exchange(asked_, 0)); }
  /// Forgets the aggregators that were reported, because new trees are about to form.
  void forget_told() {
    names_.erase(names_.begin(), names_.begin() + static_cast<std::ptrdiff_t>(told_));
    told_ = asked_ = 0;
  }

 private:
  std::vector<std::string> names_;  // in the order in which they were noted
  std::size_t told_ = 0, asked_ = 0;
};

}  // namespace tributary::client
