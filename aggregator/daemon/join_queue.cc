#include "aggregator/daemon/join_queue.h"

namespace tributary::aggregator {

void JoinQueue::add(Id id, Source from) {
  if (sources_.emplace(id, from).second) waiting_[from].insert(id);
}

void JoinQueue::remove(Id id) {
  const auto source = sources_.find(id);
  if (source == sources_.end()) return;
  const auto theirs = waiting_.find(source->second);
  theirs->second.erase(id);
  if (theirs->second.empty()) waiting_.erase(theirs);
  sources_.erase(source);
}

std::optional<JoinQueue::Id> JoinQueue::next() {
  if (waiting_.empty()) return std::nullopt;
  auto theirs = waiting_.upper_bound(last_);
  if (theirs == waiting_.end()) theirs = waiting_.begin();
  last_ = theirs->first;
  const Id id = *theirs->second.begin();
  remove(id);
  return id;
}

}  // namespace tributary::aggregator
