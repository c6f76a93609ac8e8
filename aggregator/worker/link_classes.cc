#include "aggregator/worker/link_classes.h"

#include <algorithm>
#include <functional>

#include "tributary/protocol/assert.h"

namespace tributary::aggregator {

LinkClasses::LinkClasses(std::uint32_t classes_max) : classes_(classes_max) {
  TRIBUTARY_ASSERT(classes_max > 0, "links without classes");
  for (std::uint32_t at = 0; at < classes_max; ++at) free_.push_back(at);
}

std::shared_ptr<LinkClasses::Place> LinkClasses::enter(const std::string& party, std::uint32_t weight) {
  TRIBUTARY_ASSERT(weight > 0, "party {} has the weight 0", party);
  const std::lock_guard lock(mutex_);
  const auto known = parties_.find(party);
  Party& entry = known != parties_.end() ? known->second : admit(party, weight);
  ++entry.places;
  entry.idle_since = TimePoint::max();
  if (Class& own = classes_[entry.at]; own.first == party && own.weight != weight) {
    own.weight = weight;
    changed_.insert(entry.at);
  }
  if (!changed_.empty()) changes_.notify_one();
  return std::make_shared<Place>(shared_from_this(), party, kLinkFirst + entry.at);
}

LinkClasses::Party& LinkClasses::admit(const std::string& party, std::uint32_t weight) {
  if (free_.empty()) {
    const auto left = std::ranges::find_if(parties_, [&](const auto& entry) {
      return entry.second.places == 0 && classes_[entry.second.at].parties == 1;
    });
    if (left != parties_.end()) forget(left);
  }
  Party& entry = parties_[party];
  if (free_.empty()) {
    entry.at = static_cast<std::uint32_t>(std::hash<std::string>{}(party) % classes_.size());
  } else {
    entry.at = free_.front();
    free_.pop_front();
    classes_[entry.at] = {.weight = weight, .first = party};
    changed_.insert(entry.at);
  }
  ++classes_[entry.at].parties;
  return entry;
}

void LinkClasses::leave(const std::string& party) {
  const std::lock_guard lock(mutex_);
  const auto entry = parties_.find(party);
  TRIBUTARY_ASSERT(entry != parties_.end() && entry->second.places > 0, "party {} leaves, and has no place", party);
  --entry->second.places;
}

void LinkClasses::forget(std::map<std::string, Party>::iterator party) {
  const std::uint32_t at = party->second.at;
  parties_.erase(party);
  if (--classes_[at].parties > 0) return;
  classes_[at] = {};
  free_.push_back(at);
  changed_.insert(at);
}

void LinkClasses::wait(const std::stop_token& stop, std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  (void)changes_.wait_for(lock, stop, limit, [this] { return !changed_.empty(); });
}

std::vector<LinkClasses::Change> LinkClasses::take_changes(TimePoint now) {
  const std::lock_guard lock(mutex_);
  for (auto party = parties_.begin(); party != parties_.end();) {
    const auto next = std::next(party);
    Party& entry = party->second;
    if (entry.places == 0) {
      entry.idle_since = std::min(entry.idle_since, now);
      if (now - entry.idle_since >= kClassKept) forget(party);
    }
    party = next;
  }
  std::vector<Change> changes;
  for (const std::uint32_t at : changed_) changes.push_back(change_at(at));
  changed_.clear();
  return changes;
}

LinkClasses::Change LinkClasses::change_at(std::uint32_t at) const {
  return {.handle = kLinkFirst + at, .weight = classes_[at].weight, .party = classes_[at].first};
}

std::vector<LinkClasses::Change> LinkClasses::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<Change> list;
  for (std::uint32_t at = 0; at < classes_.size(); ++at) {
    if (classes_[at].weight > 0) list.push_back(change_at(at));
  }
  return list;
}

LinkClassCounts LinkClasses::counts() const {
  const std::lock_guard lock(mutex_);
  LinkClassCounts counts;
  for (const Class& one : classes_) counts.classes += one.weight > 0 ? 1 : 0;
  counts.sharing = parties_.size() - std::min<std::size_t>(parties_.size(), counts.classes);
  return counts;
}

}  // namespace tributary::aggregator
