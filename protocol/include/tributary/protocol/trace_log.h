#pragma once
// A log of events for a trace. It is off until another thread begins a recording, and has no memory before the first
// one. While it is off, the thread that owns the events pays for one relaxed load.
//
// One thread at a time writes, and sees the writes of the thread before it. One other thread at a time begins and takes
// recordings. Neither waits for the other:
//   - The reader names each recording by a number, and the writer starts at the log's front when it sees a new number.
//   - The writer publishes the number with the count of events. A writer that was on its way when the recording ended
//     publishes the old number, so its event is in no later recording.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "tributary/protocol/assert.h"

namespace tributary {

template <class Event>
class TraceLog {
  static_assert(std::is_trivially_copyable_v<Event>);

 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  struct Recording {
    std::vector<Event> events;  // in the order in which they were added
    std::uint64_t lost = 0;     // later events, for which the log had no place
  };

  explicit TraceLog(std::uint32_t events_max) : events_max_(events_max) {
    TRIBUTARY_ASSERT(events_max > 0, "a log for {} events", events_max);
  }
  TraceLog(const TraceLog&) = delete;
  TraceLog& operator=(const TraceLog&) = delete;

  // ---- Calls of the thread that writes
  /// Returns whether a recording is wanted: then read the exact clock, and call add().
  [[nodiscard]] bool on() const noexcept { return wanted_.load(std::memory_order_relaxed) != 0; }
  /// Adds an event of the time `now`. Ends the recording if its time is over.
  void add(const Event& event, TimePoint now) noexcept {
    std::uint32_t wanted = wanted_.load(std::memory_order_acquire);  // pairs with begin()
    if (wanted == 0) return;
    if (now.time_since_epoch().count() > until_.load(std::memory_order_relaxed)) {
      wanted_.compare_exchange_strong(wanted, 0, std::memory_order_relaxed);
      return;
    }
    if (wanted != writing_) {
      writing_ = wanted;
      count_ = 0;
      lost_.store(0, std::memory_order_relaxed);
    }
    if (count_ == events_max_) {
      lost_.fetch_add(1, std::memory_order_relaxed);
    } else {
      events_[count_++] = event;
    }
    published_.store(std::uint64_t{writing_} << 32 | count_, std::memory_order_release);  // pairs with take()
  }

  // ---- Calls of the thread that reads
  /// Begins a recording that ends by itself at `until`. May throw std::bad_alloc.
  void begin(TimePoint until) {
    if (events_ == nullptr) events_ = std::make_unique_for_overwrite<Event[]>(events_max_);
    until_.store(until.time_since_epoch().count(), std::memory_order_relaxed);
    if (++begun_ == 0) ++begun_;
    wanted_.store(begun_, std::memory_order_release);
  }
  /// Ends the recording, and returns its events.
  [[nodiscard]] Recording take() {
    wanted_.store(0, std::memory_order_relaxed);
    const std::uint64_t published = published_.load(std::memory_order_acquire);
    if (begun_ == 0 || published >> 32 != begun_) return {};
    const auto count = static_cast<std::uint32_t>(published);
    return {.events = {events_.get(), events_.get() + count}, .lost = lost_.load(std::memory_order_relaxed)};
  }

 private:
  const std::uint32_t events_max_;
  std::atomic<std::uint32_t> wanted_{0};  // number of the recording; 0: off
  std::atomic<std::int64_t> until_{0};
  std::atomic<std::uint64_t> published_{0};  // number of a recording, and below it the count of its events
  std::atomic<std::uint64_t> lost_{0};
  std::uint32_t writing_ = 0, count_ = 0;  // used by the thread that writes
  std::uint32_t begun_ = 0;                // used by the thread that reads
  std::unique_ptr<Event[]> events_;        // made before the first recording, and kept
};

}  // namespace tributary
