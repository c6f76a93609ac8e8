#include "client/api/request.h"

#include <utility>

#include "tributary/protocol/assert.h"

namespace tributary::client {

void Request::complete(const Status& status) {
  std::function<void()> then;
  {
    std::lock_guard lock(mutex_);
    if (done_.load(std::memory_order_relaxed)) return;
    outcome_ = status;
    // Count under the lock: another thread that ends the request must not free its buffers meanwhile.
    if (values_ && status) values_->see_result();
    if (!status) comm_->set(status.error().message);
    done_.store(true, std::memory_order_release);  // pairs with done()
    // Notify under the lock: a waiting thread may destroy the request as soon as it can see that done_ is true.
    changed_.notify_all();
    then = std::exchange(then_, nullptr);
  }
  if (then) then();
}

bool Request::when_done(std::function<void()> then) {
  {
    std::lock_guard lock(mutex_);
    if (then_) return false;
    if (!done_.load(std::memory_order_relaxed)) {
      then_ = std::move(then);
      return true;
    }
  }
  then();
  return true;
}

bool Request::wait(std::optional<TimePoint> deadline) {
  if (done()) return true;
  std::unique_lock lock(mutex_);
  const auto is_done = [this] { return done_.load(std::memory_order_relaxed); };
  if (!deadline) {
    changed_.wait(lock, is_done);
    return true;
  }
  return changed_.wait_until(lock, *deadline, is_done);
}

tributary_status Request::report_outcome() const noexcept {
  TRIBUTARY_ASSERT(done(), "the outcome of a request of communicator {} is read before it is there", comm_->id());
  if (!outcome_) return report(outcome_.error(), comm_.get());
  if (source_into_ != nullptr) *source_into_ = peer_;
  return TRIBUTARY_OK;
}

}  // namespace tributary::client
