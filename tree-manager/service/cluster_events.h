#pragma once
// Tells the cluster's changes as events. The cluster calls it under its lock, so each call is short.
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "tree-manager/service/event_log.h"
#include "tree-manager/store/store.h"
#include "tributary/protocol/late_rank.h"

namespace tributary::manager {

/// Any thread may call its functions. A manager that leads again may for a short time still serve requests of its last
/// lead, so two clusters may tell at once.
class ClusterEvents {
 public:
  [[nodiscard]] const EventLog& log() const noexcept { return log_; }
  /// A manager begins with the records of its store.
  void begin(std::int64_t now_ms);

  void made(std::int64_t now_ms, const GroupRecord& group);
  /// Tells a group that its job's record has brought back. `known`: the manager knew it, with older trees.
  void adopted(std::int64_t now_ms, const GroupRecord& group, bool known);
  /// `why`: "was given back", or "did not renew its lease".
  void ended(std::int64_t now_ms, const GroupRecord& group, const std::string& why);
  /// Tells what a request for other trees has changed. `failed`: the aggregators that it reports.
  void rebuilt(std::int64_t now_ms, const GroupRecord& before, const GroupRecord& now,
               const std::vector<std::string>& failed);
  /// The late ranks of the group as its aggregators now say: tells only what has changed.
  void late(std::int64_t now_ms, const GroupRecord& group, std::span<const LateRank> late);
  void about(std::int64_t now_ms, EventKind kind, const std::string& aggregator, std::string text);

 private:
  EventLog log_;
  std::mutex mutex_;
  std::map<std::uint64_t, std::set<std::uint32_t>>
      late_;  // key: group; the late ranks that were told; guarded by mutex_
};

}  // namespace tributary::manager
