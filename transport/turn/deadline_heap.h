#pragma once
// Deadlines of many owners. When an owner's deadline moves to a later time, its entry stays. When the entry's time has
// come, the owner puts it back with the later time. So a time-out that each acknowledgement delays costs nothing, and
// the heap allocates only while it grows. If an owner asks for an earlier time, its old entry stays in the heap. When
// there are many more entries than owners, clear() the heap and push() all deadlines again.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "tributary/protocol/assert.h"
#include "tributary/transport/channel.h"

namespace tributary::transport::turn {

class DeadlineHeap {
 public:
  struct Entry {
    TimePoint at;
    std::uint32_t place;
    std::uint32_t generation;
  };
  void push(const Entry& entry) {
    entries_.push_back(entry);
    std::ranges::push_heap(entries_, later);
    TRIBUTARY_ASSERT(first() <= entry.at, "a deadline is earlier than the first of {}", entries_.size());
  }
  [[nodiscard]] TimePoint first() const noexcept { return entries_.empty() ? TimePoint::max() : entries_.front().at; }
  Entry pop() noexcept {
    TRIBUTARY_ASSERT(!entries_.empty(), "the first deadline is taken, and there is none");
    std::ranges::pop_heap(entries_, later);
    const Entry entry = entries_.back();
    entries_.pop_back();
    TRIBUTARY_ASSERT(entry.at <= first(), "the deadline taken is not the earliest of {}", entries_.size() + 1);
    return entry;
  }

  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  void clear() noexcept { entries_.clear(); }

 private:
  static bool later(const Entry& a, const Entry& b) noexcept { return a.at > b.at; }
  std::vector<Entry> entries_;
};

}  // namespace tributary::transport::turn
