#include "tcp/tcp_core.h"

#include <algorithm>
#include <boost/asio/post.hpp>

namespace tributary::transport {
namespace {

constexpr Duration kWaitMax = std::chrono::hours(1);  // so that "for ever" does not overflow the clock

class Polling {
 public:
  explicit Polling(bool& flag) : flag_(flag) { flag_ = true; }
  ~Polling() { flag_ = false; }
  Polling(const Polling&) = delete;
  Polling& operator=(const Polling&) = delete;

 private:
  bool& flag_;
};

}  // namespace

TcpCore::TcpCore(const TcpSettings& settings) : settings_(settings) {
  const Descriptor first(io_);  // Asio opens its own descriptors now, and not when there may be none left
}

std::size_t TcpCore::poll(Duration wait) {
  if (polling_ || shut_) return 0;
  const Polling polling(polling_);
  callbacks_ = 0;
  flush_dirty();
  if (wait > Duration::zero()) {
    wait_for_work(Clock::now() + std::min(wait, kWaitMax));
  } else {
    run_ready();
  }
  return callbacks_;
}

/// One round over all that is ready now.
void TcpCore::run_ready() {
  io_.poll();  // marks what has become ready; callbacks come after, outside Asio
  run_posted();
  run_due();
}

void TcpCore::wait_for_work(TimePoint deadline) {
  TimePoint now = Clock::now();
  const TimePoint spin_until = std::min(deadline, now + settings_.busy_poll);
  while (callbacks_ == 0 && !shut_ && now < deadline) {
    if (idle() && now >= spin_until && !has_posted_.load(std::memory_order_relaxed)) {
      io_.run_one_until(deadline);  // what else is ready stays in Asio's queue, and is taken from there without a call
      run_posted();
      run_due();
    } else {
      run_ready();
    }
    now = Clock::now();
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

void TcpCore::make_due(const PollablePtr& what) {
  if (what->due_) return;
  what->due_ = true;
  due_.push_back(what);
}

void TcpCore::make_dirty(const PollablePtr& what) {
  if (what->dirty_) return;
  what->dirty_ = true;
  dirty_.push_back(what);
}

void TcpCore::enter(Pollable& what) {
  what.registered_at_ = registered_.size();
  registered_.push_back(&what);
}

void TcpCore::leave(Pollable& what) noexcept {
  if (what.registered_at_ == Pollable::kNotRegistered) return;
  registered_[what.registered_at_] = registered_.back();
  registered_[what.registered_at_]->registered_at_ = what.registered_at_;
  registered_.pop_back();
  what.registered_at_ = Pollable::kNotRegistered;
}

void TcpCore::shut_down() {
  shut_ = true;
  while (!registered_.empty()) registered_.back()->shut_down();  // each leaves
  const std::lock_guard lock(posted_mutex_);
  posted_.clear();
}

void TcpCore::post(std::function<void()> call) {
  {
    const std::lock_guard lock(posted_mutex_);
    posted_.push_back(std::move(call));
  }
  // Pairs with the exchange in run_posted(): whoever sets it first also wakes a poll() that waits.
  if (!has_posted_.exchange(true, std::memory_order_acq_rel)) asio::post(io_, [] {});
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
