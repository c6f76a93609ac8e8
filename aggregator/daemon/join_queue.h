#pragma once
// The joins whose signature must still be checked. A check costs the front door's one thread about 0.1 ms, and any
// stranger can cause a check. So the addresses take turns, and among the joins of one address the oldest comes first.
// All these connections are in the waiting room, which bounds their number.
#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "tributary/protocol/waiting_room.h"

namespace tributary::aggregator {

class JoinQueue {
 public:
  using Id = WaitingRoom::Id;

  /// Ids ascend in the order of arrival.
  void add(Id id, Source from);
  /// Removes `id`, if it is in the queue.
  void remove(Id id);
  /// Removes and returns the next join to check: the oldest join of the source that follows the last join's source.
  [[nodiscard]] std::optional<Id> next();
  [[nodiscard]] bool empty() const noexcept { return sources_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return sources_.size(); }

 private:
  std::map<Source, std::set<Id>> waiting_;
  std::map<Id, Source> sources_;
  Source last_;
};

}  // namespace tributary::aggregator
