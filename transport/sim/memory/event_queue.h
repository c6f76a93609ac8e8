#pragma once
// Future events, in order of their virtual time; events of the same time are in the order in which they were made.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "tributary/protocol/assert.h"
#include "tributary/transport/channel.h"

namespace tributary::transport {

enum class EventKind : std::uint8_t {
  arrive,         // connection, sending side: the next piece of that direction reaches the other side
  sent,           // connection, sending side: on_sent is due there
  knock,          // connection: the request to connect reaches the listener
  accept,         // connection: the listener's host takes the connection
  opened,         // connection: the connecting side learns that it is open
  reset,          // connection, side that is told: the break reaches it through the network
  broken,         // connection, side that is told: that side learns of the break by itself
  connect_limit,  // connection
  flush_limit,    // connection, side
  posted,         // host
  wake,           // host
  call,           // script
};

/// Generation of the target. If the target has a later generation, the event is stale.
struct Event {
  TimePoint at;
  std::uint64_t order;
  std::uint32_t target;  // index of the connection, host or call
  std::uint32_t generation;
  EventKind kind;
  std::uint8_t side;
};

/// A binary heap in one vector, which allocates only while it grows.
class EventQueue {
 public:
  void push(TimePoint at, EventKind kind, std::uint32_t target, std::uint32_t generation, std::uint8_t side) {
    heap_.push_back({at, next_order_++, target, generation, kind, side});
    std::push_heap(heap_.begin(), heap_.end(), Later{});
  }
  [[nodiscard]] bool empty() const noexcept { return heap_.empty(); }
  [[nodiscard]] const Event& top() const noexcept { return heap_.front(); }
  Event pop() {
    TRIBUTARY_ASSERT(!heap_.empty(), "the next event is taken, and there is none");
    std::pop_heap(heap_.begin(), heap_.end(), Later{});
    const Event event = heap_.back();
    heap_.pop_back();
    return event;
  }

 private:
  struct Later {
    bool operator()(const Event& a, const Event& b) const noexcept {
      return a.at != b.at ? a.at > b.at : a.order > b.order;
    }
  };
  std::vector<Event> heap_;
  std::uint64_t next_order_ = 0;
};

}  // namespace tributary::transport
