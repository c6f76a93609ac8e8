#pragma once
// Who waits for a time, in the order of the times. One for each Pollable, and few at once: a channel has one only while
// it opens or ends.
#include <set>
#include <utility>

#include "socket/pollable.h"

namespace tributary::transport {

class Deadlines {
 public:
  /// Instead of the one before. `what` must be cleared before it goes away.
  void set(Pollable& what, TimePoint at) {
    clear(what);
    if (at == TimePoint::max()) return;
    what.deadline_ = at;
    ordered_.emplace(at, &what);
  }
  void clear(Pollable& what) noexcept {
    if (what.deadline_ == TimePoint::max()) return;
    ordered_.erase({what.deadline_, &what});
    what.deadline_ = TimePoint::max();
  }
  [[nodiscard]] bool empty() const noexcept { return ordered_.empty(); }
  /// TimePoint::max() for none.
  [[nodiscard]] TimePoint first() const noexcept { return empty() ? TimePoint::max() : ordered_.begin()->first; }
  /// The next one whose time has come, which has none from then on; nullptr.
  [[nodiscard]] Pollable* take_expired(TimePoint now) noexcept {
    if (first() > now || empty()) return nullptr;
    Pollable* what = ordered_.begin()->second;
    clear(*what);
    return what;
  }

 private:
  std::set<std::pair<TimePoint, Pollable*>> ordered_;
};

}  // namespace tributary::transport
