#pragma once
// One worker of an aggregator: the lanes that one thread serves, with the channels to their children and parents. It
// connects the engine to a transport, and decides which children may join. One thread uses it; workers share only the
// memory budget.
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "aggregator/worker/changed_records.h"
#include "aggregator/worker/lane_lag.h"
#include "aggregator/worker/link_classes.h"
#include "aggregator/worker/tenant_limits.h"
#include "tributary/protocol/assert.h"
#include "tributary/protocol/credential.h"
#include "tributary/protocol/lane_pulse.h"
#include "tributary/protocol/late_rank.h"
#include "tributary/protocol/reason_counts.h"
#include "tributary/protocol/segment_trace.h"
#include "tributary/protocol/waiting_room.h"
#include "tributary/transport/channel.h"
#include "tributary/transport/turn_share.h"

namespace tributary::aggregator {

class LaneNode;
class Session;

/// One child for which the other children of its lane wait.
struct StragglerNotice {
  std::uint64_t group = 0;
  std::uint32_t lane = 0;
  std::string job;
  std::string who;                 // "rank 7", or "aggregator leaf-2" if the late rank is below it
  std::uint32_t others = 0;        // number of the lane's other children
  bool late = false;               // false: it is on time again, or the lane has ended
  double part = 0;                 // part of the last seconds that the others waited, 0 to 1
  std::chrono::nanoseconds lag{};  // mean of its recent contributions
  LateCause cause = LateCause::unknown;
};

struct WorkerSettings {
  std::string name;                                           // this aggregator's name, which tokens must have
  transport::Duration join_limit = std::chrono::seconds(5);   // time from the connection to a valid join
  transport::Duration form_limit = std::chrono::seconds(30);  // time from a lane's first join to its last
  transport::Duration flush_limit = std::chrono::seconds(5);  // time to send the last frame to a child
  std::uint32_t sessions_unjoined_max = 1024;                 // most connections that have not joined (waiting_room.h)
  LanePulseSettings pulse{};                                  // settings of the pulse of parents
  std::shared_ptr<transport::LinkKeys> link_keys{};           // keys of the transport, if it seals packets
  std::shared_ptr<ChangedRecords> changed{};                  // where to note changed records; nullptr: nowhere
  bool late_ranks = true;                                     // looks for late children
  std::uint32_t traced_segments_max = 65536;                  // most moments of segments that a trace keeps
  std::shared_ptr<LinkClasses> link_classes{};                // classes of the links; nullptr: the links have none
  /// Called on the worker's thread when a child becomes late, and when it is on time again. May be empty.
  std::function<void(const StragglerNotice&)> on_straggler{};
};

/// The bytes that all workers of the process may promise to lanes. Any thread may call it.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}
  [[nodiscard]] bool reserve(std::uint64_t bytes) noexcept;
  /// Reserves memory that the worker does not strictly need: half of the budget stays for lanes.
  [[nodiscard]] bool reserve_spare(std::uint64_t bytes) noexcept { return reserve_up_to(bytes, bytes_max_ / 2); }
  void give_back(std::uint64_t bytes) noexcept {
    const std::uint64_t before = in_use_.fetch_sub(bytes, std::memory_order_relaxed);
    TRIBUTARY_ASSERT(before >= bytes, "{} bytes are given back of {} that are in use", bytes, before);
  }
  [[nodiscard]] std::uint64_t in_use() const noexcept { return in_use_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t bytes_max() const noexcept { return bytes_max_; }

 private:
  [[nodiscard]] bool reserve_up_to(std::uint64_t bytes, std::uint64_t limit) noexcept;

  const std::uint64_t bytes_max_;
  std::atomic<std::uint64_t> in_use_{0};
};

/// The moments of a worker's segments, of all jobs or of one. Any one thread may begin and take recordings.
class WorkerTrace {
 public:
  static constexpr std::uint64_t kAllJobs = 0;
  [[nodiscard]] static std::uint64_t key_of(const std::string& job) { return std::hash<std::string>{}(job) | 1U; }

  explicit WorkerTrace(std::uint32_t events_max) : log_(events_max) {}
  /// `job`: key_of() its name, or kAllJobs. May throw std::bad_alloc.
  void begin(std::uint64_t job, transport::TimePoint until) {
    job_.store(job, std::memory_order_relaxed);
    log_.begin(until);
  }
  [[nodiscard]] SegmentTrace::Recording take() { return log_.take(); }

  // ---- Calls of the worker's thread
  [[nodiscard]] bool on(std::uint64_t job) const noexcept {
    if (!log_.on()) return false;
    const std::uint64_t wanted = job_.load(std::memory_order_relaxed);
    return wanted == kAllJobs || wanted == job;
  }
  void add(const SegmentEvent& event) noexcept { log_.add(event, time_of(event)); }

 private:
  SegmentTrace log_;
  std::atomic<std::uint64_t> job_{kAllJobs};
};

/// Plain counters: only the worker's thread writes them and calls `metrics()`, which copies them.
struct WorkerMetrics {
  std::uint64_t joins_accepted = 0;
  std::uint64_t joins_refused = 0;
  std::uint64_t sessions_displaced = 0;  // sessions closed because sessions_unjoined_max newer ones came
  std::uint64_t lanes_active = 0;
  std::uint64_t lanes_formed = 0;
  std::uint64_t lanes_failed = 0;
  std::uint64_t lanes_ended = 0;
  std::uint64_t contributions = 0;
  std::uint64_t contribution_bytes = 0;
  std::uint64_t results = 0;
  std::uint64_t result_bytes = 0;
  std::uint64_t segments_completed = 0;
  std::uint64_t frames_dropped = 0;  // duplicates, and frames of old epochs
  std::uint64_t frames_refused = 0;  // frames that broke the protocol, so that the channel was closed
  std::uint64_t faults = 0;          // how often two ranks made different calls for one operation
  std::uint64_t asked = 0;           // questions of children that wait for results
  std::uint64_t parents_silent = 0;  // parents that did not answer
  std::uint64_t share_waits = 0;     // rounds of turns in which a tenant had more to move than its share
  std::uint64_t stragglers = 0;      // children that are late now
  TimeHistogram lag{};               // lags of all children, in lanes of several children
  ReasonNumbers reasons{};           // why joins were refused and lanes broke
  TimeHistogram segment_time{};      // from a segment's first contribution to its result, in such lanes
};

/// One child of a lane, for the status pages.
struct ChildStatus {
  std::string who;  // "rank 7", "aggregator leaf-2", or empty: it has not joined, or has left
  LaneLag::Child lag{};
  double waited_part = 0;  // part of the last seconds that the others waited for this child, 0 to 1
  bool late = false;
  std::optional<std::uint32_t> rank{};    // empty: the child is an aggregator, or has not joined
  std::chrono::nanoseconds late_for{};    // time since which it is late
  std::chrono::nanoseconds waited_for{};  // time that the oldest incomplete segment has waited for it
  std::uint64_t operations_behind = 0;    // operations to which others have contributed and it has not
  LateCause cause = LateCause::unknown;   // if it is late
};

/// The present state of one lane, for the status pages.
struct LaneStatus {
  std::uint64_t group = 0;
  std::uint32_t epoch = 0;
  std::uint32_t lane = 0;
  std::string job;
  std::string tenant;  // empty: the group has none
  std::uint32_t children = 0;
  std::uint32_t joined = 0;
  bool ready = false;
  bool root = false;
  std::uint64_t segments_completed = 0;
  std::uint64_t memory_bytes = 0;
  std::vector<ChildStatus> of_children{};
  std::vector<std::string> waits_for{};    // the children that the oldest incomplete segment waits for
  std::chrono::nanoseconds waits_since{};  // time since that segment's first contribution
};

/// A join frame with a first token that the manager has signed for this aggregator, and that has not expired.
struct VerifiedJoin {
  TokenClaims claims;
  TokenChain parent_tokens;                                // tokens to join this aggregator's parent; empty at a root
  std::string child_name{};                                // the name that an aggregator gives itself; empty for a rank
  std::optional<transport::LinkKeys::Link> parent_link{};  // seals the connection to the parent
  std::shared_ptr<TenantLimits::Place> place{};            // place among the tenant's connections; nullptr: no limits
};
/// Fills in parent_link from the first of the parent_tokens, if the group is secure, or if all links are `wanted`.
/// `shared` is the secret that this aggregator shares with its manager. Errc::denied: they share none.
[[nodiscard]] Status add_parent_link(VerifiedJoin& join, const std::optional<SharedSecret>& shared, bool wanted);
/// Makes the cheap checks of a join frame's payload: it is well formed, for this aggregator, not expired, and has
/// tokens for a parent exactly where there is one. It does not check the signature. Any thread may call it.
[[nodiscard]] Status check_join(std::string_view aggregator_name, std::span<const std::byte> payload,
                                std::int64_t now_s);
/// Checks a join frame's payload, with the signature of its first token. Any thread may call it.
[[nodiscard]] Result<VerifiedJoin> verify_join(const TokenVerifier& verifier, std::string_view aggregator_name,
                                               std::span<const std::byte> payload, std::int64_t now_s);

class Worker final : public transport::Acceptor {
 public:
  /// All objects that are passed by reference must outlive the worker.
  Worker(transport::Transport& transport, const TokenVerifier& verifier, MemoryBudget& budget,
         const WorkerSettings& settings, std::function<std::int64_t()> unix_seconds);
  /// The check of a join, by a key that may change. If it returns an error, the join is refused with the error's
  /// sentence. Errc::retry: the manager's key is not known yet; the join waits for it, up to transport::kKeyLimit.
  using VerifyJoin = std::function<Result<VerifiedJoin>(std::span<const std::byte> payload)>;
  Worker(transport::Transport& transport, VerifyJoin verify, MemoryBudget& budget, WorkerSettings settings);
  /// Makes a worker that gets only verified joins, by take().
  Worker(transport::Transport& transport, MemoryBudget& budget, WorkerSettings settings);
  ~Worker() override;

  /// Takes a connection that has not joined, and verifies its join in this thread.
  transport::ChannelHandler* on_accept(std::unique_ptr<transport::Channel> channel) override;
  /// Takes a connection whose join was verified elsewhere. `attach` makes its channel with the handler that it
  /// gets.
  void take(const VerifiedJoin& verified,
            const std::function<std::unique_ptr<transport::Channel>(transport::ChannelHandler&)>& attach);

  /// Ends late sessions and lanes, and destroys ended ones. Call it a few times a second, after
  /// poll().
  void tick(transport::TimePoint now);
  /// Ends every lane with `reason`; the groups go on by their fallback. Refuses joins from now on.
  void drain(const std::string& reason);
  /// Accepts joins again.
  void undrain() { draining_.clear(); }

  /// Call it after each poll(), so that contributions of one turn share one reading of the clock.
  void turn_ends() noexcept { turn_time_.reset(); }

  [[nodiscard]] const WorkerMetrics& metrics() const noexcept { return metrics_; }
  [[nodiscard]] std::vector<LaneStatus> lanes() const;
  [[nodiscard]] std::size_t sessions() const noexcept { return sessions_.size(); }
  /// Any thread may call it.
  [[nodiscard]] WorkerTrace& trace() noexcept { return trace_; }

 private:
  friend class LaneNode;
  friend class Session;
  using LaneKey = std::tuple<std::uint64_t, std::uint32_t, std::uint32_t>;  // group, epoch, lane

  void on_join(Session& session, const FrameHeader& header);
  void check_join_of(Session& session);
  void join(Session& session, const VerifiedJoin& verified);
  [[nodiscard]] static Status check_seal(Session& session, const TokenClaims& claims);
  void refuse(Session& session, const Error& error);
  [[nodiscard]] Result<std::shared_ptr<LaneNode>> node_for(const VerifiedJoin& verified, bool shared);
  /// Gives the channel its share of this worker's turns, and its class of the links: those of the claims' tenant, or of
  /// the group if it has no tenant.
  void give_share(transport::Channel& channel, const TokenClaims& claims);
  /// Notes the end of a connection of `lane` if its sealed bytes made no sense.
  void note_changed(const transport::Channel& channel, const std::string& lane, const Error& error) const;
  void remember_over(const LaneKey& key);
  /// Returns a time of the present turn.
  [[nodiscard]] transport::TimePoint turn_time() {
    if (!turn_time_) turn_time_ = transport_.now();
    return *turn_time_;
  }
  [[nodiscard]] bool was_over(const LaneKey& key) const;

  transport::Transport& transport_;
  const VerifyJoin verify_;  // empty: this worker reads no joins
  MemoryBudget& budget_;
  const WorkerSettings settings_;
  WorkerMetrics metrics_;
  WorkerTrace trace_;
  std::optional<transport::TimePoint> turn_time_;
  /// The shares of a tenant, or of a group without one.
  struct PartyShares {
    std::weak_ptr<transport::TurnShare> turns{};       // owned by the channels
    std::shared_ptr<LinkClasses::Place> link_class{};  // set if the links have classes
    std::uint32_t weight = 0;                          // with which link_class was asked for
  };
  std::map<std::string, PartyShares> shares_;
  const std::shared_ptr<transport::TurnParties> parties_ = std::make_shared<transport::TurnParties>();
  std::map<LaneKey, std::shared_ptr<LaneNode>> nodes_;
  std::map<Session*, std::unique_ptr<Session>> sessions_;
  std::size_t leaving_ = 0;  // sessions that had ended at the last tick, or were refused since
  WaitingRoom unjoined_;     // sessions that have not joined; their ids are their addresses in memory
  /// The last lanes that ended. Their tokens may still be valid, but must not bring the lanes back.
  std::deque<LaneKey> over_;
  std::vector<std::byte> discard_;  // place for the payloads of dropped frames
  std::string draining_;            // the reason, after drain() was called
};

}  // namespace tributary::aggregator
