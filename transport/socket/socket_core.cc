#include "socket/socket_core.h"

#include <algorithm>

namespace tributary::transport {
namespace {

constexpr Duration kWaitMax = std::chrono::hours(1);             // so that "for ever" does not overflow the clock
constexpr Duration kDeadlineMax = std::chrono::hours(24 * 365);  // likewise
constexpr std::size_t kTurnsUnaskedMax = 8;                      // turns with work from memory alone
constexpr int kLooksPerQuestion = 16;
constexpr std::uint32_t kTellingsMin = 16;

/// A core spends this on a turn of a loop that waits for another one.
void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

class Flagged {
 public:
  explicit Flagged(bool& flag) : flag_(flag) { flag_ = true; }
  ~Flagged() { flag_ = false; }
  Flagged(const Flagged&) = delete;
  Flagged& operator=(const Flagged&) = delete;

 private:
  bool& flag_;
};

}  // namespace

std::size_t SocketCore::poll(Duration wait) {
  if (polling_ || shut_) return 0;
  const Flagged polling(polling_);
  callbacks_ = 0;
  flush_dirty();
  if (wait > Duration::zero()) {
    if (callbacks_ == 0) wait_for_work(std::min(wait, kWaitMax));
  } else {
    run_ready();
  }
  return callbacks_;
}

/// One round over all that is ready now.
void SocketCore::run_ready() {
  mark_ready(Duration::zero());
  run_marked();
}

/// What others have written to memory is seen without asking the system; while there is some of it, the system is asked
/// in every few turns only, so that sockets wait for their turn but are not forgotten.
///
/// What the system tells is marked whole before anything is done about it: what a callback destroys is told no more.
void SocketCore::mark_ready(Duration wait) noexcept {
  mark_changed();
  if (!watched_.empty() && !due_.empty() && ++turns_unasked_ < kTurnsUnaskedMax) return;
  turns_unasked_ = 0;
  if (wait > Duration::zero() && (!due_.empty() || !fall_asleep())) wait = Duration::zero();
  const auto events = poller_.wait(wait);
  wake_up();
  for (const epoll_event& event : events) {
    if (event.data.ptr != nullptr) static_cast<Pollable*>(event.data.ptr)->mark(event.events);
  }
  note_sole_teller(events);
  mark_changed();
}

/// Who alone has told anything for a while is who is waited for.
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

/// A socket that is read before the system has told of it brings its bytes a system call earlier. The event still
/// comes, and costs a read in vain in one of some turns.
bool SocketCore::try_sole_teller() noexcept {
  if (tellings_ < kTellingsMin || !watched_.empty() || !idle() || ++turns_unasked_ >= kTurnsUnaskedMax) return false;
  teller_->mark(EPOLLIN);
  return !due_.empty();
}

void SocketCore::mark_changed() noexcept {
  for (Pollable* what : watched_) {
    if (!what->due_ && what->memory_changed()) make_due(*what);
  }
}

/// A few looks at the memory cost less than one question to the system.
void SocketCore::spin_on_memory() noexcept {
  if (watched_.empty()) return;
  for (int look = 0; look < kLooksPerQuestion && idle(); ++look) {
    relax();
    mark_changed();
  }
}

/// Says so to all who could have something to tell. False: one of them has, or a call was posted.
bool SocketCore::fall_asleep() noexcept {
  // Pairs with post(), and with what other processes publish: either they see that this thread sleeps, or what they
  // have posted or written is seen here.
  asleep_ = true;
  sleeping_.store(true, std::memory_order_seq_cst);
  for (Pollable* what : watched_) what->set_asleep(true);
  if (has_posted_.load(std::memory_order_seq_cst)) return false;
  mark_changed();
  return due_.empty();
}

void SocketCore::wake_up() noexcept {
  if (!std::exchange(asleep_, false)) return;
  sleeping_.store(false, std::memory_order_relaxed);
  for (Pollable* what : watched_) what->set_asleep(false);
}

void SocketCore::run_marked() {
  run_expired();
  run_posted();
  run_due();
}

void SocketCore::wait_for_work(Duration wait) {
  const TimePoint started = Clock::now();
  const TimePoint deadline = started + wait;
  const bool adaptive = busy_poll_ <= Duration::zero();
  spin_estimate_.begin(started);
  TimePoint now = started;
  while (callbacks_ == 0 && !shut_ && now < deadline) {
    const bool spins = adaptive ? spin_estimate_.stays_awake(now) : now - started < busy_poll_;
    if (spins) spin_on_memory();
    const bool sleeps = idle() && !spins;
    if (sleeps) spin_estimate_.sleeps();
    if (!spins || !try_sole_teller()) {
      mark_ready(sleeps ? std::min(deadline, deadlines_.first()) - now : Duration::zero());
    }
    now = Clock::now();
    run_marked();
    if (callbacks_ == 0 && spins && adaptive && idle()) spin_estimate_.offer_core(now);
  }
  if (adaptive) spin_estimate_.end(now, callbacks_ == 0);
}

void SocketCore::run_expired() {
  if (deadlines_.empty()) return;
  const TimePoint now = Clock::now();
  while (Pollable* expired = deadlines_.take_expired(now)) {
    const PollablePtr kept = expired->shared_from_this();
    kept->on_deadline();
  }
}

void SocketCore::run_due() {
  due_now_.swap(due_);
  for (const PollablePtr& what : due_now_) {
    what->due_ = false;
    what->turn();
    flush_dirty();
  }
  due_now_.clear();
  flush_dirty();
}

void SocketCore::flush_dirty() {
  dirty_now_.swap(dirty_);
  for (const PollablePtr& what : dirty_now_) {
    what->dirty_ = false;
    what->write_turn();
  }
  dirty_now_.clear();
}

void SocketCore::make_due(Pollable& what) {
  if (what.due_) return;
  what.due_ = true;
  due_.push_back(what.shared_from_this());
}

void SocketCore::make_dirty(Pollable& what) {
  if (what.dirty_) return;
  what.dirty_ = true;
  dirty_.push_back(what.shared_from_this());
}

void SocketCore::set_deadline(Pollable& what, Duration limit) {
  deadlines_.set(what, Clock::now() + std::min(limit, kDeadlineMax));
}

void SocketCore::enter(Pollable& what) {
  what.registered_at_ = registered_.size();
  registered_.push_back(what.shared_from_this());
}

void SocketCore::watch_memory(Pollable& what) {
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
    watched_[what.watched_at_] = watched_.back();
    watched_[what.watched_at_]->watched_at_ = what.watched_at_;
    what.watched_at_ = Pollable::kNotRegistered;
    watched_.pop_back();
  }
  const std::size_t at = what.registered_at_;
  std::swap(registered_[at], registered_.back());
  registered_[at]->registered_at_ = at;
  registered_.back()->registered_at_ = Pollable::kNotRegistered;
  registered_.pop_back();
}

void SocketCore::shut_down() {
  shut_ = true;
  while (!registered_.empty()) {
    const PollablePtr last = registered_.back();
    last->shut_down();  // and leaves
  }
  forget_posted();
}

void SocketCore::forget_posted() {
  std::vector<std::function<void()>> forgotten;
  const std::lock_guard lock(posted_mutex_);
  forgotten.swap(posted_);
}

void SocketCore::post(std::function<void()> call) {
  {
    const std::lock_guard lock(posted_mutex_);
    posted_.push_back(std::move(call));
  }
  // Pairs with mark_ready() and the exchange in run_posted(): whoever sets it first also wakes a poll() that sleeps.
  if (!has_posted_.exchange(true, std::memory_order_seq_cst) && sleeping_.load(std::memory_order_seq_cst)) {
    poller_.wake();
  }
}

/// As if it slept all the time: a post() always wakes, and the poller's descriptor tells it.
int SocketCore::be_driven() noexcept {
  sleeping_.store(true, std::memory_order_seq_cst);
  return poller_.descriptor();
}

void SocketCore::run_posted() {
  if (!has_posted_.load(std::memory_order_relaxed)) return;
  has_posted_.exchange(false, std::memory_order_acq_rel);
  std::vector<std::function<void()>> calls;
  {
    const std::lock_guard lock(posted_mutex_);
    calls.swap(posted_);
  }
  for (const auto& call : calls) {
    count_callback();
    call();
  }
}

}  // namespace tributary::transport
