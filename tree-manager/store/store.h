#pragma once
// The state that the manager must not forget. It is small on purpose: whole records by key, so that a replicated store
// can take SQLite's place.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tree-manager/planner/addresses.h"
#include "tree-manager/planner/tree.h"
#include "tributary/protocol/error.h"
#include "tributary/protocol/link_secret.h"

namespace tributary::manager {

struct AggregatorRecord {
  std::string name;
  std::uint64_t incarnation = 0;  // each registration gets a higher one, over all aggregators
  std::string host;
  DataAddresses data;  // at least one
  Endpoint http;
  std::uint64_t memory_bytes = 0;
  std::uint32_t children_max = 0;
  std::uint64_t line_rate_bits_per_second = 0;
  std::string version;
  bool draining = false;           // an operator drains it; a restart does not end that
  bool resuming = false;           // its drain has ended, and it has not said yet that it knows
  bool expired = false;            // its lease ended
  std::int64_t registered_at = 0;  // seconds since 1970-01-01 UTC
  std::string exchange_key{};      // base64; empty: none
  std::uint32_t data_changes = 0;  // how often other addresses were live than before, since it registered
  std::string owner{};             // name of the identity that registered it; empty: the aggregator token did
  friend bool operator==(const AggregatorRecord&, const AggregatorRecord&) = default;
};

/// One incarnation of an aggregator that a group has seen fail.
struct FailedAggregator {
  std::string name;
  std::uint64_t incarnation = 0;
  std::int64_t since = 0;          // seconds since 1970-01-01 UTC
  std::uint32_t data_changes = 0;  // the aggregator's count when the trees were planned
  friend bool operator==(const FailedAggregator&, const FailedAggregator&) = default;
};

/// One incarnation of an aggregator as trees use it.
struct UsedAggregator {
  std::string name;
  std::uint64_t incarnation = 0;
  std::uint32_t data_changes = 0;  // the aggregator's count when the trees were planned
  friend auto operator<=>(const UsedAggregator&, const UsedAggregator&) = default;
};

struct GroupRecord {
  std::uint64_t id = 0;
  std::string job;
  std::vector<std::string> hosts;   // by rank
  std::uint32_t lanes_wanted = 0;   // 0: as many as save time
  std::uint32_t window_wanted = 0;  // of each lane; 0: by the links' rate and the number of lanes
  std::uint32_t window = 0;         // of each lane without a window of its own
  std::uint32_t segment_bytes = 0;
  std::uint32_t levels_wanted = 0;  // 0: any
  std::uint32_t epoch = 0;          // epoch of `lanes`, or of the last trees; 0: there were none yet
  std::vector<LaneTree> lanes;      // empty: the group is on the fallback
  std::string reason;               // why it is on the fallback, or has fewer lanes than wanted
  std::vector<FailedAggregator> failed;
  std::int64_t created_at = 0;  // seconds since 1970-01-01 UTC
  PacketSecurity packet_security = PacketSecurity::off;
  std::string exchange_key{};            // the ranks', base64; empty: places have no secrets
  std::string request_id{};              // id of the request that made the group; empty: it had none
  std::string user{};                    // user of the ranks' processes, as they say; may be empty
  std::uint32_t processes = 0;           // ranks for which the members speak; 0: for themselves alone
  std::int64_t adopted_at = 0;           // when its record was taken in, seconds since 1970-01-01 UTC; 0: never
  std::vector<UsedAggregator> before{};  // aggregators of the trees before, each once
  PathRates rates{};                     // when the trees were planned
  std::uint64_t link_rate = 0;           // rate of the slowest member's link, in bits per second; 0: not known
  bool lane_weights = false;             // its ranks deal segments by the lanes' weights
  std::string owner{};                   // the tenant that asked for it; empty: the job token did
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

/// A group that was given back, and until when that is remembered: seconds since 1970-01-01 UTC.
struct EndedGroup {
  std::uint64_t id = 0;
  std::int64_t until = 0;
  friend auto operator<=>(const EndedGroup&, const EndedGroup&) = default;
};

/// One thread at a time, but for fence(). When a call succeeds, the change is on disk and survives SIGKILL and power
/// loss; when it returns an error, nothing has changed: exhausted (no room), retry (another manager leads now, or the
/// store cannot tell), io (the sentence says what to look at).
class Store {
 public:
  virtual ~Store() = default;
  /// The number of the leadership under which this store writes: above those of all earlier leaderships. Any thread.
  [[nodiscard]] virtual std::uint64_t fence() const = 0;
  /// Gives this leadership a number above `seen`, which somebody has seen although the store did not give it out: the
  /// store was brought back from a backup.
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
  /// Forgets groups that were to be remembered until a time before `now`.
  [[nodiscard]] virtual Status forget_ended(std::int64_t now) = 0;
};

struct SqliteSettings {
  std::string path;
  std::uint64_t bytes_max = 0;             // the file's size limit; 0: none but the disk
  std::uint32_t busy_milliseconds = 5000;  // how long to wait for another process that holds the database
  /// The least fence. Milliseconds since 1970-01-01 UTC put it above that of a database that was lost.
  std::uint64_t fence_min = 0;
};
/// Opens or makes the database, in WAL mode with full synchronisation, and brings its schema up to this version. Each
/// opening is a leadership of its own: it raises the fence.
/// Errc::io says what is wrong with the file: no permission, no database, made by a newer manager.
[[nodiscard]] Result<std::unique_ptr<Store>> open_sqlite(const SqliteSettings& settings);

}  // namespace tributary::manager
