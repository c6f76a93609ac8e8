#pragma once
// One rank's side of collectives among ranks of one host, through shared memory.
//
// One thread at a time drives a group: a thread that waits for a result, or the progress thread if no thread waits.
// Only run(), finish() and withdraw() block, and no function allocates memory before an error.
//
// A rank that fails writes the reason into the shared memory. The first rank's text stands, and the calls of all ranks
// end with this error.
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/collectives/local/arena.h"
#include "client/collectives/local/direct.h"
#include "client/collectives/local/late_lines.h"
#include "client/collectives/local/late_watch.h"
#include "client/collectives/local/movement.h"
#include "client/collectives/local/waiting.h"
#include "client/operation/absences.h"
#include "client/tuning/local_ways.h"

namespace tributary::client::local {

struct GroupSettings {
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;
  std::size_t note_bytes = tuning::kNoteBytes;
  std::size_t chunk_bytes = 262144;  // bytes of a rank's input in one step
  std::size_t depth = 4;             // chunks in a row
  std::chrono::nanoseconds timeout = std::chrono::seconds(300);
  std::string host;      // name of the host, for messages
  bool crowded = false;  // there are more ranks than cores
  tuning::AttachUse attach = tuning::AttachUse::if_quick;
  std::vector<std::uint32_t> known_as{};  // by rank: number of the rank in messages; empty: the rank
  std::shared_ptr<LateLines> late{};      // gets lines about late ranks; nullptr: there are none
};
[[nodiscard]] Layout layout_of(const GroupSettings& settings) noexcept;
/// True for sizes that a group may have. Call it for sizes from another process before you compute with them.
[[nodiscard]] bool can_be(const GroupSettings& settings) noexcept;
/// Makes the arena of a new group, before any rank uses it.
[[nodiscard]] Result<std::shared_ptr<Arena>> create_arena(const GroupSettings& settings);

/// The bytes that the ranks of a host have sent to other hosts.
struct BytesBetweenHosts {
  std::uint64_t in_network = 0;
  std::uint64_t between_ranks = 0;
};

class LocalGroup {
 public:
  /// `processes`: a descriptor (pidfd) of every rank's process, by rank, or empty if ranks are threads. `arena` was
  /// made by create_arena() with the same settings, except for the rank. Without `inboxes` the ranks share only the
  /// arena.
  LocalGroup(std::shared_ptr<Arena> arena, GroupSettings settings, std::vector<FileDescriptor> processes = {},
             Inboxes inboxes = {});
  LocalGroup(const LocalGroup&) = delete;
  LocalGroup& operator=(const LocalGroup&) = delete;
  /// Ends the other ranks' calls that need this rank; they end with an error.
  ~LocalGroup();

  /// Begins a call; only one call runs at a time. The buffers belong to the group until it has ended.
  void begin(const Call& call) noexcept;
  /// Does all work that need not wait. Returns true if the call has ended; outcome() then returns its status.
  [[nodiscard]] bool advance() noexcept;
  /// Looks for time-outs and dead ranks; call it a few times a second while advance() returns false.
  void inspect();
  /// Calls begin(), and advance() until the call has ended.
  [[nodiscard]] const Status& run(const Call& call);
  /// Does the rest of run(), for a call that has begun.
  [[nodiscard]] const Status& finish();
  [[nodiscard]] const Status& outcome() const noexcept { return outcome_; }

  /// Returns the buffers that other ranks map, so that long calls need no copies. Any thread may call it.
  [[nodiscard]] const std::shared_ptr<Regions>& regions() const noexcept { return direct_.regions(); }
  /// Maps the regions that other ranks have announced, and drops the regions that they have withdrawn, unless a call is
  /// under way. Call it now and then.
  void attend() noexcept {
    if (!running_) direct_.regions()->attend();
  }
  /// Waits, after a failure, until no other rank uses this rank's buffers, which takes a short time. For a caller that
  /// does not call advance() until the failed call has ended.
  void withdraw() noexcept;
  /// Return the number of calls that needed no copies, and the reason why this rank does not use cross-memory attach
  /// (empty: it uses attach, or has not tried it yet).
  [[nodiscard]] std::uint64_t direct_calls() const noexcept { return direct_calls_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::string attach_refusal() const { return direct_.attachment().why_not(); }

  /// On rank 0: adds to the bytes that bytes_between_hosts() returns on every rank. A rank that takes a result of rank
  /// 0 sees all bytes that rank 0 counted before.
  void count(BytesBetweenHosts bytes) noexcept;
  [[nodiscard]] BytesBetweenHosts bytes_between_hosts() const noexcept;

  /// Ends every present and future call of all ranks with an error: the group's first error stands. Any thread may call
  /// it.
  void fail(const Error& error) noexcept;
  /// Returns whether any rank has called fail(). Any thread may call it.
  [[nodiscard]] bool failed() const noexcept {
    return places_.header().failure.load(std::memory_order_acquire) != FailureState::none;
  }
  [[nodiscard]] Error failure() const;
  [[nodiscard]] std::uint32_t rank() const noexcept { return settings_.rank; }
  [[nodiscard]] std::uint32_t ranks() const noexcept { return settings_.ranks; }
  [[nodiscard]] bool crowded() const noexcept { return settings_.crowded; }
  [[nodiscard]] Bell& bell() noexcept { return bell_; }
  /// Returns a count that grows with every progress. If it has grown, a driver should continue at once.
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }

 private:
  using Counter = std::atomic<std::uint64_t> ProgressLine::*;
  /// Counts the ranks that have reached a mark, so that this rank does not look at them again.
  struct Reach {
    std::uint64_t mark = 0;
    std::uint32_t ranks = 0;
  };
  [[nodiscard]] bool reached(Counter counter, Reach& reach, std::uint64_t mark) const noexcept;
  [[nodiscard]] bool all_noted() noexcept;
  [[nodiscard]] bool advance_chunks() noexcept;
  [[nodiscard]] std::optional<bool> advance_direct() noexcept;
  [[nodiscard]] bool others_are_out() noexcept;
  [[nodiscard]] bool has_ended(std::uint32_t rank) const noexcept;
  [[nodiscard]] bool end(Status status) noexcept;
  void report_mismatch();
  [[nodiscard]] bool lacks(std::uint32_t rank) const noexcept;
  [[nodiscard]] bool has_called(std::uint32_t rank) const noexcept;
  [[nodiscard]] std::optional<std::uint32_t> latest() const noexcept;
  [[nodiscard]] std::string name_of(std::uint32_t rank) const;
  [[nodiscard]] std::string name_of_call() const;
  [[nodiscard]] Error failure_here() const;

  const std::shared_ptr<Arena> arena_;
  const GroupSettings settings_;
  const std::vector<FileDescriptor> processes_;
  const Places places_;
  Bell bell_;
  Direct direct_;
  std::atomic<std::uint64_t> direct_calls_{0};  // written by the driving thread
  std::vector<const void*> exact_inputs_;       // for each rank, its input of an exact sum

  // State of the present call.
  enum class Mode : std::uint8_t { chunks, undecided, direct };
  Mode mode_ = Mode::chunks;
  std::optional<TimePoint> withdraws_since_;
  Call call_;
  Movement movement_;
  Status outcome_;
  bool running_ = false;
  std::uint64_t sequence_ = 0;
  std::uint32_t noted_ = 0;  // number of ranks whose note has come
  bool agreed_ = false;      // all notes have come, and name the same call
  std::uint64_t first_chunk_ = 0, end_chunk_ = 0;
  std::uint64_t offered_ = 0, reduced_ = 0, taken_ = 0;  // chunks since the group began, as in this rank's line
  Reach others_offered_, others_reduced_, others_taken_;
  std::uint64_t steps_ = 0;  // counts progress of any kind, so that a wait can see it
  std::uint64_t steps_seen_ = 0;
  std::optional<TimePoint> waits_since_;
  Absences absences_;
  LateWatch late_watch_;
};

}  // namespace tributary::client::local
