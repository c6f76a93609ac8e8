#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "tree-manager/service/cluster.h"
#include "tree-manager/service/credentials.h"
#include "tree-manager/service/ended_groups.h"
#include "tree-manager/service/form_buffers.h"
#include "tree-manager/service/group_trees.h"
#include "tree-manager/service/late_ranks.h"
#include "tree-manager/topology/name_range.h"
#include "tributary/protocol/reason.h"

namespace tributary::manager {
namespace {

constexpr const char* kNoJob = "unnamed";  // job of groups whose request names no job
constexpr std::size_t kFailedMax = 4096;   // most names that a group remembers, and that a request may have
constexpr std::uint64_t kIdsPerMillisecond = 1024;
// The greatest number of a group: JavaScript, and so the web page and jq, cannot hold numbers above 2^53 exactly.
constexpr std::uint64_t kGroupIdMax = (1ULL << 53) - 1;

Status check_label(const std::string& what, const std::string& label) {
  if (label.size() > kNameBytesMax) return fail(Errc::bad_argument, what + " is longer than 63 bytes");
  for (const char c : label) {
    if (static_cast<unsigned char>(c) < ' ' || c == 127)
      return fail(Errc::bad_argument, what + " holds a control character");
  }
  return {};
}

/// Returns the rates of the group's trees beside all other groups.
PathRates present_rates(const Fabric& fabric, const FabricLoad& load, const GroupRecord& group,
                        const std::function<std::uint64_t(const std::string&)>& line_rate_of) {
  if (group.rates == PathRates{}) return {};
  return fabric.rates({.lanes = group.lanes,
                       .hosts = group.hosts,
                       .rail = group.rail,
                       .link_rate_bits_per_second = group.link_rate,
                       .line_rate_of = line_rate_of},
                      load);
}

using FindAggregator = std::function<const AggregatorRecord*(const std::string&)>;

/// Returns the name of an aggregator for which the planner would now choose another address, because a better address
/// lives again or the address in the trees is down.
std::string why_other_addresses(const GroupRecord& record, const Fabric& fabric, const FindAggregator& find) {
  for (const LaneTree& lane : record.lanes) {
    for (const TreeNode& node : lane.nodes) {
      const AggregatorRecord* const known = find(node.aggregator);
      if (known == nullptr || known->incarnation != node.incarnation) continue;
      const std::uint32_t number = fabric.address_number(node.host, lane.route);
      const Endpoint* const now = address_for_lane(known->data, number);
      if (now != nullptr && *now != node.data) return "aggregator " + node.aggregator + " can be reached otherwise";
    }
  }
  return "";
}

/// `configured`: the segment's size in the settings; 0: by the links' rate.
GroupRecord record_of(const GroupSpec& spec, std::uint32_t configured, const Fabric& fabric, std::int64_t now_s) {
  const bool chosen = spec.segment_bytes != 0 || configured != 0;
  const std::uint32_t by_rate =
      configured != 0 ? configured : flight_of(fabric, spec.hosts, spec.link_rate_bits_per_second).segment_bytes;
  return {.id = 0,
          .job = spec.job.empty() ? kNoJob : spec.job,
          .hosts = spec.hosts,
          .lanes_wanted = spec.lanes,
          .window_wanted = spec.window,
          .window = 0,
          .segment_bytes = spec.segment_bytes != 0 ? spec.segment_bytes : by_rate,
          .levels_wanted = spec.levels,
          .epoch = 0,
          .lanes = {},
          .reason = {},
          .failed = {},
          .created_at = now_s,
          .packet_security = spec.packet_security,
          .exchange_key = spec.exchange_key,
          .request_id = spec.request_id,
          .user = spec.user,
          .processes = spec.processes,
          .link_rate = spec.link_rate_bits_per_second,
          .lane_weights = spec.lane_weights,
          .form_senders = chosen ? FormSenders::nobody : spec.form_senders,
          .rail = spec.rail,
          .owner = spec.owner,
          .priority = spec.priority};
}

/// Returns the running, exclusive reservation of another holder that has an aggregator of the group's trees, or
/// nullptr.
const Reservation* takes_trees(const GroupRecord& group, const TenantRules& rules, std::int64_t now_s) {
  for (const auto& [name, it] : rules.reservations()) {
    if (!it.exclusive || !it.runs(now_s) || it.holds(group)) continue;
    if (uses(group, [&](const TreeNode& node) { return it.has(node.aggregator); })) return &it;
  }
  return nullptr;
}

Status check_failed(const std::vector<std::string>& failed) {
  if (failed.size() > kFailedMax) return fail(Errc::bad_argument, "failed has more than 4096 names");
  for (const std::string& name : failed) {
    if (auto ok = check_name(name); !ok) return fail(Errc::bad_argument, "failed: " + ok.error().message);
  }
  return {};
}

}  // namespace

std::string request_name(const std::string& owner, const std::string& request_id) {
  return owner + ' ' + request_id;
}

std::string epoch_text(std::uint64_t id, std::uint32_t epoch) {
  return "group " + std::to_string(id) + " is at epoch " + std::to_string(epoch);
}

std::unexpected<Error> no_group(std::uint64_t id) {
  return fail(Errc::peer_gone, "no group has the number " + std::to_string(id) +
                                   ": its lease has ended, or it was deleted; ask for a new group");
}

Status Cluster::check(const GroupSpec& spec) const {
  const auto bad = [](std::string why) -> Status { return fail(Errc::bad_argument, std::move(why)); };
  if (auto ok = check_label("job", spec.job); !ok) return ok;
  if (auto ok = check_label("user", spec.user); !ok) return ok;
  if (spec.hosts.empty() || spec.hosts.size() > settings_.ranks_max) {
    return bad("ranks has " + std::to_string(spec.hosts.size()) + " members, not 1 to " +
               std::to_string(settings_.ranks_max));
  }
  for (std::size_t rank = 0; rank < spec.hosts.size(); ++rank) {
    if (auto ok = check_name(spec.hosts[rank]); !ok)
      return bad("ranks[" + std::to_string(rank) + "]: " + ok.error().message);
  }
  if (!spec.rail.empty()) {
    if (auto ok = check_name(spec.rail); !ok) return bad("rail: " + ok.error().message);
  }
  if (!spec.request_id.empty()) {
    if (auto ok = check_name(spec.request_id); !ok) return bad("request_id: " + ok.error().message);
  }
  if (spec.lanes > kLanesMax)
    return bad("lanes is " + std::to_string(spec.lanes) + ", not 0 to " + std::to_string(kLanesMax));
  if (spec.window > kWindowMax)
    return bad("window is " + std::to_string(spec.window) + ", not 1 to " + std::to_string(kWindowMax));
  const std::uint32_t segment = spec.segment_bytes;
  if (segment != 0 && (segment < kSegmentBytesMin || segment > kSegmentBytesMax || segment % 64 != 0)) {
    return bad("segment_bytes is " + std::to_string(segment) + ", not a multiple of 64 from " +
               std::to_string(kSegmentBytesMin) + " to " + std::to_string(kSegmentBytesMax));
  }
  const bool in_clear = spec.packet_security == PacketSecurity::off;
  if (auto ok = check_exchange_key(signing_.now()->exchange, spec.exchange_key, in_clear); !ok) return ok;
  if (spec.levels > kTreeLevelsMax)
    return bad("levels is " + std::to_string(spec.levels) + ", not 1 to " + std::to_string(kTreeLevelsMax));
  if (!spec.aggregator.empty() && !aggregators_.contains(spec.aggregator))
    return bad("no aggregator has the name '" + spec.aggregator + "'");
  return {};
}

Result<PlanView> Cluster::plan(const GroupSpec& spec) {
  const auto right = lock_.begin_change();
  if (!right) return std::unexpected(right.error());
  if (auto ok = check(spec); !ok) return std::unexpected(ok.error());
  GroupRecord record = record_of(spec, settings_.segment_bytes, *fabric_, clock_.unix_seconds());
  fit_buffers(record, record.segment_bytes, [&](const GroupRecord& it) { return plan_for(it, spec.aggregator); });
  record.packet_security = PacketSecurity::encrypt;  // a plan says what is possible, and no group uses it
  return PlanView{.plan = plan_for(record, spec.aggregator), .segment_bytes = record.segment_bytes};
}

/// Returns the group that an earlier request with the same request_id made, or nullptr. So a caller that has lost the
/// first answer reserves no memory twice.
Result<std::shared_ptr<const GroupRecord>> Cluster::granted_before(const GroupSpec& spec) {
  const auto found =
      spec.request_id.empty() ? requests_.end() : requests_.find(request_name(spec.owner, spec.request_id));
  if (found == requests_.end()) return nullptr;
  Group& group = groups_.at(found->second);
  const GroupRecord& made = *group.record;
  const bool other_job = made.job != (spec.job.empty() ? kNoJob : spec.job);
  if (other_job || made.hosts != spec.hosts || made.exchange_key != spec.exchange_key) {
    return fail(Errc::mismatch, "request_id '" + spec.request_id + "' was used for another group; make a new one");
  }
  group.lease_end = clock_.now() + settings_.group_lease;
  return group.record;
}

Result<GroupGrant> Cluster::create_group(const GroupSpec& spec) {
  std::shared_ptr<const GroupRecord> made;
  {
    const auto right = lock_.begin_change();
    if (!right) return std::unexpected(right.error());
    look();
    if (auto ok = check(spec); !ok) return std::unexpected(ok.error());
    const auto before = granted_before(spec);
    if (!before) return std::unexpected(before.error());
    if (*before != nullptr) {
      made = *before;
    } else {
      auto created = create(spec);
      if (!created) return std::unexpected(created.error());
      made = std::move(*created);
    }
  }
  return grant(made);
}

Result<std::shared_ptr<const GroupRecord>> Cluster::create(const GroupSpec& spec) {
  if (groups_.size() >= settings_.groups_max) {
    return fail(Errc::retry, Reason::too_many_groups,
                "the manager has " + std::to_string(groups_.size()) + " groups already, its limit");
  }
  GroupRecord record = record_of(spec, settings_.segment_bytes, *fabric_, clock_.unix_seconds());
  const auto number = numbers_.groups.next(static_cast<std::uint64_t>(clock_.unix_milliseconds()) * kIdsPerMillisecond);
  if (!number) return std::unexpected(number.error());
  record.id = *number;
  if (record.id > kGroupIdMax) return fail(Errc::io, "the manager's clock is wrong: it shows a year after 2200");
  record.priority = std::min(record.priority, rules_.of(record.owner).priority_max);
  admit(record, spec.aggregator);
  if (record.lanes.empty()) stats_.count_denied(record.code);
  record.epoch = record.lanes.empty() ? 0 : 1;
  if (auto ok = save([&] { return store_.put(record); }); !ok) return std::unexpected(ok.error());
  auto made = std::make_shared<const GroupRecord>(std::move(record));
  allotments_.add(*fabric_, *made);
  if (!made->request_id.empty()) requests_[request_name(made->owner, made->request_id)] = made->id;
  groups_[made->id] = {
      .record = made, .lease_end = clock_.now() + settings_.group_lease, .planned_at_generation = generation_};
  ++stats_.groups_created;
  settings_.events->made(clock_.unix_milliseconds(), *made);
  spdlog::info("group {} of job {}: {} ranks, {} lanes{}{}", made->id, made->job, made->hosts.size(),
               made->lanes.size(), made->reason.empty() ? "" : "; ", coded(made->code, made->reason));
  return made;
}

Result<Cluster::Group*> Cluster::find_group(std::uint64_t id) {
  const auto found = groups_.find(id);
  if (found == groups_.end()) return no_group(id);
  return &found->second;
}

/// Remembers the incarnations that failed, with the addresses that they had in the caller's trees. A name that was
/// reported before and is in none of these trees does not count: its aggregator may have registered again.
void Cluster::note_failed(GroupRecord& group, const std::vector<std::string>& failed) {
  for (const std::string& name : failed) {
    auto found = failed_in(group, name, clock_.unix_seconds());
    if (found) suspect(*found, group.id);
    const bool named_before = std::any_of(group.failed.begin(), group.failed.end(),
                                          [&](const FailedAggregator& it) { return it.name == name; });
    const auto known = aggregators_.find(name);
    if (!found && !named_before && known != aggregators_.end()) {
      const AggregatorRecord& record = known->second.record;
      found = {name, record.incarnation, clock_.unix_seconds(), record.data_changes};
    }
    if (!found) continue;
    std::erase_if(group.failed, [&](const FailedAggregator& it) { return it.name == name; });
    group.failed.push_back(std::move(*found));
  }
  if (group.failed.size() > kFailedMax) {
    group.failed.erase(group.failed.begin(), group.failed.end() - static_cast<std::ptrdiff_t>(kFailedMax));
  }
}

/// Treats an aggregator as dead in the plans of all groups. A group can cause this only for aggregators of its own
/// trees, and only if they have not changed after the trees were planned.
void Cluster::suspect(const FailedAggregator& failed, std::uint64_t group) {
  const auto known = aggregators_.find(failed.name);
  if (known == aggregators_.end() || known->second.record.expired || !is_same(failed, known->second.record)) return;
  if (!suspicions_.report(failed.name, {.group = group, .since = failed.since}, clock_.now())) return;
  allotments_.roster().forget();
  ++stats_.suspicions;
  settings_.events->about(clock_.unix_milliseconds(), EventKind::aggregator_suspected, failed.name,
                          "a group saw it fail: no tree uses it until it renews its lease");
  spdlog::warn("group {} saw aggregator {} fail: no tree uses it until it renews its lease", group, failed.name);
}

Result<GroupGrant> Cluster::rebuild_group(std::uint64_t id, std::uint32_t epoch, const std::vector<std::string>& failed,
                                          bool in_use) {
  if (auto ok = check_failed(failed); !ok) return std::unexpected(ok.error());
  std::shared_ptr<const GroupRecord> result;
  {
    const auto right = lock_.begin_change();
    if (!right) return std::unexpected(right.error());
    look();
    const auto found = find_group(id);
    if (!found) return std::unexpected(found.error());
    Group& group = **found;
    const GroupRecord& now = *group.record;
    const bool repeated = epoch != UINT32_MAX && now.epoch == epoch + 1 && !now.lanes.empty();
    if (!repeated && (now.epoch != epoch || epoch == UINT32_MAX)) {
      return fail(Errc::mismatch, epoch_text(id, now.epoch) + "; a rebuild from epoch " + std::to_string(epoch) +
                                      " is out of date; ask for a new group if you do not know the epoch");
    }
    if (repeated && !planned_before_report(now, failed)) {
      result = group.record;
    } else {
      auto rebuilt = rebuild(group, failed, in_use);
      if (!rebuilt) return std::unexpected(rebuilt.error());
      result = std::move(*rebuilt);
    }
    group.lease_end = clock_.now() + settings_.group_lease;
  }
  return grant(result);
}

Result<std::shared_ptr<const GroupRecord>> Cluster::rebuild(Group& group, const std::vector<std::string>& failed,
                                                            bool in_use) {
  const std::shared_ptr<const GroupRecord> before = group.record;
  // Without better trees the group keeps its present trees.
  const bool optional = in_use && failed.empty() && !before->lanes.empty();
  GroupRecord next = *before;
  note_failed(next, failed);

  // New trees may use the memory of the group's present trees, unless the group still uses the present trees until it
  // has moved.
  allotments_.remove(*fabric_, *before);
  if (optional) allotments_.linger(*before, clock_.now() + settings_.group_lease);
  if (before->lanes.empty()) allotments_.end_lingering(before->id);  // the place that groups of lower classes made
  admit(next);
  const bool built = !next.lanes.empty();
  const auto put_back = [&] {
    allotments_.add(*fabric_, *before);
    if (optional) allotments_.end_lingering(before->id);
  };

  if (built) {
    ++next.epoch;
    next.before = used_by(*before);
    // A failed aggregator that has changed after the failure may be used again.
    std::erase_if(next.failed, [&](const FailedAggregator& it) {
      const auto known = aggregators_.find(it.name);
      return known != aggregators_.end() && !is_same(it, known->second.record);
    });
  }
  group.planned_at_generation = generation_;
  if (!groups_.contains(group.displaced_by) || built) group.displaced_by = 0;
  if (group.displaced_by != 0) {
    next.code = kCodePreempted;
    next.reason =
        "the trees went to group " + std::to_string(group.displaced_by) + " of a higher class; " + next.reason;
  }
  if (!built) stats_.count_denied(next.code);
  if (optional && !built) {
    put_back();
    // This record is only for the answer; the group does not change.
    return std::make_shared<const GroupRecord>(std::move(next));
  }
  if (next != *before) {
    if (auto ok = save([&] { return store_.put(next); }); !ok) {
      put_back();
      return std::unexpected(ok.error());
    }
  }
  group.record = std::make_shared<const GroupRecord>(std::move(next));
  allotments_.add(*fabric_, *group.record);
  // Groups that were asked to leave for this one may stay.
  if (built) {
    for (auto& [id, other] : groups_) {
      if (other.displaced_by == group.record->id && !other.record->lanes.empty()) other.displaced_by = 0;
    }
  }
  ++stats_.rebuilds;
  settings_.events->rebuilt(clock_.unix_milliseconds(), *before, *group.record, failed);
  if (!built && !before->lanes.empty()) ++generation_;  // memory became free
  spdlog::info("group {} rebuilt at epoch {}: {} lanes{}{}", before->id, group.record->epoch,
               group.record->lanes.size(), group.record->reason.empty() ? "" : "; ",
               coded(group.record->code, group.record->reason));
  return group.record;
}

Cluster::Advice Cluster::advice_for(const Group& group) const {
  const GroupRecord& record = *group.record;
  if (record.lanes.empty()) {
    const bool changed = group.planned_at_generation != generation_ && record.hosts.size() > 1;
    if (!changed) return {};
    return {.code = Reason::capacity_changed,
            .why = "aggregators or capacity have changed since no tree could be built"};
  }
  if (const auto above = groups_.find(group.displaced_by); above != groups_.end()) {
    return {.code = Reason::preempted,
            .why = "group " + std::to_string(above->first) + " of class " +
                   std::string(to_string(above->second.record->priority)) + " needs the place of these trees",
            .leave = true};
  }
  if (const Reservation* const reserved = takes_trees(record, rules_, clock_.unix_seconds()))
    return {.code = Reason::reservation_began,
            .why = "reservation '" + reserved->name + "' has begun, and has aggregators of these trees",
            .leave = true};
  std::string draining;
  (void)uses(record, [&](const TreeNode& node) {
    const auto known = aggregators_.find(node.aggregator);
    if (known != aggregators_.end() && known->second.record.draining) draining = node.aggregator;
    return !draining.empty();
  });
  if (!draining.empty()) return {.code = Reason::draining, .why = "aggregator " + draining + " is draining"};
  const std::int64_t since_min = clock_.unix_seconds() - settings_.failed_exclusion.count();
  for (const FailedAggregator& it : record.failed) {
    const auto known = aggregators_.find(it.name);
    if (known == aggregators_.end() || is_same(it, known->second.record)) continue;
    const AggregatorRecord& now = known->second.record;
    if (why_unusable(now, suspicions_).empty() && !avoids(record, now, since_min))
      return {.code = Reason::aggregator_back, .why = "aggregator " + it.name + " is back"};
  }
  if (group.planned_at_generation == generation_) return {};
  std::string why = why_other_addresses(record, *fabric_, [this](const std::string& name) {
    const auto known = aggregators_.find(name);
    return known == aggregators_.end() ? nullptr : &known->second.record;
  });
  if (why.empty()) return {};
  return {.code = Reason::other_address, .why = std::move(why)};
}

Result<GroupLeaseView> Cluster::renew_group(std::uint64_t id, std::optional<GroupTraffic> traffic) {
  const auto right = lock_.begin_change();
  if (!right) return std::unexpected(right.error());
  look();
  const auto found = find_group(id);
  if (!found) return std::unexpected(found.error());
  if (traffic) (*found)->traffic = traffic;
  return renewed(**found);
}

GroupLeaseView Cluster::renewed(Group& group) {
  group.lease_end = clock_.now() + settings_.group_lease;
  Advice advice = advice_for(group);
  const bool advised = !advice.why.empty();
  if (std::exchange(group.advised, advice.code) != advice.code) stats_.reasons.add(advice.code);
  // The rates of a group of many ranks take long to compute, so they are kept until another group begins or ends.
  if (std::exchange(group.rates_at_change, allotments_.changes()) != allotments_.changes()) {
    group.rates = present_rates(*fabric_, allotments_.load(), *group.record, [this](const std::string& name) {
      const auto known = aggregators_.find(name);
      return known == aggregators_.end() ? 0 : rate_of(site_of(known->second.record), known->second.record);
    });
  }
  return GroupLeaseView{.lease_seconds = static_cast<std::uint32_t>(settings_.group_lease.count()),
                        .epoch = group.record->epoch,
                        .rebuild_advised = advised,
                        .reason = std::move(advice.why),
                        .code = std::string(code_of(advice.code)),
                        .leave = advice.leave,
                        .rates = group.rates,
                        .late = group.late(clock_, aggregators_)};
}

void Cluster::drop_group(std::uint64_t id) {
  const auto found = groups_.find(id);
  allotments_.remove(*fabric_, *found->second.record);
  allotments_.end_lingering(id);
  requests_.erase(request_name(found->second.record->owner, found->second.record->request_id));
  groups_.erase(found);
  ++generation_;
}

Status Cluster::remove_group(std::uint64_t id, const std::vector<std::string>& failed) {
  if (auto ok = check_failed(failed); !ok) return ok;
  const auto right = lock_.begin_change();
  if (!right) return std::unexpected(right.error());
  const auto found = find_group(id);
  if (!found) {
    const auto ended = has_ended(lock_, store_, id);
    return ended && *ended ? Status{} : std::unexpected(found.error());
  }
  for (const std::string& name : failed) {
    if (const auto seen = failed_in(*(*found)->record, name, clock_.unix_seconds())) suspect(*seen, id);
  }
  const std::int64_t remembered_until = clock_.unix_seconds() + settings_.record_life.count();
  if (auto ok = save([&] { return store_.end_group(id, remembered_until); }); !ok) return ok;
  settings_.events->ended(clock_.unix_milliseconds(), *(*found)->record, "was given back");
  drop_group(id);
  spdlog::info("group {} deleted", id);
  return {};
}

GroupView Cluster::Group::view(const Clock& clock, const std::map<std::string, Aggregator>& aggregators) const {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(lease_end - clock.now());
  return {.record = record,
          .lease_milliseconds_left = std::max<std::int64_t>(0, left.count()),
          .age_seconds = std::max<std::int64_t>(0, clock.unix_seconds() - record->created_at),
          .traffic = traffic,
          .late = late(clock, aggregators)};
}

std::vector<LateRank> Cluster::Group::late(const Clock& clock,
                                           const std::map<std::string, Aggregator>& aggregators) const {
  return late_ranks_of(*record, [&](const std::string& name) -> LateWord {
    const auto known = aggregators.find(name);
    if (known == aggregators.end() || known->second.record.expired) return {};
    const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(clock.now() - known->second.load_at);
    return {.late = known->second.load.late, .age = age};
  });
}

Result<GroupView> Cluster::group(std::uint64_t id) const {
  const auto lock = lock_.read();
  const auto found = groups_.find(id);
  if (found == groups_.end()) return no_group(id);
  return found->second.view(clock_, aggregators_);
}

std::vector<GroupView> Cluster::groups() const {
  const auto lock = lock_.read();
  std::vector<GroupView> views;
  views.reserve(groups_.size());
  for (const auto& [id, group] : groups_) views.push_back(group.view(clock_, aggregators_));
  return views;
}

void Cluster::expire_groups(Clock::TimePoint now) {
  std::erase_if(unsaved_removals_,
                [&](std::uint64_t id) { return save([&] { return store_.remove_group(id); }).has_value(); });
  for (auto it = groups_.begin(); it != groups_.end();) {
    const std::uint64_t id = it->first;
    const bool over = it->second.lease_end <= now;
    ++it;
    if (!over) continue;
    spdlog::warn("group {} did not renew its lease: its reservation is given back", id);
    ++stats_.group_leases_expired;
    settings_.events->ended(clock_.unix_milliseconds(), *groups_.at(id).record, "did not renew its lease");
    drop_group(id);
    if (!save([&] { return store_.remove_group(id); })) unsaved_removals_.push_back(id);
  }
}

}  // namespace tributary::manager
