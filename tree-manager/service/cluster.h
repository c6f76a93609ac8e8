#pragma once
// The manager's knowledge of its cluster, and all its decisions: aggregators with leases, groups with epochs and trees.
// Each change is in the store before it is in memory, and in memory before it is answered. No HTTP here.
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tree-manager/planner/fabric.h"
#include "tree-manager/planner/flight.h"
#include "tree-manager/service/allotments.h"
#include "tree-manager/service/clock.h"
#include "tree-manager/service/number_series.h"
#include "tree-manager/service/sealed_record.h"
#include "tree-manager/service/secrets.h"
#include "tree-manager/service/standstill.h"
#include "tree-manager/service/suspicions.h"
#include "tree-manager/store/store.h"
#include "tree-manager/topology/topology.h"
#include "tributary/protocol/token_page.h"

namespace tributary::manager {

struct IssueTerms;
struct RankRange;

struct ClusterSettings {
  std::chrono::seconds aggregator_lease{10};
  std::chrono::seconds group_lease{15};
  std::chrono::seconds token_life{120};
  // The time for which a group avoids an aggregator that it saw fail and that lives on.
  std::chrono::seconds failed_exclusion{300};
  std::chrono::seconds retry_after{2};              // hint to groups for which there is no tree
  std::chrono::seconds expired_kept{3600};          // how long aggregators whose lease ended stay listed
  std::chrono::seconds record_life{7 * 24 * 3600};  // the age of the oldest record from which a group can be adopted
  std::uint32_t window = 0;                         // 0: by the slowest of the ranks' links (planner/flight.h)
  std::uint32_t segment_bytes = 0;                  // 0: by the slowest link, as the window
  std::uint32_t aggregators_max = 16384;
  std::uint32_t groups_max = 65536;
  std::uint32_t ranks_max = 1U << 17;  // ranks of one group
};

struct AggregatorSpec {
  std::string name;  // may be empty
  std::string host;
  Endpoint data;
  Endpoint http;
  std::uint64_t memory_bytes = 0;
  std::uint32_t children_max = kChildrenMax;
  std::uint64_t line_rate_bits_per_second = 0;
  std::string version;
  std::string exchange_key{};              // base64; empty: packets to it cannot be sealed
  std::vector<Endpoint> data_more{};       // further addresses like `data`, each of a device of its own
  std::vector<std::uint32_t> data_down{};  // the numbers of addresses that are down; `data` is 0
  bool draining = false;                   // its process still refuses new lanes since an earlier registration
  std::uint64_t incarnation = 0;           // number of its process's last registration; 0: the first
  std::string owner{};                     // name of the identity that registers it; empty: the aggregator token
};

struct AggregatorLoad {
  std::uint64_t memory_in_use_bytes = 0;
  std::uint64_t lanes_active = 0;
  std::uint64_t sessions = 0;
  std::uint64_t contribution_bytes_total = 0;
};

struct Registered {
  std::string name;
  std::uint64_t incarnation = 0;
  std::uint32_t lease_seconds = 0;
  PublicKey public_key{};
  ExchangePublicKey exchange_key{};
};

struct AggregatorView {
  AggregatorRecord record;
  AggregatorLoad load;  // as last reported
  std::uint64_t memory_reserved_bytes = 0;
  std::int64_t lease_milliseconds_left = 0;
  bool placed = false;  // its host is in the topology
  std::optional<Suspicion> suspected{};
};

struct GroupSpec {
  std::string job;
  std::vector<std::string> hosts;
  std::uint32_t lanes = 0;          // 0: as many as save time
  std::uint32_t window = 0;         // window of each lane; 0: the setting
  std::uint32_t segment_bytes = 0;  // 0: the setting
  std::uint32_t levels = 0;         // 0: any
  PacketSecurity packet_security = PacketSecurity::off;
  std::string user{};                           // user of the ranks' processes, as they say; may be empty
  std::uint32_t processes = 0;                  // ranks for which the members speak; 0: for themselves alone
  std::string exchange_key{};                   // the ranks', base64; empty: places get no secrets
  std::string request_id{};                     // the same id gives the same group; empty: always a new group
  std::uint64_t link_rate_bits_per_second = 0;  // rate of the slowest member's link; 0: not known
  bool lane_weights = false;                    // its ranks deal segments by the lanes' weights
  std::string owner{};                          // the tenant that asks; empty: the job token
};

/// Says whose groups a caller may steer.
struct GroupOwner {
  std::string tenant{};  // empty: the holders of the job token
  std::string job{};     // only groups of this job; empty: of all the tenant's jobs
  [[nodiscard]] bool owns(const GroupRecord& group) const {
    return group.owner == tenant && (job.empty() || group.job == job);
  }
};

struct GroupGrant {
  GroupDescriptor descriptor;  // with places for at most kPlacesInDescriptorMax ranks; else see places()
  std::uint32_t retry_after_seconds = 0;
  std::string record{};  // for adopt_group()
};

/// Counts that rank 0 of a group had made at its last renewal.
struct GroupTraffic {
  std::uint64_t operations = 0;
  std::uint64_t bytes_in_network = 0;
  std::uint64_t bytes_between_ranks = 0;
  std::uint64_t bytes_in_shared_memory = 0;
};

struct GroupLeaseView {
  std::uint32_t lease_seconds = 0;
  std::uint32_t epoch = 0;
  bool rebuild_advised = false;
  std::string reason;
};

struct GroupView {
  std::shared_ptr<const GroupRecord> record;
  std::int64_t lease_milliseconds_left = 0;
  std::int64_t age_seconds = 0;
  std::optional<GroupTraffic> traffic{};  // none: not told yet
};

struct PlanView {
  Plan plan;
  std::uint32_t segment_bytes = 0;
};

/// Counts since start, and the state now.
struct ClusterStats {
  std::uint64_t aggregators_active = 0;
  std::uint64_t aggregators_draining = 0;
  std::uint64_t aggregators_suspected = 0;
  std::uint64_t aggregators_resuming = 0;
  std::uint64_t aggregators_expired = 0;
  std::uint64_t groups_with_trees = 0;
  std::uint64_t groups_on_fallback = 0;
  std::uint64_t lanes = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t memory_reserved_bytes = 0;
  std::uint64_t registrations = 0;
  std::uint64_t groups_created = 0;
  std::uint64_t groups_adopted = 0;
  std::uint64_t aggregators_overcommitted = 0;
  std::uint64_t standstills = 0;
  double standstill_seconds = 0;
  std::uint64_t rebuilds = 0;
  std::uint64_t plans_made = 0;
  std::uint64_t plans_failed = 0;
  double plan_seconds = 0;
  std::uint64_t suspicions = 0;
  std::uint64_t aggregator_leases_expired = 0;
  std::uint64_t group_leases_expired = 0;
  std::uint64_t store_writes = 0;
  std::uint64_t store_failures = 0;
  double store_seconds = 0;
};

/// The error about a number that no group has. Callers who may not know of a group are told the same.
[[nodiscard]] std::unexpected<Error> no_group(std::uint64_t id);
/// Tells apart the requests of different owners. Neither part has blanks.
[[nodiscard]] std::string request_name(const std::string& owner, const std::string& request_id);

/// Any thread; one mutex guards all. Errors: bad_argument (a value is out of bounds), peer_gone (no such aggregator or
/// group), mismatch (stale epoch, name in use, topology comes from a file), retry (a limit is reached), exhausted (no
/// room in the store), io (the store fails).
class Cluster {
 public:
  /// Takes over what the store knows. Every holder of a lease gets a whole new lease, because nobody could renew while
  /// no manager ran.
  [[nodiscard]] static Result<std::unique_ptr<Cluster>> open(ClusterSettings settings, Store& store,
                                                             const SigningKey& key, const Clock& clock,
                                                             std::optional<Topology> topology_file);

  [[nodiscard]] Result<Registered> register_aggregator(const AggregatorSpec& spec);
  /// Returns whether the aggregator is draining. Writes to the store only if other addresses live than before, or if
  /// the aggregator has learnt that its drain has ended. `drains`: whether its process drains now. An older process
  /// does not say so: the manager then takes it that the process has learnt.
  [[nodiscard]] Result<bool> renew_aggregator(const std::string& name, std::optional<std::uint64_t> incarnation,
                                              const AggregatorLoad& load,
                                              const std::vector<std::uint32_t>& data_down = {},
                                              std::optional<bool> drains = std::nullopt);
  [[nodiscard]] Status remove_aggregator(const std::string& name);
  [[nodiscard]] Status set_draining(const std::string& name, bool draining);
  [[nodiscard]] Result<AggregatorView> aggregator(const std::string& name) const;
  [[nodiscard]] std::vector<AggregatorView> aggregators() const;

  [[nodiscard]] Result<GroupGrant> create_group(const GroupSpec& spec);
  /// Gives the places of `count` ranks from `first` on, at most kTokenPageRanksMax. Another error is mismatch: the
  /// group has other trees.
  [[nodiscard]] Result<TokenPage> places(std::uint64_t id, std::uint32_t epoch, std::uint32_t first,
                                         std::uint32_t count) const;
  /// `in_use`: the caller uses its trees until it has moved. So they keep their memory, and the group keeps them if no
  /// other trees are possible. If `failed` names an aggregator, the trees are broken and `in_use` is ignored.
  [[nodiscard]] Result<GroupGrant> rebuild_group(std::uint64_t id, std::uint32_t epoch,
                                                 const std::vector<std::string>& failed, bool in_use = false);
  /// Renews the lease. Writes nothing.
  [[nodiscard]] Result<GroupLeaseView> renew_group(std::uint64_t id, std::optional<GroupTraffic> traffic = {});
  /// Renews a group that the manager may not know, or may know with older trees: takes over what the sealed record
  /// says. `hosts` are by rank, as in the request for the group. Errors besides renew_group()'s: bad_argument (this
  /// manager did not make the record), mismatch (the record is another group's or too old, or the group was given
  /// back), peer_gone (the group is another owner's).
  [[nodiscard]] Result<GroupLeaseView> adopt_group(std::uint64_t id, const std::string& record,
                                                   const std::vector<std::string>& hosts, const GroupOwner& owner = {});
  /// Seals a fresh record of the group.
  [[nodiscard]] Result<std::string> sealed_record(std::uint64_t id) const;
  /// Removes the group. Succeeds, too, if the group was given back before.
  [[nodiscard]] Status remove_group(std::uint64_t id);
  [[nodiscard]] Result<GroupView> group(std::uint64_t id) const;
  [[nodiscard]] std::vector<GroupView> groups() const;

  /// Plans what create_group() would plan now. Changes nothing.
  [[nodiscard]] Result<PlanView> plan(const GroupSpec& spec);

  [[nodiscard]] std::shared_ptr<const Topology> topology() const;
  [[nodiscard]] bool topology_from_file() const;
  /// Takes a topology from outside and keeps it in the store; refuses it when the topology comes from a file. `caller`
  /// names who put it, for the log. Groups keep their trees; their load counts at the new links' rates.
  [[nodiscard]] Status put_topology(const std::string& text, const std::string& caller);
  /// Takes over the file's topology after the file has changed. Groups fare as with put_topology().
  void reload_topology(Topology topology);

  /// A text that the store keeps under this name; empty if there is none.
  [[nodiscard]] std::string kept(const std::string& key) const;
  /// The key must be none of the cluster's own.
  [[nodiscard]] Status keep(const std::string& key, const std::string& text);

  [[nodiscard]] const PublicKey& public_key() const noexcept { return key_.public_key(); }
  /// The number of the leadership that this cluster signs under.
  [[nodiscard]] std::uint64_t fence() const { return store_.fence(); }
  /// Hears of a fence that an aggregator has seen. If it is higher than this cluster's, the leadership is over, and
  /// Errc::retry says so; or the store was brought back from a backup, and this leadership gets a higher number.
  [[nodiscard]] Status hear_fence(std::uint64_t seen);
  [[nodiscard]] ClusterStats stats() const;
  /// Ends leases that have run out. Call a few times a second.
  void tick();

 private:
  struct Aggregator {
    AggregatorRecord record;
    AggregatorLoad load;
    Clock::TimePoint lease_end;
    bool unsaved = false;  // the store does not have its present state yet
  };
  struct Group {
    std::shared_ptr<const GroupRecord> record;  // replaced whole, so that readers may keep the old record
    Clock::TimePoint lease_end;
    std::uint64_t planned_at_generation = 0;
    std::optional<GroupTraffic> traffic{};
    [[nodiscard]] GroupView view(const Clock& clock) const;
  };

  Cluster(ClusterSettings settings, Store& store, const SigningKey& key, const Clock& clock);
  Status take_over(Snapshot snapshot, std::optional<Topology> topology_file);
  void use_topology(Topology topology);
  Status save(const std::function<Status()>& write);

  /// Returns the time. If the manager stood still, first lengthens every lease by as long.
  Clock::TimePoint look();

  [[nodiscard]] Result<std::uint64_t> incarnation_for(const AggregatorSpec& spec, bool name_known);
  [[nodiscard]] AggregatorView view(const Aggregator& aggregator) const;
  [[nodiscard]] std::string place_of(const AggregatorRecord& record) const;
  [[nodiscard]] std::uint64_t rate_of(const AggregatorRecord& record) const;

  [[nodiscard]] Status check(const GroupSpec& spec) const;
  [[nodiscard]] GroupRecord record_of(const GroupSpec& spec) const;
  [[nodiscard]] Result<Group*> find_group(std::uint64_t id);
  [[nodiscard]] Plan plan_for(const GroupRecord& group);
  /// Returns the aggregators for the planner. Their list is to be forgotten when the state of one changes.
  [[nodiscard]] const Roster& fresh_roster();
  [[nodiscard]] std::vector<std::uint32_t> avoided_by(const GroupRecord& group) const;
  void note_failed(GroupRecord& group, const std::vector<std::string>& failed);
  void suspect(const FailedAggregator& failed, std::uint64_t group);
  [[nodiscard]] Result<std::shared_ptr<const GroupRecord>> rebuild(Group& group, const std::vector<std::string>& failed,
                                                                   bool in_use);
  [[nodiscard]] std::string why_rebuild(const Group& group) const;
  [[nodiscard]] std::string why_other_addresses(const GroupRecord& record) const;
  [[nodiscard]] Result<IssueTerms> terms_for(const GroupRecord& group, const RankRange& ranks) const;
  [[nodiscard]] Status add_secrets(IssueTerms& terms, const GroupRecord& group, const RankRange& ranks) const;
  [[nodiscard]] Result<std::shared_ptr<const GroupRecord>> granted_before(const GroupSpec& spec);
  [[nodiscard]] Result<std::shared_ptr<const GroupRecord>> create(const GroupSpec& spec);
  [[nodiscard]] Result<GroupGrant> grant(const std::shared_ptr<const GroupRecord>& group) const;
  [[nodiscard]] Status take_in(GroupRecord group);
  [[nodiscard]] Status catch_up(Group& known, GroupRecord group);
  void put_in_place(Group& place, GroupRecord group);
  [[nodiscard]] std::vector<std::string> overcommitted() const;
  GroupLeaseView renewed(Group& group);
  void drop_group(std::uint64_t id);
  void expire_aggregators(Clock::TimePoint now);
  void expire_groups(Clock::TimePoint now);

  const ClusterSettings settings_;
  Store& store_;
  const SigningKey& key_;
  const ExchangeKey exchange_;  // follows from the signing key
  const RecordSeal seal_;       // follows from the signing key
  const Clock& clock_;

  mutable std::mutex mutex_;  // guards everything below
  std::shared_ptr<const Topology> topology_;
  std::map<std::string, const AggregatorSite*> sites_;  // by aggregator name; point into topology_
  bool topology_from_file_ = false;
  std::unique_ptr<const Fabric> fabric_;
  std::map<std::string, Aggregator> aggregators_;
  std::map<std::uint64_t, Group> groups_;
  std::map<std::string, std::uint64_t> requests_;  // the groups' numbers by the requests that made them
  std::map<std::string, std::string> kept_;        // texts that others keep in the store
  Allotments allotments_;
  Suspicions suspicions_;
  std::vector<std::uint64_t> unsaved_removals_;  // groups that ended while the store could not be written
  NumberSeries incarnations_;
  NumberSeries group_numbers_;
  Standstill standstill_;
  Clock::TimePoint forget_ended_at_{};
  std::uint64_t generation_ = 1;  // grows when new trees may be possible
  ClusterStats stats_;
};

}  // namespace tributary::manager
