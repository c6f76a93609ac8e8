#include "client/api/local_care.h"

#include <sched.h>

#include <algorithm>

namespace tributary::client {

namespace {
using namespace std::chrono_literals;

// The time until the driver's next turn while the other ranks work on the call: their next chunk comes soon.
constexpr transport::Duration kEager = 200us;
// The time until the driver's next turn while no other rank has made progress: the ranks compute, for example.
constexpr transport::Duration kPatient = 1ms;
constexpr transport::Duration kInspectPeriod = 4ms;
// The time between two looks for regions that other ranks have registered, while no call is under way.
constexpr transport::Duration kAttendPeriod = 20ms;
}  // namespace

// Drives neglected calls. A thread that posts a call first counts it and then reads attends_. The accesses of both
// threads are sequentially consistent, so at least one of the two threads sees the other thread's write.
transport::Duration LocalCare::turn(transport::TimePoint now, transport::Duration limit) {
  if (!calls_) return limit;
  local::CallQueue& queue = calls_->queue;
  if (now >= attend_at_) {
    queue.attend();
    attend_at_ = now + kAttendPeriod;
  }
  if (!queue.neglected()) {
    if (!attends_.load(std::memory_order_relaxed)) return limit;
    attends_.store(false);
    if (!queue.neglected()) return limit;
  }
  if (!attends_.load(std::memory_order_relaxed)) {
    attends_.store(true);
    moved_at_ = now;
  }
  queue.drive();
  if (now >= inspect_at_) {
    queue.inspect();
    inspect_at_ = now + kInspectPeriod;
  }
  if (const std::uint64_t steps = queue.steps(); steps != steps_) {
    steps_ = steps;
    moved_at_ = now;
    return transport::Duration::zero();
  }
  if (now - moved_at_ >= kEager) return std::min(limit, kPatient);
  sched_yield();
  return transport::Duration::zero();
}

}  // namespace tributary::client
