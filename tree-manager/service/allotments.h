#pragma once
// The resources that groups' trees take: memory on aggregators, load on links. They depend only on the groups, so the
// manager never stores them, and computes them again at start and after changes of the topology.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tree-manager/planner/fabric.h"
#include "tree-manager/service/clock.h"
#include "tree-manager/service/group_memory.h"
#include "tree-manager/service/roster.h"
#include "tree-manager/service/tenant_rules.h"
#include "tree-manager/store/store.h"

namespace tributary::manager {

class Allotments {
 public:
  void add(const Fabric& fabric, const GroupRecord& group);
  void remove(const Fabric& fabric, const GroupRecord& group);
  /// Forgets all that add() has counted, because the load on links belongs to one fabric: the caller adds all groups
  /// again, for another fabric. Lingering memory stays. Make the roster again after this call.
  void forget_groups();

  /// Keeps the memory of a group's trees until `until`, beside the memory that add() has reserved: while a group moves
  /// to new trees, the aggregators serve the old and the new trees.
  void linger(const GroupRecord& group, Clock::TimePoint until);
  void end_lingering(std::uint64_t group);
  /// Keeps lingering memory longer by `absence`, the time in which the manager stood still.
  void excuse(Clock::TimePoint::duration absence);
  /// Releases memory whose time is over. Returns true if memory became free.
  bool expire(Clock::TimePoint now);

  /// Returns the memory that one incarnation has promised: a restarted aggregator no longer holds what it held before.
  [[nodiscard]] std::uint64_t memory_bytes(const std::string& aggregator, std::uint64_t incarnation) const;
  /// The resources that the trees of this tenant take.
  [[nodiscard]] TenantUse used_by(const std::string& tenant) const;
  [[nodiscard]] const std::map<std::string, TenantUse>& uses() const noexcept { return uses_; }
  [[nodiscard]] const FabricLoad& load() const noexcept { return load_; }
  /// Counts how often the load has changed; never 0.
  [[nodiscard]] std::uint64_t changes() const noexcept { return changes_; }
  [[nodiscard]] std::uint64_t memory_free(const AggregatorRecord& record) const;
  /// The list that the planner reads. Its owner makes it, and add() and the other functions update the free memory in
  /// it.
  [[nodiscard]] Roster& roster() noexcept { return roster_; }
  [[nodiscard]] const Roster& roster() const noexcept { return roster_; }

 private:
  struct Lingering {
    std::uint64_t group = 0;
    Clock::TimePoint until;
    std::vector<std::pair<Incarnation, std::uint64_t>> memory;
  };
  void reserve(const Incarnation& aggregator, std::uint64_t bytes);
  void release(const Lingering& lingering);
  void release(const Incarnation& aggregator, std::uint64_t bytes);

  FabricLoad load_;
  std::uint64_t changes_ = 1;
  std::map<Incarnation, std::uint64_t> memory_;
  std::map<std::string, TenantUse> uses_;  // key: tenant; only tenants that have trees
  std::vector<Lingering> lingering_;
  Roster roster_;
};

}  // namespace tributary::manager
