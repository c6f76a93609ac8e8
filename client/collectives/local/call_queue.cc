#include "client/collectives/local/call_queue.h"

namespace tributary::client::local {

Status CallQueue::run(const Call& call) {
  {
    const std::unique_lock drives(driving_, std::try_to_lock);
    if (drives && pending_.load(std::memory_order_acquire) == 0) {
      const Waiter counted(waiters_);
      return group_.run(call);
    }
  }
  Status outcome;
  std::atomic<bool> ended{false};
  post(call, [&](const Status& status) {
    outcome = status;
    ended.store(true, std::memory_order_release);  // pairs with the wait below
  });
  wait([&] { return ended.load(std::memory_order_acquire); });
  return outcome;
}

void CallQueue::post(const Call& call, Done done) {
  {
    const std::lock_guard lock(posting_);
    posted_.push_back({call, std::move(done)});
    pending_.fetch_add(1, std::memory_order_release);
  }
  drive();
}

std::optional<CallQueue::Posted> CallQueue::next() {
  const std::lock_guard lock(posting_);
  if (posted_.empty()) return std::nullopt;
  Posted first = std::move(posted_.front());
  posted_.pop_front();
  return first;
}

bool CallQueue::drive() {
  const std::unique_lock drives(driving_, std::try_to_lock);
  if (!drives) return false;
  while (true) {
    if (!running_) {
      running_ = next();
      if (!running_) return true;
      group_.begin(running_->call);
    }
    if (!group_.advance()) return false;
    const Done done = std::move(running_->done);
    running_.reset();
    // Before `done`: whoever is told by it may call again at once, and must find the queue as it is.
    pending_.fetch_sub(1, std::memory_order_release);
    done(group_.outcome());
    group_.bell().nudge();  // another thread of this rank may sleep for it
  }
}

void CallQueue::inspect() {
  const std::unique_lock drives(driving_, std::try_to_lock);
  if (drives) group_.inspect();
}

}  // namespace tributary::client::local
