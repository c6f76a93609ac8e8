#pragma once
// One worker of an aggregator: the lanes that one thread serves, their children's channels and their parents. It wires
// the engine to a transport, and decides who may join. Single-threaded; several workers share nothing but the memory
// budget.
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "tributary/protocol/assert.h"
#include "tributary/protocol/credential.h"
#include "tributary/protocol/lane_pulse.h"
#include "tributary/protocol/waiting_room.h"
#include "tributary/transport/channel.h"

namespace tributary::aggregator {

class LaneNode;
class Session;

struct WorkerSettings {
  std::string name;                                           // of this aggregator: tokens must be made out to it
  transport::Duration join_limit = std::chrono::seconds(5);   // from connecting to a valid join
  transport::Duration form_limit = std::chrono::seconds(30);  // from a lane's first join to its last
  transport::Duration flush_limit = std::chrono::seconds(5);  // for last words to a child
  std::uint32_t sessions_unjoined_max = 1024;                 // connections without a token; one more, and the
                                                              // one that waiting_room.h names is closed
  LanePulseSettings pulse{};                                  // of its parents
  std::shared_ptr<transport::LinkKeys> link_keys{};           // the transport's, where it seals packets
};

/// Bytes that all workers of the process may promise to lanes. Any thread.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}
  [[nodiscard]] bool reserve(std::uint64_t bytes) noexcept;
  /// For what can be done without: half of all stays for lanes.
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

/// Plain counters, written by the worker's thread; `metrics()` copies them there.
struct WorkerMetrics {
  std::uint64_t joins_accepted = 0;
  std::uint64_t joins_refused = 0;
  std::uint64_t sessions_displaced = 0;  // closed because sessions_unjoined_max newer ones came
  std::uint64_t lanes_active = 0;
  std::uint64_t lanes_formed = 0;
  std::uint64_t lanes_failed = 0;
  std::uint64_t lanes_ended = 0;
  std::uint64_t contributions = 0;
  std::uint64_t contribution_bytes = 0;
  std::uint64_t results = 0;
  std::uint64_t result_bytes = 0;
  std::uint64_t segments_completed = 0;
  std::uint64_t frames_dropped = 0;  // duplicates and stale epochs
  std::uint64_t frames_refused = 0;  // broke the protocol: their channel was closed
  std::uint64_t faults = 0;          // ranks that disagreed
  std::uint64_t asked = 0;           // by children for which nothing came
  std::uint64_t parents_silent = 0;  // did not answer
};

/// One lane's present state, for the status pages.
struct LaneStatus {
  std::uint64_t group = 0;
  std::uint32_t epoch = 0;
  std::uint32_t lane = 0;
  std::string job;
  std::uint32_t children = 0;
  std::uint32_t joined = 0;
  bool ready = false;
  bool root = false;
  std::uint64_t segments_completed = 0;
  std::uint64_t memory_bytes = 0;
};

/// A join frame whose first token is the manager's, not expired, and made out to this aggregator.
struct VerifiedJoin {
  TokenClaims claims;
  TokenChain parent_tokens;                                // to join our own parent; empty for a root
  std::string child_name{};                                // of an aggregator, as it says itself; else empty
  std::optional<transport::LinkKeys::Link> parent_link{};  // what the connection to the parent is sealed with
};
/// Fills in parent_link from the first of the parent's tokens: `shared` is this aggregator's and the manager's.
[[nodiscard]] Status add_parent_link(VerifiedJoin& join, const SharedSecret& shared);
/// Judges what a join frame carries, as far as it shows without checking a signature: well formed, for this aggregator,
/// not expired, with tokens for a parent or without. Any thread.
[[nodiscard]] Status check_join(std::string_view aggregator_name, std::span<const std::byte> payload,
                                std::int64_t now_s);
/// Checks what a join frame carries. Costs one signature check; const, any thread.
[[nodiscard]] Result<VerifiedJoin> verify_join(const TokenVerifier& verifier, std::string_view aggregator_name,
                                               std::span<const std::byte> payload, std::int64_t now_s);

class Worker final : public transport::Acceptor {
 public:
  /// Everything that is passed by reference must outlive the worker.
  Worker(transport::Transport& transport, const TokenVerifier& verifier, MemoryBudget& budget,
         const WorkerSettings& settings, std::function<std::int64_t()> unix_seconds);
  /// The same, where what verifies may change with time. Any error refuses the join with its sentence.
  using VerifyJoin = std::function<Result<VerifiedJoin>(std::span<const std::byte> payload)>;
  Worker(transport::Transport& transport, VerifyJoin verify, MemoryBudget& budget, WorkerSettings settings);
  /// A worker to which joins come verified, by take() alone.
  Worker(transport::Transport& transport, MemoryBudget& budget, WorkerSettings settings);
  ~Worker() override;

  /// A connection that has said nothing yet: joins here, in this thread.
  transport::ChannelHandler* on_accept(std::unique_ptr<transport::Channel> channel) override;
  /// A connection whose join was read and verified elsewhere. `attach` makes the channel over the handler it is given.
  void take(const VerifiedJoin& verified,
            const std::function<std::unique_ptr<transport::Channel>(transport::ChannelHandler&)>& attach);

  /// Time-outs and clearing up: call a few times a second, and after poll().
  void tick(transport::TimePoint now);
  /// Ends every lane with `reason`: their groups go on without them. Refuses joins from now on.
  void drain(const std::string& reason);
  /// Takes lanes again.
  void undrain() { draining_.clear(); }

  [[nodiscard]] const WorkerMetrics& metrics() const noexcept { return metrics_; }
  [[nodiscard]] std::vector<LaneStatus> lanes() const;
  [[nodiscard]] std::size_t sessions() const noexcept { return sessions_.size(); }

 private:
  friend class LaneNode;
  friend class Session;
  using LaneKey = std::tuple<std::uint64_t, std::uint32_t, std::uint32_t>;  // group, epoch, lane

  void on_join(Session& session, const FrameHeader& header, std::span<const std::byte> payload);
  void join(Session& session, const VerifiedJoin& verified);
  [[nodiscard]] static Status check_seal(Session& session, const TokenClaims& claims);
  void refuse(Session& session, const Error& error);
  [[nodiscard]] Result<std::shared_ptr<LaneNode>> node_for(const VerifiedJoin& verified, bool shared);
  void remember_over(const LaneKey& key);
  [[nodiscard]] bool was_over(const LaneKey& key) const;

  transport::Transport& transport_;
  const VerifyJoin verify_;  // none: no join is read here
  MemoryBudget& budget_;
  const WorkerSettings settings_;
  WorkerMetrics metrics_;
  std::map<LaneKey, std::shared_ptr<LaneNode>> nodes_;
  std::map<Session*, std::unique_ptr<Session>> sessions_;
  std::size_t leaving_ = 0;  // of them, those that were over at the last tick, and were refused since
  WaitingRoom unjoined_;     // those of them that have said nothing yet, by their addresses in memory
  std::deque<LaneKey>
      over_;  // the last lanes that ended: their tokens may still be valid, but must not bring them back
  std::vector<std::byte> discard_;  // where the payloads of dropped frames go
  std::string draining_;            // the reason, once drain() was called
};

}  // namespace tributary::aggregator
