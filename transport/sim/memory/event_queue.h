#pragma once
// Future events, ordered by virtual time and then by the order of making.
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
  accept,         // connection: the listener's host takes it
  opened,         // connection: the connecting side learns that it is open
  reset,          // connection, side that is told: the break reaches it through the network
  broken,         // connection, side that is told: the break, known there without the network's help
  connect_limit,  // connection
  flush_limit,    // connection, side
  posted,         // host
  wake,           // host
  call,           // script
};

/// Generation of the target; the event is stale when the target's own has moved on.
struct Event {
  TimePoint at;
  std::uint64_t order;
  std::uint32_t target;  // index of the connection, host or call
  std::uint32_t generation;
  EventKind kind;
  std::uint8_t side;
};

/// A binary heap in one vector: no allocation once it has grown.
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
