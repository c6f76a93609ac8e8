#include "client/communicator/operation_queue.h"

#include <algorithm>

#include "tributary/protocol/assert.h"

namespace tributary::client {

using State = Operation::State;

void OperationQueue::add(std::unique_ptr<Operation> operation) {
  const std::uint64_t number = operation->number;
  TRIBUTARY_ASSERT(number + 1 == next_ && number == first_ + operations_.size(),
                   "operation {} is queued, but {} is next, after {} operations from {} on", number, next_,
                   operations_.size(), first_);
  recent_[number % recent_.size()] = operation->signature;
  operations_.push_back(std::move(operation));
  advance();
}

Operation* OperationQueue::find(std::uint64_t number) const {
  if (number < first_ || number - first_ >= operations_.size()) return nullptr;
  TRIBUTARY_ASSERT(operations_[number - first_]->number == number, "operation {} is in the place of {}",
                   operations_[number - first_]->number, number);
  return operations_[number - first_].get();
}

Operation* OperationQueue::started(std::uint64_t number) const {
  return number < next_to_start_ ? find(number) : nullptr;
}

Operation* OperationQueue::first_unfinished() const {
  const auto first = std::ranges::find_if(operations_, [](const auto& o) { return o->state != State::done; });
  return first == operations_.end() ? nullptr : first->get();
}

const Signature* OperationQueue::recent(std::uint64_t number) const noexcept {
  return number < next_ && next_ - number <= recent_.size() ? &recent_[number % recent_.size()] : nullptr;
}

bool OperationQueue::copies_own_part(const Operation& o) const noexcept {
  return !o.in_place && o.signature.count > 0 &&
         (o.signature.collective == Collective::all_gather ||
          (o.signature.collective == Collective::broadcast && o.signature.root == rank_));
}

bool OperationQueue::may_start(const Operation& o, State way) const {
  switch (way) {
    case State::by_hosts:
      return fallback_unfinished_ == 0 && o.input_whole();
    case State::in_network:
      return fallback_unfinished_ == 0 && (!copies_own_part(o) || o.input_whole());
    default:
      return unfinished_ == 0 && o.input_whole();
  }
}

// Starts operations in a loop. An operation may end within begin(), and its end calls advance() again: the inner call
// returns at once, so that the stack does not grow.
void OperationQueue::advance() {
  if (advancing_) return;
  advancing_ = true;
  for (Operation* next = find(next_to_start_); next != nullptr; next = find(next_to_start_)) {
    ways_.settle_memory(*next);
    if (!remainders_.empty() || !ways_.may_begin()) break;
    const Route route = ways_.route_of(*next);
    if (!may_start(*next, route.way)) break;
    TRIBUTARY_ASSERT(next->number == next_to_start_ && next->state == State::queued, "{} starts where {} is next",
                     next->number, next_to_start_);
    ++next_to_start_;
    start(*next, route);
  }
  advancing_ = false;
}

void OperationQueue::start(Operation& o, const Route& route) {
  o.state = route.way;
  TRIBUTARY_ASSERT(fallback_unfinished_ == 0 && (unfinished_ == 0 || o.state != State::fallback),
                   "{} starts beside {} others, {} of them between the ranks", to_string(o), unfinished_,
                   fallback_unfinished_);
  o.cut = route.cut;
  const bool split = o.cut.has_value();
  if (split) o.parts_left = 2;
  ++unfinished_;
  if (o.state == State::fallback) ++fallback_unfinished_;
  if (split) shares_.push_back(&o);
  ways_.begin(o, route);  // `o` may be gone now, unless its share keeps it
  if (split) run_shares();
}

void OperationQueue::run_shares() {
  while (!shares_.empty() && !ways_.shares_busy() && shares_.front()->input_whole()) {
    Operation& next = *shares_.front();
    shares_.pop_front();
    ways_.run_share(next);
  }
}

void OperationQueue::part_ended(Operation& o) {
  TRIBUTARY_ASSERT(o.parts_left > 0 && o.parts_left <= (o.cut ? 2U : 1U), "a part of {} ends with {} left",
                   to_string(o), o.parts_left);
  if (--o.parts_left == 0) finish(o, {});
}

void OperationQueue::share_ended(Operation& o) {
  part_ended(o);
  run_shares();
}

void OperationQueue::finish(Operation& o, const Status& status) {
  if (o.state == State::done) return;
  const State way = o.state;
  TRIBUTARY_ASSERT(way != State::fallback || fallback_unfinished_ > 0, "{} ends between the ranks, and none runs there",
                   to_string(o));
  TRIBUTARY_ASSERT(way == State::queued || unfinished_ > 0, "{} ends, and none has started", to_string(o));
  if (way == State::fallback) --fallback_unfinished_;
  if (way != State::queued) --unfinished_;
  check();
  o.state = State::done;
  ways_.account(o, way, status.has_value());
  const Operation::Done done = std::move(o.on_done);
  o.release_memory();
  forget_finished();  // `o` may be gone now
  if (done) done(status);
  advance();
  ways_.after_end();
}

void OperationQueue::check() const {
  TRIBUTARY_ASSERT(fallback_unfinished_ <= unfinished_ && unfinished_ <= operations_.size(),
                   "{} operations between the ranks, of {} that have started, of {} that are queued",
                   fallback_unfinished_, unfinished_, operations_.size());
}

void OperationQueue::forget_finished() {
  while (!operations_.empty() && operations_.front()->state == State::done) {
    operations_.pop_front();
    ++first_;
  }
}

void OperationQueue::leave_tree(Operation& o, std::vector<Piece> rest) {
  TRIBUTARY_ASSERT(o.state == State::in_network, "{} leaves a tree and is in none", to_string(o));
  o.state = State::fallback;
  ++fallback_unfinished_;
  check();
  remainders_.push_back({&o, std::move(rest)});
}

// Runs remainders in a loop, as advance() does: a remainder may end within run_remainder(), for example if it is empty.
void OperationQueue::run_remainders() {
  if (running_remainders_) return;
  running_remainders_ = true;
  while (!remainders_.empty() && !ways_.fallback_busy() && remainders_.front().operation->input_whole()) {
    Remainder next = std::move(remainders_.front());
    remainders_.pop_front();
    ways_.run_remainder(*next.operation, next.pieces);
  }
  running_remainders_ = false;
  if (remainders_.empty()) advance();
}

void OperationQueue::fallback_ended(Operation& o) {
  part_ended(o);
  if (!remainders_.empty()) run_remainders();
}

OperationQueue::Ends OperationQueue::fail_all(const Error& error,
                                              const std::function<std::string(const Operation&)>& text_of) {
  remainders_.clear();
  shares_.clear();
  Ends ends;
  for (auto& o : operations_) {
    o->release_memory();
    if (o->state == State::done) continue;
    ends.emplace_back(std::move(o->on_done), fail(error.code, error.message + "; here " + text_of(*o)));
  }
  graveyard_ = std::move(operations_);
  operations_.clear();
  fallback_unfinished_ = unfinished_ = 0;
  first_ = next_to_start_ = next_;
  return ends;
}

}  // namespace tributary::client
