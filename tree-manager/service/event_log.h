#pragma once
// The last events of the cluster, in memory. Readers ask for the events after one that they know.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "tree-manager/service/event.h"

namespace tributary::manager {

/// Any thread may call it.
class EventLog {
 public:
  static constexpr std::size_t kEventsMax = 1024;  // the most events that it remembers

  struct Page {
    std::vector<std::shared_ptr<const Event>> events;  // the oldest first
    bool missed = false;     // there were further events after the known one, which the log has forgotten
    std::uint64_t last = 0;  // the id from which to read on
  };

  /// Forgets all events. A reader of an earlier manager then gets `missed`: this manager does not know that one's events.
  void begin(std::int64_t now_ms);
  void add(std::int64_t now_ms, Event event);
  /// Returns the first `count_max` events whose ids are above `known`.
  [[nodiscard]] Page after(std::uint64_t known, std::size_t count_max) const;
  /// The id of the last event, or of the beginning.
  [[nodiscard]] std::uint64_t last() const noexcept { return last_.load(std::memory_order_acquire); }

 private:
  [[nodiscard]] std::uint64_t next_id(std::int64_t now_ms) const noexcept;

  mutable std::mutex mutex_;  // guards the members below; only its holder changes last_
  std::deque<std::shared_ptr<const Event>> events_;
  std::uint64_t forgotten_ = 0;  // id of the last event that is not in the log any more
  std::atomic<std::uint64_t> last_{0};
};

}  // namespace tributary::manager
