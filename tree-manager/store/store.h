#pragma once
// The state that the manager must not forget. The interface is small on purpose: whole records by key, so that a
// replicated store can replace SQLite.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tree-manager/planner/addresses.h"
#include "tree-manager/planner/tree.h"
#include "tree-manager/store/priority.h"
#include "tributary/protocol/error.h"
#include "tributary/protocol/link_secret.h"
#include "tributary/protocol/sum_form.h"

namespace tributary::manager {

struct AggregatorRecord {
  std::string name;
  std::uint64_t incarnation = 0;  // each registration of any aggregator gets a higher number
  std::string host;
  DataAddresses data;  // at least one address
  Endpoint http;
  std::uint64_t memory_bytes = 0;
  std::uint32_t children_max = 0;
  std::uint64_t line_rate_bits_per_second = 0;
  std::string version;
  bool draining = false;           // an operator drains it; a restart does not end that
  bool resuming = false;           // its drain has ended, but it has not reported yet that it knows
  bool expired = false;            // its lease ended
  std::int64_t registered_at = 0;  // seconds since 1970-01-01 UTC
  std::string exchange_key{};      // base64; empty: no key
  std::uint32_t data_changes = 0;  // number of changes of its set of live addresses since it registered
  std::string owner{};             // name of the identity that registered it; empty: a holder of the aggregator token
  PacketSecurity security = PacketSecurity::off;  // the least security of the groups that it serves
  friend bool operator==(const AggregatorRecord&, const AggregatorRecord&) = default;
};

/// An incarnation of an aggregator that a group has seen fail.
struct FailedAggregator {
  std::string name;
  std::uint64_t incarnation = 0;
  std::int64_t since = 0;          // seconds since 1970-01-01 UTC
  std::uint32_t data_changes = 0;  // the aggregator's count when the trees were planned
  friend bool operator==(const FailedAggregator&, const FailedAggregator&) = default;
};

/// An incarnation of an aggregator in trees.
struct UsedAggregator {
  std::string name;
  std::uint64_t incarnation = 0;
  std::uint32_t data_changes = 0;  // the aggregator's count when the trees were planned
  friend auto operator<=>(const UsedAggregator&, const UsedAggregator&) = default;
};

struct GroupRecord {
  std::uint64_t id = 0;
  std::string job;
  std::vector<std::string> hosts;   // index: rank
  std::uint32_t lanes_wanted = 0;   // 0: as many as save time
  std::uint32_t window_wanted = 0;  // wanted window of each lane; 0: by the links' rate and the number of lanes
  std::uint32_t window = 0;         // window of each lane that has none of its own
  std::uint32_t segment_bytes = 0;
  std::uint32_t levels_wanted = 0;  // 0: any
  std::uint32_t epoch = 0;          // epoch of `lanes`, or of the last trees; 0: there were no trees yet
  std::vector<LaneTree> lanes;      // empty: the group is on the fallback
  std::string reason;               // reason of the fallback, or of fewer lanes than wanted
  std::vector<FailedAggregator> failed;
  std::int64_t created_at = 0;  // seconds since 1970-01-01 UTC
  PacketSecurity packet_security = PacketSecurity::off;
  std::string exchange_key{};   // key of the ranks, base64; empty: places have no secrets
  std::string request_id{};     // id of the request that made the group; empty: none
  std::string user{};           // user of the ranks' processes, as they say; may be empty
  std::uint32_t processes = 0;  // ranks for which the members act; 0: only for themselves
  std::int64_t adopted_at = 0;  // time of its restoration from a record, seconds since 1970-01-01 UTC; 0: never
  std::vector<UsedAggregator> before{};  // aggregators of the earlier trees, each once
  PathRates rates{};                     // rates when the trees were planned
  std::uint64_t link_rate = 0;           // rate of the slowest member's link, in bits per second; 0: not known
  bool lane_weights = false;             // true: its ranks deal segments by the lanes' weights
  FormSenders form_senders = FormSenders::nobody;  // its buffers are longer where these send forms of exact sums
  std::string rail{};                              // rail on which all its ranks have their device; empty: all rails
  std::string owner{};                             // tenant that asked for it; empty: a holder of the job token
  Priority priority = Priority::normal;            // class of its trees
  std::string code{};                              // word for `reason` (service/tenant_rules.h) where it has no trees
  friend bool operator==(const GroupRecord&, const GroupRecord&) = default;
};

[[nodiscard]] inline std::uint32_t window_of(const GroupRecord& group, const LaneTree& lane) noexcept {
  return lane.window != 0 ? lane.window : group.window;
}

struct Snapshot {
  std::vector<AggregatorRecord> aggregators;
  std::vector<GroupRecord> groups;
  std::map<std::string, std::string> values;
};

/// A group that was given back, and the end of the time for which this is remembered, in seconds since 1970-01-01 UTC.
struct EndedGroup {
  std::uint64_t id = 0;
  std::int64_t until = 0;
  friend auto operator<=>(const EndedGroup&, const EndedGroup&) = default;
};

/// One thread at a time may call it, except for fence(). When a call succeeds, the change is on disk and survives
/// SIGKILL and power loss; if it returns an error, nothing has changed. Errors: exhausted (no room), retry (another
/// manager leads now, or the store does not know whether one leads), io (the sentence says where to look).
class Store {
 public:
  virtual ~Store() = default;
  /// The number of the leadership under which this store writes, which is above the numbers of all earlier leaderships.
  /// Any thread may call it.
  [[nodiscard]] virtual std::uint64_t fence() const = 0;
  /// Gives this leadership a number above `seen`. A process has seen `seen` although this store did not give it out,
  /// because the store was restored from a backup.
  [[nodiscard]] virtual Status raise_fence(std::uint64_t seen) = 0;
  [[nodiscard]] virtual Result<Snapshot> load() = 0;
  [[nodiscard]] virtual Status put(const AggregatorRecord& record) = 0;
  [[nodiscard]] virtual Status put(const GroupRecord& record) = 0;
  [[nodiscard]] virtual Status put_value(const std::string& key, const std::string& value) = 0;
  [[nodiscard]] virtual Status remove_aggregator(const std::string& name) = 0;
  [[nodiscard]] virtual Status remove_group(std::uint64_t id) = 0;
  /// Removes the group, and remembers until `until` (seconds since 1970-01-01 UTC) that it was given back.
  [[nodiscard]] virtual Status end_group(std::uint64_t id, std::int64_t until) = 0;
  [[nodiscard]] virtual Result<bool> has_ended(std::uint64_t id) = 0;
  /// Lists all groups that were given back and are remembered, by id.
  [[nodiscard]] virtual Result<std::vector<EndedGroup>> ended_groups() = 0;
  /// Forgets groups whose time to be remembered ended before `now`.
  [[nodiscard]] virtual Status forget_ended(std::int64_t now) = 0;
};

struct SqliteSettings {
  std::string path;
  std::uint64_t bytes_max = 0;             // limit of the file's size; 0: no limit but the disk
  std::uint32_t busy_milliseconds = 5000;  // longest wait for another process that uses the database
  /// The least fence. Milliseconds since 1970-01-01 UTC are above the fence of a database that was lost.
  std::uint64_t fence_min = 0;
};
/// Opens or makes the database, in WAL mode with full synchronisation, and updates its schema to this version. Each
/// opening is a new leadership, and raises the fence. Errc::io names the problem of the file: no permission, no
/// database, made by a newer manager.
[[nodiscard]] Result<std::unique_ptr<Store>> open_sqlite(const SqliteSettings& settings);
/// Opens a database that is there, to read it as it is at this moment; nothing may be written. A manager may run on it
/// meanwhile.
[[nodiscard]] Result<std::unique_ptr<Store>> open_sqlite_to_read(const std::string& path);

}  // namespace tributary::manager
