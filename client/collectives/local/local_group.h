#pragma once
// One rank's side of collectives among ranks of one host, through shared memory.
//
// One thread at a time drives it: a thread that waits for a result, or the progress thread if none waits. Nothing here
// blocks except run() and sleep(), and nothing allocates before an error.
//
// A rank that fails writes the reason into the shared memory, once for all ranks: the first text stands, and every
// rank's calls end with it.
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/collectives/local/arena.h"
#include "client/collectives/local/direct.h"
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
  std::string host;                       // for messages
  bool crowded = false;                   // more ranks than cores
  bool attach = true;                     // cross-memory attach, where the kernel allows it
  std::vector<std::uint32_t> known_as{};  // by rank, for messages: the name of each rank; empty: its number
};
[[nodiscard]] Layout layout_of(const GroupSettings& settings) noexcept;
/// True for sizes that a group may have. Check sizes that another process sends before computing with them.
[[nodiscard]] bool can_be(const GroupSettings& settings) noexcept;
/// Makes the arena of a new group, before any rank uses it.
[[nodiscard]] Result<std::shared_ptr<Arena>> create_arena(const GroupSettings& settings);

class LocalGroup {
 public:
  /// `processes`: a descriptor (pidfd) of every rank's process, by rank, or empty if ranks are threads. `arena` was
  /// made by create_arena() with the same settings, except for the rank. Without `inboxes` only the arena is shared.
  LocalGroup(std::shared_ptr<Arena> arena, GroupSettings settings, std::vector<FileDescriptor> processes = {},
             Inboxes inboxes = {});
  LocalGroup(const LocalGroup&) = delete;
  LocalGroup& operator=(const LocalGroup&) = delete;
  /// Ends, with an error, the other ranks' calls that need this rank.
  ~LocalGroup();

  /// Begins a call; only one call runs at a time. The buffers belong to the group until it has ended.
  void begin(const Call& call) noexcept;
  /// Does what can be done now. Returns true if the call has ended; outcome() then tells how.
  [[nodiscard]] bool advance() noexcept;
  /// Looks for time-outs and dead ranks; call it a few times a second while advance() returns false.
  void inspect();
  /// Calls begin(), and advance() until the call has ended.
  [[nodiscard]] const Status& run(const Call& call);
  /// Does the rest of run(), for a call that has begun.
  [[nodiscard]] const Status& finish();
  [[nodiscard]] const Status& outcome() const noexcept { return outcome_; }

  /// Returns the buffers that other ranks map, so that long calls need no copies. Any thread.
  [[nodiscard]] const std::shared_ptr<Regions>& regions() const noexcept { return direct_.regions(); }
  /// Maps the regions that the others have announced, and drops those that they have withdrawn; call it now and then,
  /// between calls.
  void attend() noexcept {
    if (!running_) direct_.regions()->attend();
  }
  /// After a failure: waits until no other rank uses this one's buffers, which takes a moment. For a caller that does
  /// not advance() to the end of a call that has failed.
  void withdraw() noexcept;
  /// Counts calls that needed no copies; says why cross-memory attach is not used (empty: it is, or was not tried yet).
  [[nodiscard]] std::uint64_t direct_calls() const noexcept { return direct_calls_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::string attach_refusal() const { return direct_.attachment().why_not(); }

  /// Ends every call, here and on the other ranks, now and in future. The first error of the group stands. Any thread.
  void fail(const Error& error) noexcept;
  /// Any thread.
  [[nodiscard]] bool failed() const noexcept {
    return places_.header().failure.load(std::memory_order_acquire) != FailureState::none;
  }
  [[nodiscard]] Error failure() const;
  [[nodiscard]] std::uint32_t rank() const noexcept { return settings_.rank; }
  [[nodiscard]] std::uint32_t ranks() const noexcept { return settings_.ranks; }
  [[nodiscard]] bool crowded() const noexcept { return settings_.crowded; }
  [[nodiscard]] Bell& bell() noexcept { return bell_; }
  /// Grows with every bit of progress; shows the driver whether it pays to go on at once.
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }

 private:
  using Counter = std::atomic<std::uint64_t> ProgressLine::*;
  /// How many ranks were seen to have reached a mark, so that this rank does not look at them again.
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

  // the present call
  enum class Mode : std::uint8_t { chunks, undecided, direct };
  Mode mode_ = Mode::chunks;
  std::optional<TimePoint> withdraws_since_;
  Call call_;
  Movement movement_;
  Status outcome_;
  bool running_ = false;
  std::uint64_t sequence_ = 0;
  std::uint32_t noted_ = 0;  // ranks whose note has come
  bool agreed_ = false;      // all notes have come, and agree
  std::uint64_t first_chunk_ = 0, end_chunk_ = 0;
  std::uint64_t offered_ = 0, reduced_ = 0, taken_ = 0;  // chunks since the group began, as in this rank's line
  Reach others_offered_, others_reduced_, others_taken_;
  std::uint64_t steps_ = 0;  // progress of any kind: shows whether a wait has brought anything
  std::uint64_t steps_seen_ = 0;
  std::optional<TimePoint> waits_since_;
  Absences absences_;
};

}  // namespace tributary::client::local
