#pragma once
// Joins whose signature is still to be checked. A check costs some 0.1 ms of the front door's one thread, and whoever
// has no key can ask for it: so the addresses take turns, and among an address's own joins the oldest comes first. How
// many there are is bounded by the waiting room that they are all in.
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
  /// Nothing happens if it is not here.
  void remove(Id id);
  /// Takes out the next to be checked: of the source after the one before.
  [[nodiscard]] std::optional<Id> next();
  [[nodiscard]] bool empty() const noexcept { return sources_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return sources_.size(); }

 private:
  std::map<Source, std::set<Id>> waiting_;
  std::map<Id, Source> sources_;
  Source last_;
};

}  // namespace tributary::aggregator
