#include "transport/socket/socket_core.h"

#include <algorithm>

#include "tributary/protocol/assert.h"

namespace tributary::transport {
namespace {

constexpr Duration kDeadlineMax = std::chrono::hours(24 * 365);  // keeps "for ever" from overflowing the clock
constexpr std::size_t kTurnsUnaskedMax = 8;                      // turns in a row whose work came only from memory
constexpr int kLooksPerQuestion = 16;
constexpr std::uint32_t kTellingsMin = 16;

/// Tells the processor that this loop waits for another core.
void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

}  // namespace

void SocketCore::begin_poll(bool waits) {
  flush_dirty();
  if (waits) return;
  mark_ready(Duration::zero());
  run_marked(deadlines_.empty() ? TimePoint{} : time());
}

turn::Looked SocketCore::look(bool spins) {
  if (spins) spin_on_memory();
  if (!spins || !try_sole_teller()) mark_ready(Duration::zero());
  const TimePoint now = time();
  run_marked(now);
  return {.at = now, .some = !idle()};
}

turn::Looked SocketCore::sleep(TimePoint now, TimePoint until) {
  mark_ready(std::min(until, deadlines_.first()) - now);
  const TimePoint woken = time();
  run_marked(woken);
  return {.at = woken, .some = !idle()};
}

/// This thread sees bytes that other processes have written to memory without a system call. While such bytes come, it
/// asks the system only in every few turns, so that sockets wait a little but are not forgotten.
///
/// It marks all events before it serves any of them. A callback may destroy a connection that has an event; this event
/// is then not served.
void SocketCore::mark_ready(Duration wait) noexcept {
  mark_changed();
  if (!watched_.empty() && !due_.empty() && ++turns_unasked_ < kTurnsUnaskedMax) return;
  turns_unasked_ = 0;
  if (wait > Duration::zero() && (!due_.empty() || !fall_asleep())) wait = Duration::zero();
  const auto events = poller_.wait(wait);
  wake_up();
  for (const epoll_event& event : events) {
    if (event.data.ptr == nullptr) continue;
    auto& what = *static_cast<Pollable*>(event.data.ptr);
    TRIBUTARY_ASSERT(what.registered_at_ < registered_.size(),
                     "the system reports events of a participant that has left");
    what.mark(event.events);
  }
  note_sole_teller(events);
  mark_changed();
}

/// If only one socket has had events lately, this thread probably waits for that socket.
void SocketCore::note_sole_teller(std::span<const epoll_event> events) noexcept {
  for (const epoll_event& event : events) {
    auto* const what = static_cast<Pollable*>(event.data.ptr);
    if (what == nullptr || (event.events & EPOLLIN) == 0) continue;
    if (what == teller_) {
      tellings_ = std::min(tellings_ + 1, kTellingsMin);
    } else {
      teller_ = what;
      tellings_ = 0;
    }
  }
}

/// Reads a socket before the system has reported it, and so gets its bytes a system call earlier. The event still
/// comes, and sometimes costs a read that finds no bytes.
bool SocketCore::try_sole_teller() noexcept {
  if (tellings_ < kTellingsMin || !watched_.empty() || !idle() || ++turns_unasked_ >= kTurnsUnaskedMax) return false;
  TRIBUTARY_ASSERT(teller_ != nullptr, "{} events in a row came from one socket, which is unknown", tellings_);
  teller_->mark(EPOLLIN);
  return !due_.empty();
}

void SocketCore::mark_changed() noexcept {
  for (Pollable* what : watched_) {
    if (!what->due_ && what->memory_changed()) make_due(*what);
  }
}

/// Looks at the memory a few times, which costs less than one system call.
void SocketCore::spin_on_memory() noexcept {
  if (watched_.empty()) return;
  for (int look = 0; look < kLooksPerQuestion && idle(); ++look) {
    relax();
    mark_changed();
  }
}

/// Tells all threads and processes that could wake this thread that it sleeps. Returns false if there is work for this
/// thread already.
bool SocketCore::fall_asleep() noexcept {
  TRIBUTARY_ASSERT(!asleep_, "a thread that sleeps falls asleep again");
  asleep_ = true;
  if (!calls().fall_asleep()) return false;
  // This thread looks at other processes' memory after it has told them, as turn/alarm.h explains.
  for (Pollable* what : watched_) what->set_asleep(true);
  mark_changed();
  return due_.empty();
}

void SocketCore::wake_up() noexcept {
  if (!std::exchange(asleep_, false)) return;
  calls().wake_up();
  for (Pollable* what : watched_) what->set_asleep(false);
}

void SocketCore::run_marked(TimePoint now) {
  run_expired(now);
  run_posted();
  run_due();
}

void SocketCore::run_expired(TimePoint now) {
  while (Pollable* expired = deadlines_.take_expired(now)) {
    const PollablePtr kept = expired->shared_from_this();
    kept->on_deadline();
  }
}

void SocketCore::run_due() {
  begin_turn();
  const auto may_go = [this](const Pollable& what) { return what.may_go(round()); };
  due_.run_if(may_go, [this](Pollable& what) {
    what.turn();
    flush_dirty();
  });
  flush_dirty();
}

void SocketCore::flush_dirty() {
  dirty_.run_if([this](const Pollable& what) { return what.may_go(round()); },
                [](Pollable& what) { what.write_turn(); });
}

void SocketCore::set_deadline(Pollable& what, Duration limit) {
  TRIBUTARY_ASSERT(what.registered_at_ != Pollable::kNotRegistered,
                   "a deadline is set for a participant that has left");
  deadlines_.set(what, Clock::now() + std::min(limit, kDeadlineMax));
}

void SocketCore::enter(Pollable& what) {
  TRIBUTARY_ASSERT(what.registered_at_ == Pollable::kNotRegistered, "a participant enters a second time, after {}",
                   what.registered_at_);
  what.registered_at_ = registered_.size();
  registered_.push_back(what.shared_from_this());
}

void SocketCore::watch_memory(Pollable& what) {
  TRIBUTARY_ASSERT(what.registered_at_ != Pollable::kNotRegistered && what.watched_at_ == Pollable::kNotRegistered,
                   "a participant asks for a watch, registered at {} and watched at {}", what.registered_at_,
                   what.watched_at_);
  what.watched_at_ = watched_.size();
  watched_.push_back(&what);
}

void SocketCore::leave(Pollable& what) noexcept {
  if (what.registered_at_ == Pollable::kNotRegistered) return;
  deadlines_.clear(what);
  if (teller_ == &what) {
    teller_ = nullptr;
    tellings_ = 0;
  }
  if (what.watched_at_ != Pollable::kNotRegistered) {
    TRIBUTARY_ASSERT(watched_[what.watched_at_] == &what,
                     "one of {} participants leaves, and its memory is not watched at {}", watched_.size(),
                     what.watched_at_);
    watched_[what.watched_at_] = watched_.back();
    watched_[what.watched_at_]->watched_at_ = what.watched_at_;
    what.watched_at_ = Pollable::kNotRegistered;
    watched_.pop_back();
  }
  const std::size_t at = what.registered_at_;
  TRIBUTARY_ASSERT(at < registered_.size() && registered_[at].get() == &what,
                   "a participant leaves from place {} of {}", at, registered_.size());
  std::swap(registered_[at], registered_.back());
  registered_[at]->registered_at_ = at;
  registered_.back()->registered_at_ = Pollable::kNotRegistered;
  registered_.pop_back();
}

void SocketCore::shut_down() {
  end();
  while (!registered_.empty()) {
    const PollablePtr last = registered_.back();
    const std::size_t before = registered_.size();
    last->shut_down();
    TRIBUTARY_ASSERT(registered_.size() < before, "one of {} participants was shut down and has not left", before);
  }
  calls().forget();
}

/// Behaves as if this core always slept: each post() wakes it, which makes the poller's descriptor readable.
int SocketCore::be_driven() noexcept {
  TRIBUTARY_ASSERT(!asleep_, "a core that sleeps is driven by another one");
  static_cast<void>(calls().fall_asleep());
  return poller_.descriptor();
}

}  // namespace tributary::transport
