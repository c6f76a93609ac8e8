#pragma once
// The flight record of one rank: its last operations, in a ring of fixed size. It is read when a job hangs or fails.
//
// The thread that drives the communicator writes; it neither allocates nor waits. Any other thread may read at any
// time: each entry has a version, which is odd while the entry changes, so that a reader never takes a half of a change.
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "client/operation/operation_counts.h"
#include "tributary/protocol/frame.h"
#include "tributary/protocol/segment_trace.h"
#include "tributary/transport/channel.h"

namespace tributary::client {

/// The group and the rank whose operations a record has.
struct FlightOrigin {
  std::string job;
  std::string host;   // this host's place in the topology
  std::string group;  // a name that is equal on all ranks of the group, and differs from other groups' names
  std::uint32_t rank = 0;
  std::uint32_t nranks = 1;
};

enum class FlightPath : std::uint8_t { undecided, in_network, between_ranks, by_hosts, shared_memory };
enum class FlightOutcome : std::uint8_t { open, success, failure };

/// One operation. A time without a value has not come yet. The first and the last byte are parts of the operation that
/// have come to this rank from other ranks or from aggregators. A rank that only sends, or that shares the memory of
/// all others, gets none.
struct FlightEntry {
  std::uint64_t number = 0;  // number of the call among the communicator's collective calls
  Signature signature{};
  FlightPath path = FlightPath::undecided;
  FlightOutcome outcome = FlightOutcome::open;
  std::optional<transport::TimePoint> queued, started, first_byte, last_byte, ended;
};

class FlightRecord {
 public:
  static constexpr std::uint64_t kEntries = 256;

  explicit FlightRecord(FlightOrigin origin) : origin_(std::move(origin)) {}
  FlightRecord(const FlightRecord&) = delete;
  FlightRecord& operator=(const FlightRecord&) = delete;

  // One thread at a time calls these functions, and sees the writes of the thread before it.
  /// Notes a call. Calls come in the order of their numbers.
  void called(std::uint64_t number, const Signature& signature, transport::TimePoint at) noexcept;
  struct Times {
    transport::TimePoint queued, started;
  };
  /// Notes a call that starts at the same moment as it is noted: called() and started() together.
  void began(std::uint64_t number, const Signature& signature, FlightPath path, Times times) noexcept;
  void started(std::uint64_t number, FlightPath path, transport::TimePoint at) noexcept;
  /// Notes that a part of the operation has come from elsewhere.
  void came(std::uint64_t number, transport::TimePoint at) noexcept;
  void ended(std::uint64_t number, FlightPath path, FlightOutcome outcome, transport::TimePoint at) noexcept;
  /// Notes a pause: the trees were lost, and operations went on after this time.
  void paused(transport::Duration time) noexcept { counts_.paused(time); }
  /// Counts the reason for a path. Any thread may call it.
  void noted(Reason reason) noexcept { counts_.noted(reason); }
  /// Adds counts of values. Several threads may call it at once.
  void saw_values(const ValueNumbers& values) noexcept { counts_.saw(values); }
  /// Notes the time of the communicator's failure: every open operation ends with it.
  void fail_open(transport::TimePoint at) noexcept;

  /// Notes the reason of the communicator's failure; the first reason stands. Any thread may call it.
  void failed(const std::string& why);

  struct Snapshot {
    std::uint64_t called = 0;          // calls that this rank has made
    std::vector<FlightEntry> entries;  // in the order of their numbers
    std::string failure;               // empty: the communicator has not failed
    transport::Duration busy{};        // time in which at least one of the operations that have ended was under way
  };
  /// Returns the operations that the ring still has, and the oldest open operation even if the ring has passed it. Any
  /// thread may call it.
  [[nodiscard]] Snapshot snapshot() const;

  /// Returns what was counted. Any thread may call it.
  [[nodiscard]] OperationNumbers numbers() const noexcept { return counts_.read(); }

  // For a trace. One thread at a time calls these functions.
  static constexpr std::uint32_t kTracedOperations = 16384, kTracedSegments = 65536;
  /// Records all operations and the moments of their segments until then, or until take_trace(). May throw
  /// std::bad_alloc.
  void begin_trace(transport::TimePoint until);
  struct Trace {
    std::vector<FlightEntry> operations;  // those that ended, in this order, and then those that are open
    std::uint64_t operations_lost = 0;    // there was no place for them
    SegmentTrace::Recording segments;
  };
  [[nodiscard]] Trace take_trace();
  /// Gets the moments of this rank's segments, from the thread that drives the lanes.
  [[nodiscard]] SegmentTrace& segments() noexcept { return segments_; }
  [[nodiscard]] const FlightOrigin& origin() const noexcept { return origin_; }

 private:
  struct Words {
    std::uint64_t number = 0, count = 0, kinds = 0, queued = 0, started = 0, first_byte = 0, last_byte = 0, ended = 0;
  };
  struct alignas(64) Slot {
    std::atomic<std::uint64_t> version{0}, number{0}, count{0}, kinds{0}, queued{0}, started{0}, first_byte{0},
        ended{0};
  };
  static_assert(sizeof(Slot) == 64);  // a call writes one cache line; each part that comes writes another one
  [[nodiscard]] Words words_of(const Slot& slot) const noexcept;
  template <class Change>
  static void change(Slot& slot, Change change) noexcept;
  void write(Slot& slot, const Words& words) noexcept;
  static void end(Slot& slot, std::uint64_t kinds, transport::TimePoint at) noexcept;
  void count(const Slot& slot, FlightPath path, FlightOutcome outcome, transport::TimePoint at) noexcept;
  void add_busy(std::uint64_t started, std::uint64_t ended) noexcept;
  void enter(const Words& words) noexcept;
  [[nodiscard]] std::optional<FlightEntry> read(const Slot& slot) const;
  [[nodiscard]] static FlightEntry entry_of(const Words& words) noexcept;
  /// Returns the slot with this operation; nullptr if the ring has passed it.
  [[nodiscard]] Slot* find(std::uint64_t number) noexcept;
  [[nodiscard]] static bool is_open(const Slot& slot) noexcept;
  [[nodiscard]] std::size_t index_of(const Slot& slot) const noexcept {
    return static_cast<std::size_t>(&slot - slots_.data());
  }
  /// Returns the slot of the oldest open operation that the ring has passed.
  [[nodiscard]] Slot& passed() noexcept { return slots_[kEntries]; }

  const FlightOrigin origin_;
  // Each call uses called_, and looks whether operations_ is on: both are in one cache line.
  alignas(64) std::atomic<std::uint64_t> called_{0};
  TraceLog<Words> operations_{kTracedOperations};
  std::atomic<std::uint64_t> busy_{0};  // nanoseconds, see Snapshot
  std::uint64_t last_end_ = 0;          // end of the last operation whose time is in busy_
  OperationCounts counts_;
  std::array<Slot, kEntries + 1> slots_{};                             // the ring, and passed()
  std::array<std::atomic<std::uint64_t>, kEntries + 1> last_bytes_{};  // by slot; of use only if parts have come
  SegmentTrace segments_{kTracedSegments};
  mutable std::mutex mutex_;
  std::string failure_;  // guarded by mutex_
};

/// Returns a time for calls that are too short to read the exact clock. The kernel advances it a few hundred times a
/// second.
[[nodiscard]] transport::TimePoint coarse_now() noexcept;

}  // namespace tributary::client
