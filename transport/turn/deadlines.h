#pragma once
// Owners that wait for a time, in the order of the times. Each owner has at most one time, and few owners wait at the
// same time: a channel waits while it opens or ends, and for some ms after a write. The list allocates only while it
// grows. DeadlineHeap is for many deadlines that move with every acknowledgement.
#include <set>
#include <utility>
#include <vector>

#include "tributary/protocol/assert.h"
#include "tributary/transport/channel.h"

namespace tributary::transport::turn {

/// `At` is a member of the owner: the owner's time in this list; TimePoint::max(): none.
template <class Owner, auto At>
class Deadlines {
 public:
  /// Replaces the owner's time. Call clear() before you destroy the owner.
  void set(Owner& owner, TimePoint at) {
    clear(owner);
    if (at == TimePoint::max()) return;
    owner.*At = at;
    const bool inserted = insert({at, &owner});
    TRIBUTARY_ASSERT(inserted, "a deadline is set twice among {}", ordered_.size());
  }
  void clear(Owner& owner) noexcept {
    if (owner.*At == TimePoint::max()) return;
    auto node = ordered_.extract({owner.*At, &owner});
    TRIBUTARY_ASSERT(!node.empty(), "a deadline is not among the {} of its list", ordered_.size());
    spare_.push_back(std::move(node));
    owner.*At = TimePoint::max();
  }
  [[nodiscard]] bool empty() const noexcept { return ordered_.empty(); }
  /// The earliest time; TimePoint::max() if no owner waits.
  [[nodiscard]] TimePoint first() const noexcept { return empty() ? TimePoint::max() : ordered_.begin()->first; }
  /// Takes the next owner whose time has come, and clears its time; nullptr if there is none.
  [[nodiscard]] Owner* take_expired(TimePoint now) noexcept {
    if (empty() || first() > now) return nullptr;
    Owner* const owner = ordered_.begin()->second;
    TRIBUTARY_ASSERT(owner->*At == first(), "a deadline stands in its list at another time than its owner says");
    clear(*owner);
    return owner;
  }

 private:
  using Entry = std::pair<TimePoint, Owner*>;
  using Ordered = std::set<Entry>;
  bool insert(const Entry& entry) {
    if (spare_.empty()) return ordered_.insert(entry).second;
    auto node = std::move(spare_.back());
    spare_.pop_back();
    node.value() = entry;
    return ordered_.insert(std::move(node)).inserted;
  }

  Ordered ordered_;
  std::vector<typename Ordered::node_type> spare_;  // nodes of entries that were removed, for use again
};

}  // namespace tributary::transport::turn
