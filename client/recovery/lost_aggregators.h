#pragma once
// Which aggregators the ranks saw fail, and which of them the manager has been told of. Each is told once for each
// generation of trees: said again, it would count against the same aggregator's next life.
#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace tributary::client {

class LostAggregators {
 public:
  /// Belongs to the trees of now, or to those that were lost last. An empty name is none.
  void note(const std::string& name) {
    if (!name.empty() && std::ranges::find(names_, name) == names_.end()) names_.push_back(name);
  }
  /// Those that the manager does not know of yet.
  [[nodiscard]] std::vector<std::string> untold() const {
    return {names_.begin() + static_cast<std::ptrdiff_t>(told_), names_.end()};
  }
  [[nodiscard]] bool any_untold() const noexcept { return told_ < names_.size(); }
  /// The manager is asked with untold() now,
  void ask() noexcept { asked_ = names_.size(); }
  /// or it is asked for a new group, which says nothing of them,
  void ask_without() noexcept { asked_ = 0; }
  /// and has answered: what was noted since is untold.
  void answered() noexcept { told_ = std::max(told_, std::exchange(asked_, 0)); }
  /// New trees are about to form: what was told is over.
  void forget_told() {
    names_.erase(names_.begin(), names_.begin() + static_cast<std::ptrdiff_t>(told_));
    told_ = asked_ = 0;
  }

 private:
  std::vector<std::string> names_;  // in the order in which they were noted
  std::size_t told_ = 0, asked_ = 0;
};

}  // namespace tributary::client
