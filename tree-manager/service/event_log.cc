#include "tree-manager/service/event_log.h"

#include <algorithm>
#include <utility>

namespace tributary::manager {
namespace {

// Ids follow the clock, so that they grow from one manager to the next. JavaScript can read them: they are below 2^53.
constexpr std::uint64_t kEventsPerMillisecond = 1024;

}  // namespace

std::string_view to_string(EventKind kind) noexcept {
  switch (kind) {
    case EventKind::group_made:
      return "group-made";
    case EventKind::group_adopted:
      return "group-adopted";
    case EventKind::group_ended:
      return "group-ended";
    case EventKind::tree_lost:
      return "tree-lost";
    case EventKind::tree_moved:
      return "tree-moved";
    case EventKind::tree_back:
      return "tree-back";
    case EventKind::denied:
      return "denied";
    case EventKind::straggler:
      return "straggler";
    case EventKind::straggler_over:
      return "straggler-over";
    case EventKind::aggregator_registered:
      return "aggregator-registered";
    case EventKind::aggregator_suspected:
      return "aggregator-suspected";
    case EventKind::aggregator_back:
      return "aggregator-back";
    case EventKind::aggregator_expired:
      return "aggregator-expired";
    case EventKind::aggregator_left:
      return "aggregator-left";
    case EventKind::drained:
      return "drained";
    case EventKind::undrained:
      return "undrained";
  }
  return "unknown";
}

std::uint64_t EventLog::next_id(std::int64_t now_ms) const noexcept {
  return std::max(last() + 1, static_cast<std::uint64_t>(std::max<std::int64_t>(0, now_ms)) * kEventsPerMillisecond);
}

void EventLog::begin(std::int64_t now_ms) {
  const std::lock_guard lock(mutex_);
  events_.clear();
  forgotten_ = next_id(now_ms);
  last_.store(forgotten_, std::memory_order_release);
}

void EventLog::add(std::int64_t now_ms, Event event) {
  const std::lock_guard lock(mutex_);
  event.id = next_id(now_ms);
  event.time_ms = now_ms;
  const std::uint64_t id = event.id;
  events_.push_back(std::make_shared<const Event>(std::move(event)));
  if (events_.size() > kEventsMax) {
    forgotten_ = events_.front()->id;
    events_.pop_front();
  }
  last_.store(id, std::memory_order_release);
}

EventLog::Page EventLog::after(std::uint64_t known, std::size_t count_max) const {
  if (known == last()) return {.events = {}, .missed = false, .last = known};
  const std::lock_guard lock(mutex_);
  // An id above the last one comes from a manager whose clock was ahead: nobody knows what its reader has heard.
  const bool missed = known < forgotten_ || known > last();
  Page page{.events = {}, .missed = missed, .last = missed ? forgotten_ : known};
  auto next = std::ranges::upper_bound(events_, page.last, {}, [](const auto& event) { return event->id; });
  for (; next != events_.end() && page.events.size() < count_max; ++next) {
    page.events.push_back(*next);
    page.last = (*next)->id;
  }
  return page;
}

}  // namespace tributary::manager
