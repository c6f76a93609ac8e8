#include "client/collectives/local/call_queue.h"

#include <utility>

#include "client/operation/payload.h"
#include "tributary/protocol/assert.h"

namespace tributary::client::local {

Status CallQueue::run(const Call& call) {
  if (auto outcome = run_at_once(call)) {
    if (pending() > 0) [[unlikely]] {  // another thread has posted a call meanwhile
      group_.bell().nudge();
      if (neglected() && left_alone_) left_alone_();
    }
    return *std::move(outcome);
  }
  Status outcome;
  std::atomic<bool> ended{false};
  post(call, [&](const Status& status) {
    outcome = status;
    ended.store(true, std::memory_order_release);  // pairs with the load in the wait below
  });
  wait([&] { return ended.load(std::memory_order_acquire); });
  return outcome;
}

// Counts the call as pending before it looks at closed_; close() first sets closed_, and then looks at the count.
std::optional<Status> CallQueue::run_at_once(const Call& call) {
  constexpr std::uint64_t kAlone = kDriven + kWaiter + kPending;
  std::uint64_t found = state_.load(std::memory_order_relaxed);
  do {
    if ((found & kDriven) != 0 || pending_in(found) != 0) return std::nullopt;
  } while (!state_.compare_exchange_weak(found, found + kAlone));
  if (closed_.load()) [[unlikely]] {
    state_.fetch_sub(kAlone);
    return refusal();
  }
  TRIBUTARY_ASSERT(!running_, "a call runs at once while posted call {} runs", running_->call.number);
  Call numbered = call;
  numbered.number = next_number_++;
  group_.begin(numbered);
  if (record_) {  // the other ranks already have this rank's note: they do not wait for the record
    const TimePoint now = coarse_now();
    record_begin(numbered, now, now);
  }
  const Status& outcome = group_.finish();
  std::optional<Status> result(outcome);
  count(numbered, outcome);
  state_.fetch_sub(kAlone);
  return result;
}

void CallQueue::post(const Call& call, Done done, Begin begin) {
  std::unique_lock lock(posting_);
  if (closed_.load()) {
    lock.unlock();
    return done(refusal());
  }
  state_.fetch_add(kPending);
  posted_.push_back({call, std::move(done), record_ ? coarse_now() : TimePoint{}});
  lock.unlock();
  if (begin == Begin::now) drive();
  if (neglected() && left_alone_) left_alone_();
}

void CallQueue::close(const Error& why) {
  {
    const std::lock_guard lock(posting_);
    if (!closed_.load()) refused_ = why;
    closed_.store(true);
  }
  if (pending() == 0) return;
  group_.fail(why);
  drain();
}

Status CallQueue::refusal() const {
  const std::lock_guard lock(posting_);
  return std::unexpected(refused_);
}

std::optional<CallQueue::Posted> CallQueue::next() {
  const std::lock_guard lock(posting_);
  if (posted_.empty()) return std::nullopt;
  Posted first = std::move(posted_.front());
  posted_.pop_front();
  return first;
}

void CallQueue::record_begin(const Call& call, TimePoint queued_at, TimePoint now) noexcept {
  record_->began(call.number, call.signature, FlightPath::shared_memory, {.queued = queued_at, .started = now});
}

void CallQueue::record_end(const Call& call, const Status& outcome) noexcept {
  record_->ended(call.number, FlightPath::shared_memory, outcome ? FlightOutcome::success : FlightOutcome::failure,
                 coarse_now());
  if (!outcome) record_->failed(outcome.error().message);
}

void CallQueue::count(const Call& call, const Status& outcome) noexcept {
  if (record_) record_end(call, outcome);
  if (!outcome) return;
  ended_.store(ended_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  bytes_.store(bytes_.load(std::memory_order_relaxed) + payload_bytes(call.signature, group_.ranks()),
               std::memory_order_relaxed);
}

bool CallQueue::drive() {
  const Driving drives(state_);
  if (!drives) return false;
  while (true) {
    if (!running_) {
      running_ = next();
      if (!running_) return true;
      running_->call.number = next_number_++;
      if (record_) record_begin(running_->call, running_->queued_at, coarse_now());
      group_.begin(running_->call);
    }
    const bool over = group_.advance();
    steps_.store(group_.steps(), std::memory_order_relaxed);
    if (!over) return false;
    TRIBUTARY_ASSERT(pending() > 0, "call {} has ended, and none was pending", running_->call.number);
    const Posted past = *std::exchange(running_, std::nullopt);
    count(past.call, group_.outcome());
    // Count the call as ended before `done`: the thread that `done` wakes may call again at once, and must find the
    // queue idle.
    state_.fetch_sub(kPending);
    past.done(group_.outcome());
    group_.bell().nudge();  // another thread of this rank may sleep until this call ends
  }
}

void CallQueue::attend() {
  const Driving drives(state_);
  if (drives) group_.attend();
}

void CallQueue::inspect() {
  const Driving drives(state_);
  if (drives) group_.inspect();
}

}  // namespace tributary::client::local
