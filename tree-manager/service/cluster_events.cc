#include "tree-manager/service/cluster_events.h"

#include <algorithm>
#include <utility>

namespace tributary::manager {
namespace {

Event of(EventKind kind, const GroupRecord& group, std::string text) {
  return {.kind = kind,
          .text = std::move(text),
          .group = group.id,
          .job = group.job,
          .tenant = group.owner,
          .code = group.lanes.empty() ? group.code : ""};
}

std::string lanes_words(const GroupRecord& group) {
  return std::to_string(group.lanes.size()) + (group.lanes.size() == 1 ? " lane" : " lanes");
}

std::string ranks_words(const GroupRecord& group) {
  return std::to_string(group.hosts.size()) + (group.hosts.size() == 1 ? " rank" : " ranks");
}

std::string with_reason(const std::string& text, const std::string& reason) {
  return reason.empty() ? text : text + ": " + reason;
}

std::string list_of(const std::vector<std::string>& names) {
  constexpr std::size_t kNamed = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kNamed); ++i) text += (i == 0 ? "" : ", ") + names[i];
  return names.size() > kNamed ? text + " and " + std::to_string(names.size() - kNamed) + " more" : text;
}

}  // namespace

void ClusterEvents::begin(std::int64_t now_ms) {
  const std::lock_guard lock(mutex_);
  late_.clear();
  log_.begin(now_ms);
}

void ClusterEvents::made(std::int64_t now_ms, const GroupRecord& group) {
  log_.add(now_ms, of(EventKind::group_made, group, ranks_words(group) + ", " + lanes_words(group)));
  if (group.lanes.empty()) log_.add(now_ms, of(EventKind::denied, group, with_reason("got no trees", group.reason)));
}

void ClusterEvents::adopted(std::int64_t now_ms, const GroupRecord& group, bool known) {
  const std::string what = known ? "the manager had older trees of it" : "the manager had lost it";
  log_.add(now_ms, of(EventKind::group_adopted, group,
                      what + ", and has it again from the job's record: " + ranks_words(group) + ", " +
                          lanes_words(group) + ", epoch " + std::to_string(group.epoch)));
}

void ClusterEvents::ended(std::int64_t now_ms, const GroupRecord& group, const std::string& why) {
  const std::lock_guard lock(mutex_);
  late_.erase(group.id);
  log_.add(now_ms, of(EventKind::group_ended, group, why));
}

void ClusterEvents::rebuilt(std::int64_t now_ms, const GroupRecord& before, const GroupRecord& now,
                            const std::vector<std::string>& failed) {
  const bool had = !before.lanes.empty();
  const bool has = !now.lanes.empty();
  if (had && !failed.empty()) {
    Event event = of(EventKind::tree_lost, now, "saw " + list_of(failed) + " fail");
    if (failed.size() == 1) event.aggregator = failed.front();
    log_.add(now_ms, std::move(event));
  } else if (had && !has) {
    log_.add(now_ms, of(EventKind::tree_lost, now, with_reason("has no trees any more", now.reason)));
  }
  if (has && now.epoch != before.epoch) {
    const std::string where = lanes_words(now) + ", epoch " + std::to_string(now.epoch);
    log_.add(now_ms, of(had ? EventKind::tree_moved : EventKind::tree_back, now, where));
  }
  // A group on the fallback asks again every few seconds: only another reason is news.
  if (!has && (had || before.code != now.code))
    log_.add(now_ms, of(EventKind::denied, now, with_reason("got no trees", now.reason)));
}

void ClusterEvents::late(std::int64_t now_ms, const GroupRecord& group, std::span<const LateRank> late) {
  const std::lock_guard lock(mutex_);
  auto known = late_.find(group.id);
  if (late.empty() && known == late_.end()) return;
  std::set<std::uint32_t> now;
  for (const LateRank& one : late) {
    now.insert(one.rank);
    if (known != late_.end() && known->second.contains(one.rank)) continue;
    const std::string_view cause = row_of(one.cause).text;
    Event event = of(EventKind::straggler, group,
                     "rank " + std::to_string(one.rank) + " on " + one.host + " is late by " +
                         std::to_string(one.lag.count()) + " ms, " + std::to_string(one.operations_behind) +
                         (one.operations_behind == 1 ? " operation behind" : " operations behind") +
                         (cause.empty() ? "" : " (" + std::string(cause) + ")"));
    event.rank = one.rank;
    log_.add(now_ms, std::move(event));
  }
  if (known != late_.end()) {
    for (const std::uint32_t rank : known->second) {
      if (now.contains(rank)) continue;
      Event event = of(EventKind::straggler_over, group, "rank " + std::to_string(rank) + " is no longer late");
      event.rank = rank;
      log_.add(now_ms, std::move(event));
    }
  }
  if (now.empty()) {
    late_.erase(group.id);
  } else {
    late_[group.id] = std::move(now);
  }
}

void ClusterEvents::about(std::int64_t now_ms, EventKind kind, const std::string& aggregator, std::string text) {
  log_.add(now_ms, {.kind = kind, .text = std::move(text), .aggregator = aggregator});
}

}  // namespace tributary::manager
