#include "client/api/local_care.h"

#include <sched.h>

#include <algorithm>

namespace tributary::client {

namespace {
using namespace std::chrono_literals;

// The other ranks are working, and their next chunk comes about now.
constexpr transport::Duration kEager = 200us;
// The other ranks are not working on the call, or they compute.
constexpr transport::Duration kPatient = 1ms;
constexpr transport::Duration kInspectPeriod = 4ms;
// The time within which a region registered by another rank is mapped while no call is under way.
constexpr transport::Duration kAttendPeriod = 20ms;
}  // namespace

// A thread that posts a call counts it first and then looks at attends_. Both sides are sequentially consistent, so one
// of the two sees the other.
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
