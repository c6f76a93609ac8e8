#pragma once
// The manager's knowledge of its cluster, and all its decisions: aggregators with leases, groups with epochs and trees.
// Each change is written to the store before it is in memory, and is in memory before the answer. This class does not
// know HTTP.
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
#include "tree-manager/service/change_lock.h"
#include "tree-manager/service/clock.h"
#include "tree-manager/service/cluster_events.h"
#include "tree-manager/service/number_series.h"
#include "tree-manager/service/sealed_record.h"
#include "tree-manager/service/secrets.h"
#include "tree-manager/service/signing_keys.h"
#include "tree-manager/service/standstill.h"
#include "tree-manager/service/suspicions.h"
#include "tree-manager/service/tenant_rules.h"
#include "tree-manager/store/store.h"
#include "tree-manager/topology/topology.h"
#include "tributary/protocol/late_rank.h"
#include "tributary/protocol/reason_counts.h"
#include "tributary/protocol/sum_form.h"
#include "tributary/protocol/token_page.h"

namespace tributary::manager {

struct IssueTerms;
struct RankRange;

struct ClusterSettings {
  std::chrono::seconds aggregator_lease{10};
  std::chrono::seconds group_lease{15};
  std::chrono::seconds token_life{120};
  // The time for which a group avoids an aggregator that it saw fail, but that still lives.
  std::chrono::seconds failed_exclusion{300};
  std::chrono::seconds retry_after{2};              // pause of groups without a tree before they ask again
  std::chrono::seconds expired_kept{3600};          // time for which aggregators stay listed after their lease
  std::chrono::seconds record_life{7 * 24 * 3600};  // the age of the oldest record from which a group can be adopted
  PacketSecurity security = PacketSecurity::off;    // the least security of groups with trees, whatever their tenant
  std::uint32_t window = 0;         // segments; 0: by the slowest of the ranks' links (planner/flight.h)
  std::uint32_t segment_bytes = 0;  // 0: by the slowest link, like the window
  std::uint32_t aggregators_max = 16384;
  std::uint32_t groups_max = 65536;
  std::uint32_t ranks_max = 1U << 17;  // most ranks of one group
  // Time for which a change waits for the change before it. While the store blocks for longer, changes are refused.
  std::chrono::milliseconds patience{1000};
  // The place where the cluster tells its changes; never nullptr.
  std::shared_ptr<ClusterEvents> events = std::make_shared<ClusterEvents>();
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
  std::string exchange_key{};                     // base64; empty: packets to it cannot be sealed
  std::vector<Endpoint> data_more{};              // further addresses like `data`, one for each further device
  std::vector<std::uint32_t> data_down{};         // the indices of addresses that are down; `data` is 0
  bool draining = false;                          // its process refuses new lanes since an earlier registration
  std::uint64_t incarnation = 0;                  // number of its process's last registration; 0: none
  std::string owner{};                            // name of the identity that registers it; empty: the aggregator token
  PacketSecurity security = PacketSecurity::off;  // the least security of the groups that it serves
};

struct AggregatorLoad {
  std::uint64_t memory_in_use_bytes = 0;
  std::uint64_t lanes_active = 0;
  std::uint64_t sessions = 0;
  std::uint64_t contribution_bytes_total = 0;
  std::uint64_t changed_records = 0;  // sealed connections that ended because of changed records
  std::vector<LateRank> late{};       // ranks for which the others wait
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
  AggregatorLoad load;  // load in the last report
  std::uint64_t memory_reserved_bytes = 0;
  std::int64_t lease_milliseconds_left = 0;
  bool placed = false;  // its host is in the topology
  std::optional<Suspicion> suspected{};
};

struct GroupSpec {
  std::string job;
  std::vector<std::string> hosts;
  std::uint32_t lanes = 0;          // wanted number; 0: as many as save time
  std::uint32_t window = 0;         // wanted window of each lane; 0: the setting
  std::uint32_t segment_bytes = 0;  // 0: the setting
  std::uint32_t levels = 0;         // 0: any
  PacketSecurity packet_security = PacketSecurity::off;
  std::string user{};                              // user of the ranks' processes, as they say; may be empty
  std::uint32_t processes = 0;                     // ranks for which the members act; 0: only for themselves
  std::string exchange_key{};                      // key of the ranks, base64; empty: places get no secrets
  std::string request_id{};                        // the same id gives the same group; empty: always a new group
  std::uint64_t link_rate_bits_per_second = 0;     // rate of the slowest member's link; 0: not known
  bool lane_weights = false;                       // true: its ranks deal segments by the lanes' weights
  std::string rail{};                              // rail on which all its ranks have their device; empty: all rails
  std::string owner{};                             // tenant that asks; empty: the holder of the job token
  FormSenders form_senders = FormSenders::nobody;  // of exact sums: buffers are longer if anybody sends forms
  std::string aggregator{};                        // the only aggregator of its trees, to measure the way; empty: any
  Priority priority = Priority::normal;            // class of its trees; at most the tenant's highest
};

/// The groups that a caller may change.
struct GroupOwner {
  std::string tenant{};  // empty: the holders of the job token
  std::string job{};     // only groups of this job; empty: groups of all the tenant's jobs
  [[nodiscard]] bool owns(const GroupRecord& group) const { return owns(group.owner, group.job); }
  [[nodiscard]] bool owns(const std::string& its_tenant, const std::string& its_job) const {
    return its_tenant == tenant && (job.empty() || its_job == job);
  }
};

struct GroupGrant {
  GroupDescriptor descriptor;  // has places of at most kPlacesInDescriptorMax ranks; see places() for more
  std::uint32_t retry_after_seconds = 0;
  std::string record{};  // argument of adopt_group()
  std::string code{};    // word for the descriptor's reason, where it has no trees
};

/// Counts of a group's rank 0 at its last renewal.
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
  std::string code{};            // of the reason
  bool leave = false;            // the group must give up its trees; `reason` says why
  PathRates rates{};             // rates of the group's trees beside all present groups; zeros: not known
  std::vector<LateRank> late{};  // the late ranks of the group, the greatest lag first
};

struct GroupView {
  std::shared_ptr<const GroupRecord> record;
  std::int64_t lease_milliseconds_left = 0;
  std::int64_t age_seconds = 0;
  std::optional<GroupTraffic> traffic{};  // empty: not reported yet
  std::vector<LateRank> late{};           // the greatest lag first
};

/// The rules of tenants, and the resources that their trees take.
struct TenantsView {
  TenantRules rules;
  std::map<std::string, TenantUse> uses;  // key: tenant; empty: the holders of the job token
};

struct PlanView {
  Plan plan;
  std::uint32_t segment_bytes = 0;
};

/// Counts since the start, and the state at this time.
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
  std::map<std::string, std::uint64_t> denied{};  // key: code; requests for trees that got none
  ReasonNumbers reasons{};                        // denials of trees, and advice to groups to move
  std::uint64_t displaced = 0;                    // groups that were told to leave their trees to a higher class
  std::uint64_t reservations = 0;                 // reservations that run
  double plan_seconds = 0;
  std::uint64_t suspicions = 0;
  std::uint64_t aggregator_leases_expired = 0;
  std::uint64_t group_leases_expired = 0;
  std::uint64_t store_writes = 0;
  std::uint64_t store_failures = 0;
  double store_seconds = 0;
  /// Counts a request for trees that got none, by the code of the reason.
  void count_denied(const std::string& code) {
    ++denied[code];
    reasons.add(reason_of(code));
  }
};

/// The error about a number that no group has. Callers that may not know of a group get the same error.
[[nodiscard]] std::unexpected<Error> no_group(std::uint64_t id);
/// The host and the rate of an aggregator, from its site in the topology or its registration. nullptr: it has no site.
[[nodiscard]] std::string place_of(const AggregatorSite* site, const AggregatorRecord& record);
[[nodiscard]] std::uint64_t rate_of(const AggregatorSite* site, const AggregatorRecord& record);
/// The words for errors that name the epoch of a group.
[[nodiscard]] std::string epoch_text(std::uint64_t id, std::uint32_t epoch);
/// A key that differs between requests of different owners. Neither part contains blanks.
[[nodiscard]] std::string request_name(const std::string& owner, const std::string& request_id);

/// Any thread may call it; one lock guards all members. One change at a time writes to the store, and lets readers pass
/// meanwhile. Errors: bad_argument (a value is out of bounds), peer_gone (no
/// such aggregator or group), mismatch (stale epoch, name in use, topology comes from a file), retry (a limit is
/// reached, or the store blocks), exhausted (no room in the store), io (the store fails).
class Cluster {
 public:
  /// Takes over the state in the store. Every holder of a lease gets a new lease of full length, because no holder
  /// could renew while no manager ran.
  [[nodiscard]] static Result<std::unique_ptr<Cluster>> open(ClusterSettings settings, Store& store,
                                                             const SigningKey& key, const Clock& clock,
                                                             std::optional<Topology> topology_file);

  [[nodiscard]] Result<Registered> register_aggregator(const AggregatorSpec& spec);
  /// Returns whether the aggregator is draining. Writes to the store only if the set of live addresses has changed, or
  /// if the aggregator has learnt that its drain has ended. `drains`: whether its process drains now. An older process
  /// does not report this: the manager then assumes that the process has learnt it.
  [[nodiscard]] Result<bool> renew_aggregator(const std::string& name, std::optional<std::uint64_t> incarnation,
                                              const AggregatorLoad& load,
                                              const std::vector<std::uint32_t>& data_down = {},
                                              std::optional<bool> drains = std::nullopt);
  [[nodiscard]] Status remove_aggregator(const std::string& name);
  [[nodiscard]] Status set_draining(const std::string& name, bool draining);
  [[nodiscard]] Result<AggregatorView> aggregator(const std::string& name) const;
  [[nodiscard]] std::vector<AggregatorView> aggregators() const;

  [[nodiscard]] Result<GroupGrant> create_group(const GroupSpec& spec);
  /// Gives the places of `count` ranks from `first` on, at most kTokenPageRanksMax. A further error is mismatch: the
  /// group has other trees.
  [[nodiscard]] Result<TokenPage> places(std::uint64_t id, std::uint32_t epoch, std::uint32_t first,
                                         std::uint32_t count) const;
  /// `in_use`: the caller uses its trees until it has moved. So the trees keep their memory, and the group keeps the
  /// trees if no other trees are possible. If `failed` names an aggregator, the trees are broken and `in_use` is
  /// ignored.
  [[nodiscard]] Result<GroupGrant> rebuild_group(std::uint64_t id, std::uint32_t epoch,
                                                 const std::vector<std::string>& failed, bool in_use = false);
  /// Renews the lease. Does not write to the store.
  [[nodiscard]] Result<GroupLeaseView> renew_group(std::uint64_t id, std::optional<GroupTraffic> traffic = {});
  /// Renews a group that the manager may not know, or may know with older trees: takes over the content of the sealed
  /// record. The index of `hosts` is the rank, as in the request for the group. Errors besides renew_group()'s:
  /// bad_argument (this manager did not make the record), mismatch (the record belongs to another group or is too old,
  /// or the group was given back), peer_gone (the group has another owner).
  [[nodiscard]] Result<GroupLeaseView> adopt_group(std::uint64_t id, const std::string& record,
                                                   const std::vector<std::string>& hosts, const GroupOwner& owner = {});
  /// Returns a fresh, sealed record of the group.
  [[nodiscard]] Result<std::string> sealed_record(std::uint64_t id) const;
  /// Removes the group, and treats the aggregators of its trees that it saw fail as rebuild_group() does. Also succeeds
  /// if the group was given back before.
  [[nodiscard]] Status remove_group(std::uint64_t id, const std::vector<std::string>& failed = {});
  [[nodiscard]] Result<GroupView> group(std::uint64_t id) const;
  [[nodiscard]] std::vector<GroupView> groups() const;

  /// Makes the plan that create_group() would make now, but changes nothing.
  [[nodiscard]] Result<PlanView> plan(const GroupSpec& spec);

  [[nodiscard]] std::shared_ptr<const Topology> topology() const;
  [[nodiscard]] bool topology_from_file() const;
  /// Takes a topology from outside and keeps it in the store; refuses it when the topology comes from a file. `caller`
  /// is the caller's name for the log. Groups keep their trees; their load counts with the new links' rates.
  [[nodiscard]] Status put_topology(const std::string& text, const std::string& caller);
  /// Takes over the file's topology after a change of the file. Groups keep their trees, as with put_topology().
  /// Errc::retry: the store blocks an earlier change.
  [[nodiscard]] Status reload_topology(Topology topology);

  [[nodiscard]] TenantsView tenants() const;
  /// Changes the rules by `change`, and writes them to the store. If `change` fails, nothing changes.
  [[nodiscard]] Status change_rules(const std::function<Status(TenantRules&)>& change);

  /// A text that the store keeps under this name; empty if there is none.
  [[nodiscard]] std::string kept(const std::string& key) const;
  /// Keeps a text in the store. The key must not be one of the cluster's own keys.
  [[nodiscard]] Status keep(const std::string& key, const std::string& text);

  /// The keys with which this cluster signs. After a change an aggregator gets no new trees until its next renewal
  /// tells it the key. Tokens of the earlier key admit nobody to an aggregator that knows the new one; lanes that have
  /// formed go on.
  [[nodiscard]] SigningKeys& signing() const noexcept { return signing_; }
  /// The number of the leadership under which this cluster signs.
  [[nodiscard]] std::uint64_t fence() const { return store_.fence(); }
  /// Takes a fence that an aggregator has seen. If it is higher than this cluster's fence, either the leadership is
  /// over, which Errc::retry reports, or the store was restored from a backup, and this leadership gets a higher
  /// number.
  [[nodiscard]] Status hear_fence(std::uint64_t seen);
  [[nodiscard]] ClusterStats stats() const;
  /// Ends leases whose time is over. Call it a few times a second.
  void tick();

 private:
  struct Aggregator {
    AggregatorRecord record;
    AggregatorLoad load;
    Clock::TimePoint load_at{};  // time of the report of `load`
    Clock::TimePoint lease_end;
    bool unsaved = false;        // true: the store does not have the present state yet
    bool drain_told = true;      // false: no answer has told the process of the present drain, so it refuses no lanes
    std::uint64_t key_told = 0;  // number of the signing key in the last answer to it
  };
  struct Group {
    std::shared_ptr<const GroupRecord> record;  // always replaced as a whole, so that readers may keep the old record
    Clock::TimePoint lease_end;
    std::uint64_t planned_at_generation = 0;
    std::optional<GroupTraffic> traffic{};
    PathRates rates{};                  // the rates of its trees, computed after a change of the load
    std::uint64_t rates_at_change = 0;  // the number of that change
    Reason advised = Reason::none;      // the code of the last advice to it
    std::uint64_t displaced_by = 0;     // group of a higher class that needs the memory of its trees; 0: none
    [[nodiscard]] GroupView view(const Clock& clock, const std::map<std::string, Aggregator>& aggregators) const;
    [[nodiscard]] std::vector<LateRank> late(const Clock& clock,
                                             const std::map<std::string, Aggregator>& aggregators) const;
  };

  /// The advice to a group about its trees.
  struct Advice {
    Reason code = Reason::none;
    std::string why{};   // why it should ask for other trees; empty: it should not
    bool leave = false;  // it must give up the trees that it has
  };

  Cluster(ClusterSettings settings, Store& store, const SigningKey& key, const Clock& clock);
  Status take_over(Snapshot snapshot, std::optional<Topology> topology_file);
  void use_topology(Topology topology);
  Status save(const std::function<Status()>& write);

  /// Returns the time. If the manager stood still, it first lengthens every lease by the same time.
  Clock::TimePoint look();

  [[nodiscard]] Result<std::uint64_t> incarnation_for(const AggregatorSpec& spec, bool name_known);
  [[nodiscard]] AggregatorView view(const Aggregator& aggregator) const;
  [[nodiscard]] const AggregatorSite* site_of(const AggregatorRecord& record) const;

  [[nodiscard]] Status check(const GroupSpec& spec) const;
  [[nodiscard]] Result<Group*> find_group(std::uint64_t id);
  /// Plans over the aggregator of the name `only`; empty: over all.
  [[nodiscard]] Plan plan_for(const GroupRecord& group, const std::string& only = {});
  /// Plans trees for the group and gives it these trees, or sets the reason why it gets none.
  void admit(GroupRecord& group, const std::string& only = {});
  /// Asks groups of lower classes to leave, and keeps their memory for this group until it asks again.
  [[nodiscard]] Refusal make_room(const GroupRecord& group);
  /// Returns the aggregators for the planner. A change of an aggregator's state makes the list invalid.
  [[nodiscard]] const Roster& fresh_roster();
  [[nodiscard]] std::vector<std::uint32_t> avoided_by(const GroupRecord& group) const;
  void note_failed(GroupRecord& group, const std::vector<std::string>& failed);
  void suspect(const FailedAggregator& failed, std::uint64_t group);
  [[nodiscard]] Result<std::shared_ptr<const GroupRecord>> rebuild(Group& group, const std::vector<std::string>& failed,
                                                                   bool in_use);
  [[nodiscard]] Advice advice_for(const Group& group) const;
  [[nodiscard]] Result<IssueTerms> terms_for(const SigningKeys::Keys& keys, const GroupRecord& group,
                                             const RankRange& ranks) const;
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
  mutable SigningKeys signing_;  // guards itself
  const Clock& clock_;

  mutable ChangeLock lock_;  // guards all members below
  std::shared_ptr<const Topology> topology_;
  std::map<std::string, const AggregatorSite*> sites_;  // key: aggregator name; values point into topology_
  bool topology_from_file_ = false;
  std::unique_ptr<const Fabric> fabric_;
  std::map<std::string, Aggregator> aggregators_;
  std::map<std::uint64_t, Group> groups_;
  std::map<std::string, std::uint64_t> requests_;  // key: request; the number of the group that it made
  std::map<std::string, std::string> kept_;        // texts that other classes keep in the store
  Allotments allotments_;
  std::uint64_t roster_key_ = 0;  // number of the signing key when the roster was made
  Suspicions suspicions_;
  std::vector<std::uint64_t> unsaved_removals_;  // groups that ended while the store could not be written
  struct {
    NumberSeries incarnations;
    NumberSeries groups;
  } numbers_;
  TenantRules rules_;
  Standstill standstill_;
  Clock::TimePoint forget_ended_at_{};
  std::uint64_t generation_ = 1;  // grows when new trees may be possible
  ClusterStats stats_;
};

}  // namespace tributary::manager
