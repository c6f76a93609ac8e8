// Decides which trees a group gets: the plan, quotas, reservations, and groups of lower classes that make room.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "tree-manager/planner/one_aggregator.h"
#include "tree-manager/service/cluster.h"
#include "tree-manager/service/displacement.h"
#include "tree-manager/service/form_buffers.h"
#include "tree-manager/service/group_trees.h"

namespace tributary::manager {
namespace {

constexpr const char* kNoKey = "not told of the manager's new signing key yet";
constexpr int kRoomIsKept = 4;  // leases for which the memory of groups that leave is kept for one of a higher class

/// Returns the roster's numbers of the aggregators that other holders have reserved.
std::vector<std::uint32_t> reserved_from(const GroupRecord& group, const TenantRules& rules, const Roster& roster,
                                         std::int64_t now_s) {
  std::vector<std::uint32_t> numbers;
  for (const auto& [name, it] : rules.reservations()) {
    if (!it.runs(now_s) || it.holds(group)) continue;
    for (const std::string& one : it.aggregators) {
      if (const auto number = roster.number_of(one)) numbers.push_back(*number);
    }
  }
  std::ranges::sort(numbers);
  return numbers;
}

/// Returns the least security with which the group could use more aggregators; nullopt: it has enough for all.
std::optional<PacketSecurity> security_that_helps(const GroupRecord& group, const Roster& roster) {
  std::optional<PacketSecurity> least;
  for (const PlanAggregator& it : roster.list()) {
    if (it.security > group.packet_security && it.unusable.empty())
      least = std::min(least.value_or(it.security), it.security);
  }
  return least;
}

/// Gives the group the plan's trees.
void take_plan(GroupRecord& group, Plan plan) {
  group.reason = std::move(plan.reason);
  group.lanes = std::move(plan.lanes);
  group.window = plan.window;
  group.rates = plan.rates;
  group.code.clear();
}

void deny(GroupRecord& group, const Refusal& refusal) {
  group.lanes.clear();
  group.rates = {};
  group.reason = refusal.reason;
  group.code = refusal.code;
}

}  // namespace

const Roster& Cluster::fresh_roster() {
  Roster& roster = allotments_.roster();
  const std::uint64_t key = signing_.now()->number;
  if (std::exchange(roster_key_, key) == key && roster.known()) return roster;
  std::vector<PlanAggregator> list;
  std::vector<std::uint64_t> memory;
  for (const auto& [name, aggregator] : aggregators_) {
    const AggregatorRecord& record = aggregator.record;
    memory.push_back(record.memory_bytes);
    list.push_back({.name = name,
                    .incarnation = record.incarnation,
                    .host = place_of(site_of(record), record),
                    .data = record.data,
                    .memory_free_bytes = allotments_.memory_free(record),
                    .children_max = record.children_max,
                    .line_rate_bits_per_second = rate_of(site_of(record), record),
                    .unusable = aggregator.key_told == key ? why_unusable(record, suspicions_) : kNoKey,
                    .data_changes = record.data_changes,
                    .security = record.security});
  }
  roster.set(std::move(list), std::move(memory), *fabric_);
  return roster;
}

void Cluster::admit(GroupRecord& group, const std::string& only) {
  const TenantRule& rule = rules_.of(group.owner);
  const TenantUse& quota = rule.quota;
  const TenantUse used = allotments_.used_by(group.owner);
  const auto check_quota = [&](const TenantUse& more) { return over_quota(group.owner, quota, used, more); };
  Refusal refusal =
      too_little_security(group.owner, std::max(settings_.security, rule.security), group.packet_security);
  if (refusal.code.empty()) refusal = check_quota({.groups = 1, .lanes = 1});  // before the plan, which takes long
  const std::uint32_t by_rate = flight_of(*fabric_, group.hosts, group.link_rate).segment_bytes;
  if (refusal.code.empty()) {
    fit_buffers(group, by_rate, [&](const GroupRecord& it) { return plan_for(it, only); });
    take_plan(group, plan_for(group, only));
    if (group.lanes.empty() && group.priority > Priority::low && only.empty()) refusal = make_room(group);
    if (refusal.code.empty()) refusal = check_quota(use_of(group));
  }
  if (refusal.code == kCodeQuotaMemory && group.form_senders != FormSenders::nobody && group.segment_bytes > by_rate) {
    group.segment_bytes = by_rate;  // shorter buffers are slower than others, and quicker than no trees
    take_plan(group, plan_for(group, only));
    refusal = check_quota(use_of(group));
  }
  if (refusal.code == kCodeQuotaLanes && used.lanes < quota.lanes) {  // as many lanes as are left
    const auto left = static_cast<std::uint32_t>(quota.lanes - used.lanes);
    const std::uint32_t wanted = std::exchange(group.lanes_wanted, left);
    take_plan(group, plan_for(group, only));
    group.lanes_wanted = wanted;
    refusal = check_quota(use_of(group));
    if (!group.lanes.empty()) group.reason = "the tenant's quota leaves " + std::to_string(left) + " lanes";
  }
  if (!refusal.code.empty()) deny(group, refusal);
  if (!group.lanes.empty()) return;
  if (!group.code.empty()) return;
  if (const auto enough = security_that_helps(group, fresh_roster())) {
    group.code = kCodeSecurity;
    group.reason += "; " + how_to_get(*enough);
    return;
  }
  const bool others = !reserved_from(group, rules_, allotments_.roster(), clock_.unix_seconds()).empty();
  group.code = others ? kCodeReserved : kCodeNoTree;
}

Refusal Cluster::make_room(const GroupRecord& group) {
  std::vector<std::shared_ptr<const GroupRecord>> lower;
  for (const auto& [id, other] : groups_) {
    const bool for_others = other.displaced_by != group.id && groups_.contains(other.displaced_by);
    if (!other.record->lanes.empty() && other.record->priority < group.priority && !for_others)
      lower.push_back(other.record);
  }
  Displacement room = displace(allotments_, *fabric_, group, std::move(lower), [&] { return plan_for(group); });
  if (room.groups.empty()) return {};
  GroupRecord planned = group;
  take_plan(planned, std::move(room.plan));
  Refusal refusal =
      over_quota(group.owner, rules_.of(group.owner).quota, allotments_.used_by(group.owner), use_of(planned));
  if (!refusal.code.empty()) return refusal;
  for (const std::uint64_t id : room.groups) {
    if (std::exchange(groups_.at(id).displaced_by, group.id) != group.id) ++stats_.displaced;
  }
  allotments_.linger(planned, clock_.now() + kRoomIsKept * settings_.group_lease);
  spdlog::info("group {} of class {}: {} groups of lower classes leave their trees", group.id,
               to_string(group.priority), room.groups.size());
  return {.code = kCodeWaiting,
          .reason = "no tree yet: " + std::to_string(room.groups.size()) +
                    " groups of lower classes leave their trees for this group"};
}

/// Returns the roster's numbers of the aggregators that this group saw fail.
std::vector<std::uint32_t> Cluster::avoided_by(const GroupRecord& group) const {
  std::vector<std::uint32_t> numbers;
  for (const FailedAggregator& failed : group.failed) {
    const auto known = aggregators_.find(failed.name);
    if (known == aggregators_.end() ||
        !avoids(group, known->second.record, clock_.unix_seconds() - settings_.failed_exclusion.count()))
      continue;
    const AggregatorRecord& record = known->second.record;
    const auto number = allotments_.roster().number_of(record.name);
    if (number && !record.expired && !record.draining) numbers.push_back(*number);
  }
  return numbers;
}

Plan Cluster::plan_for(const GroupRecord& group, const std::string& only) {
  const auto start = std::chrono::steady_clock::now();
  const Roster& roster = fresh_roster();
  const auto avoided = avoided_by(group);
  const auto reserved = reserved_from(group, rules_, roster, clock_.unix_seconds());
  const std::uint32_t window = group.window_wanted != 0 ? group.window_wanted : settings_.window;
  const PlanRequest request{.hosts = group.hosts,
                            .aggregators = roster.list(),
                            .lanes = group.lanes_wanted,
                            .lane_weights = group.lane_weights,
                            .rail = group.rail,
                            .window = window != 0 ? window : flight_of(*fabric_, group.hosts, group.link_rate).window,
                            .window_is_for_all = window == 0,
                            .segment_bytes = group.segment_bytes,
                            .levels = group.levels_wanted,
                            .link_rate_bits_per_second = group.link_rate,
                            .avoided = avoided,
                            .reserved = reserved,
                            .security = group.packet_security,
                            .index = roster.index()};
  const auto number = only.empty() ? std::nullopt : roster.number_of(only);
  Plan plan = number ? plan_over(roster.list()[*number], request) : fabric_->plan(request, allotments_.load());
  stats_.plan_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ++(plan.lanes.empty() ? stats_.plans_failed : stats_.plans_made);
  return plan;
}

}  // namespace tributary::manager
