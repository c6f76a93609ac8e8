#include "tree-manager/service/allotments.h"

#include <algorithm>

#include "tributary/protocol/assert.h"

namespace tributary::manager {

void Allotments::add(const Fabric& fabric, const GroupRecord& group) {
  ++changes_;
  fabric.add(load_, group.lanes, group.hosts);
  each_reservation(group, [&](const Incarnation& aggregator, std::uint64_t bytes) { reserve(aggregator, bytes); });
  if (!group.lanes.empty()) uses_[group.owner] += use_of(group);
}

void Allotments::remove(const Fabric& fabric, const GroupRecord& group) {
  ++changes_;
  fabric.remove(load_, group.lanes, group.hosts);
  each_reservation(group, [&](const Incarnation& aggregator, std::uint64_t bytes) { release(aggregator, bytes); });
  if (group.lanes.empty()) return;
  const auto use = uses_.find(group.owner);
  TRIBUTARY_ASSERT(use != uses_.end(), "group {} gives back trees that were not counted for its tenant", group.id);
  use->second -= use_of(group);
  if (use->second == TenantUse{}) uses_.erase(use);
}

TenantUse Allotments::used_by(const std::string& tenant) const {
  const auto found = uses_.find(tenant);
  return found == uses_.end() ? TenantUse{} : found->second;
}

void Allotments::forget_groups() {
  load_ = {};
  uses_.clear();
  ++changes_;
  roster_.forget();
  memory_.clear();
  for (const Lingering& it : lingering_) {
    for (const auto& [aggregator, bytes] : it.memory) memory_[aggregator] += bytes;
  }
}

void Allotments::linger(const GroupRecord& group, Clock::TimePoint until) {
  Lingering lingering{.group = group.id, .until = until, .memory = {}};
  each_reservation(group, [&](const Incarnation& aggregator, std::uint64_t bytes) {
    reserve(aggregator, bytes);
    lingering.memory.emplace_back(aggregator, bytes);
  });
  lingering_.push_back(std::move(lingering));
}

void Allotments::end_lingering(std::uint64_t group) {
  std::erase_if(lingering_, [&](const Lingering& it) {
    if (it.group == group) release(it);
    return it.group == group;
  });
}

void Allotments::excuse(Clock::TimePoint::duration absence) {
  for (Lingering& it : lingering_) it.until += absence;
}

bool Allotments::expire(Clock::TimePoint now) {
  return std::erase_if(lingering_, [&](const Lingering& it) {
           if (it.until <= now) release(it);
           return it.until <= now;
         }) != 0;
}

std::uint64_t Allotments::memory_bytes(const std::string& aggregator, std::uint64_t incarnation) const {
  const auto found = memory_.find({aggregator, incarnation});
  return found == memory_.end() ? 0 : found->second;
}

std::uint64_t Allotments::memory_free(const AggregatorRecord& record) const {
  return record.memory_bytes - std::min(memory_bytes(record.name, record.incarnation), record.memory_bytes);
}

void Allotments::release(const Lingering& lingering) {
  for (const auto& [aggregator, bytes] : lingering.memory) release(aggregator, bytes);
}

void Allotments::reserve(const Incarnation& aggregator, std::uint64_t bytes) {
  std::uint64_t& promised = memory_[aggregator];
  promised += bytes;
  roster_.set_promised(aggregator.first, aggregator.second, promised);
}

void Allotments::release(const Incarnation& aggregator, std::uint64_t bytes) {
  const auto found = memory_.find(aggregator);
  if (found == memory_.end()) return;
  found->second -= std::min(found->second, bytes);
  roster_.set_promised(aggregator.first, aggregator.second, found->second);
  if (found->second == 0) memory_.erase(found);
}

}  // namespace tributary::manager
