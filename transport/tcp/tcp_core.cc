#include "tcp/tcp_core.h"

#include <algorithm>

namespace tributary::transport {
namespace {

constexpr Duration kWaitMax = std::chrono::hours(1);             // so that "for ever" does not overflow the clock
constexpr Duration kDeadlineMax = std::chrono::hours(24 * 365);  // likewise

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

TcpCore::TcpCore(const TcpSettings& settings)
    : settings_(settings),
      spin_estimate_(settings.spin_max),
      resolver_([this](std::function<void()> call) { post(std::move(call)); }) {}

std::size_t TcpCore::poll(Duration wait) {
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
void TcpCore::run_ready() {
  mark_ready(Duration::zero());
  run_marked();
}

/// What the system tells is marked whole before anything is done about it: what a callback destroys is told no more.
void TcpCore::mark_ready(Duration wait) noexcept {
  if (wait > Duration::zero()) {
    // Pairs with post(): either it sees that this thread sleeps, or what it has posted is seen here.
    sleeping_.store(true, std::memory_order_seq_cst);
    if (has_posted_.load(std::memory_order_seq_cst)) wait = Duration::zero();
  }
  const auto events = poller_.wait(wait);
  sleeping_.store(false, std::memory_order_relaxed);
  for (const epoll_event& event : events) {
    if (event.data.ptr != nullptr) static_cast<Pollable*>(event.data.ptr)->mark(event.events);
  }
}

void TcpCore::run_marked() {
  run_expired();
  run_posted();
  run_due();
}

void TcpCore::wait_for_work(Duration wait) {
  const TimePoint started = Clock::now();
  const TimePoint deadline = started + wait;
  const bool adaptive = settings_.busy_poll <= Duration::zero();
  TimePoint spin_until = started + (adaptive ? spin_estimate_.spin() : settings_.busy_poll);
  bool core_wanted = false;
  Duration waited = Duration::max();  // in vain
  for (TimePoint now = started; callbacks_ == 0 && !shut_ && now < deadline;) {
    const bool stays_awake = !idle() || now < spin_until;
    mark_ready(stays_awake ? Duration::zero() : std::min(deadline, deadlines_.first()) - now);
    now = Clock::now();
    const bool ready = !idle();
    run_marked();
    if (callbacks_ != 0) {
      waited = now - started;
    } else if (adaptive && !ready && now < spin_until) {
      core_wanted = yielded_to_others(now);
      if (core_wanted) spin_until = now;  // spinning on would take the core from those who have work
    }
  }
  if (adaptive) spin_estimate_.waited(waited, core_wanted);
}

void TcpCore::run_expired() {
  if (deadlines_.empty()) return;
  const TimePoint now = Clock::now();
  while (Pollable* expired = deadlines_.take_expired(now)) {
    const PollablePtr kept = expired->shared_from_this();
    kept->on_deadline();
  }
}

void TcpCore::run_due() {
  due_now_.swap(due_);
  for (const PollablePtr& what : due_now_) {
    what->due_ = false;
    what->turn();
    flush_dirty();
  }
  due_now_.clear();
  flush_dirty();
}

void TcpCore::flush_dirty() {
  dirty_now_.swap(dirty_);
  for (const PollablePtr& what : dirty_now_) {
    what->dirty_ = false;
    what->write_turn();
  }
  dirty_now_.clear();
}

void TcpCore::make_due(Pollable& what) {
  if (what.due_) return;
  what.due_ = true;
  due_.push_back(what.shared_from_this());
}

void TcpCore::make_dirty(Pollable& what) {
  if (what.dirty_) return;
  what.dirty_ = true;
  dirty_.push_back(what.shared_from_this());
}

void TcpCore::set_deadline(Pollable& what, Duration limit) {
  deadlines_.set(what, Clock::now() + std::min(limit, kDeadlineMax));
}

void TcpCore::enter(Pollable& what) {
  what.registered_at_ = registered_.size();
  registered_.push_back(what.shared_from_this());
}

void TcpCore::leave(Pollable& what) noexcept {
  if (what.registered_at_ == Pollable::kNotRegistered) return;
  deadlines_.clear(what);
  const std::size_t at = what.registered_at_;
  std::swap(registered_[at], registered_.back());
  registered_[at]->registered_at_ = at;
  registered_.back()->registered_at_ = Pollable::kNotRegistered;
  registered_.pop_back();
}

void TcpCore::shut_down() {
  shut_ = true;
  while (!registered_.empty()) {
    const PollablePtr last = registered_.back();
    last->shut_down();  // and leaves
  }
  resolver_.stop();
  std::vector<std::function<void()>> forgotten;
  const std::lock_guard lock(posted_mutex_);
  forgotten.swap(posted_);
}

void TcpCore::post(std::function<void()> call) {
  {
    const std::lock_guard lock(posted_mutex_);
    posted_.push_back(std::move(call));
  }
  // Pairs with mark_ready() and the exchange in run_posted(): whoever sets it first also wakes a poll() that sleeps.
  if (!has_posted_.exchange(true, std::memory_order_seq_cst) && sleeping_.load(std::memory_order_seq_cst)) {
    poller_.wake();
  }
}

void TcpCore::run_posted() {
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
