// Class Cluster: takes back groups that the manager has lost, if they can prove that it made them.
#include <spdlog/spdlog.h>

#include "tree-manager/service/cluster.h"
#include "tree-manager/service/ended_groups.h"
#include "tributary/protocol/reason.h"

namespace tributary::manager {
namespace {

/// True if both are the same group, even if their trees differ.
bool is_same_group(const GroupRecord& a, const GroupRecord& b) {
  return a.id == b.id && a.job == b.job && a.hosts == b.hosts && a.created_at == b.created_at &&
         a.exchange_key == b.exchange_key && a.owner == b.owner;
}

std::string group_text(std::uint64_t id) {
  return "group " + std::to_string(id);
}

/// Checks whether the group with this number may be restored from the record.
Status check_record(const OpenedRecord& opened, std::uint64_t id, const ClusterSettings& settings, std::int64_t now_s) {
  const GroupRecord& group = opened.group;
  if (group.id != id) {
    return fail(Errc::mismatch, "'record' is of " + group_text(group.id) + ", and the path names " + group_text(id));
  }
  if (opened.issued_at + settings.record_life.count() < now_s) {
    return fail(Errc::mismatch, "'record' of " + group_text(id) + " is too old; ask for a new group");
  }
  if (group.hosts.size() > settings.ranks_max) {
    return fail(Errc::bad_argument, group_text(id) + " has more ranks than this manager's ranks_max");
  }
  return {};
}

}  // namespace

Result<GroupLeaseView> Cluster::adopt_group(std::uint64_t id, const std::string& record,
                                            const std::vector<std::string>& hosts, const GroupOwner& owner) {
  auto opened = signing_.now()->seal.open(record, hosts);
  if (!opened) return std::unexpected(opened.error());
  if (!owner.owns(opened->group)) return no_group(id);
  if (auto ok = hear_fence(opened->fence); !ok) return std::unexpected(ok.error());
  const auto right = lock_.begin_change();
  if (!right) return std::unexpected(right.error());
  look();
  if (auto ok = check_record(*opened, id, settings_, clock_.unix_seconds()); !ok) return std::unexpected(ok.error());
  const auto known = groups_.find(id);
  const Status ok =
      known == groups_.end() ? take_in(std::move(opened->group)) : catch_up(known->second, std::move(opened->group));
  if (!ok) return std::unexpected(ok.error());
  return renewed(groups_.at(id));
}

/// Restores a group that the manager does not know.
Status Cluster::take_in(GroupRecord group) {
  const auto ended = has_ended(lock_, store_, group.id);
  if (!ended) return std::unexpected(ended.error());
  if (*ended) return fail(Errc::mismatch, group_text(group.id) + " has been given back; ask for a new group");
  if (groups_.size() >= settings_.groups_max) {
    return fail(Errc::retry, Reason::too_many_groups,
                "the manager has " + std::to_string(groups_.size()) + " groups already, its limit");
  }
  group.adopted_at = clock_.unix_seconds();
  if (auto ok = save([&] { return store_.put(group); }); !ok) return ok;
  std::erase(unsaved_removals_, group.id);
  numbers_.groups.note_used(group.id);
  Group& place = groups_[group.id];
  put_in_place(place, std::move(group));
  return {};
}

/// Takes over newer trees of a known group, for which the store may have older trees.
Status Cluster::catch_up(Group& known, GroupRecord group) {
  if (!is_same_group(*known.record, group)) {
    return fail(Errc::mismatch, "another group has the number " + std::to_string(group.id) + "; ask for a new group");
  }
  if (group.epoch <= known.record->epoch) return {};
  group.failed = known.record->failed;
  group.request_id = known.record->request_id;
  group.adopted_at = clock_.unix_seconds();
  if (auto ok = save([&] { return store_.put(group); }); !ok) return ok;
  allotments_.remove(*fabric_, *known.record);
  put_in_place(known, std::move(group));
  return {};
}

/// Reserves the memory of the group's trees even if there is no room: the trees already use it.
void Cluster::put_in_place(Group& place, GroupRecord group) {
  const bool known = place.record != nullptr;
  place.record = std::make_shared<const GroupRecord>(std::move(group));
  place.planned_at_generation = generation_;
  allotments_.add(*fabric_, *place.record);
  ++stats_.groups_adopted;
  settings_.events->adopted(clock_.unix_milliseconds(), *place.record, known);
  spdlog::info("group {} of job {} adopted at epoch {} from its own record: {} ranks, {} lanes", place.record->id,
               place.record->job, place.record->epoch, place.record->hosts.size(), place.record->lanes.size());
  for (const std::string& name : overcommitted()) {
    spdlog::warn(
        "aggregator {} has promised more memory than it has: adopted groups hold memory that was given to other groups",
        name);
  }
}

std::vector<std::string> Cluster::overcommitted() const {
  std::vector<std::string> names;
  for (const auto& [name, aggregator] : aggregators_) {
    const AggregatorRecord& record = aggregator.record;
    if (!record.expired && allotments_.memory_bytes(name, record.incarnation) > record.memory_bytes) {
      names.push_back(name);
    }
  }
  return names;
}

Result<std::string> Cluster::sealed_record(std::uint64_t id) const {
  const auto view = group(id);
  if (!view) return std::unexpected(view.error());
  return signing_.now()->seal.seal(*view->record, clock_.unix_seconds(), store_.fence());
}

}  // namespace tributary::manager
