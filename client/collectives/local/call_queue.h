#pragma once
// The calls of one rank on its local group, in their order, driven by whoever has time: the thread that waits for a
// result does the work itself, with no hand-over to another thread; what nobody waits for goes on when the progress
// thread calls drive().
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "client/collectives/local/local_group.h"

namespace tributary::client::local {

class CallQueue {
 public:
  using Done = std::function<void(const Status&)>;

  /// `group` must outlive the queue.
  explicit CallQueue(LocalGroup& group) noexcept : group_(group) {}
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;

  // Any thread, all of them. The order of calls is that of run() and post().
  /// Blocks until the call has ended. Allocates nothing where no earlier call is under way.
  [[nodiscard]] Status run(const Call& call);
  /// `done` is called once, by whichever thread finds that the call has ended; it must not call the queue.
  void post(const Call& call, Done done);
  /// Does what can be done now, unless another thread is at it. True: nothing is under way.
  bool drive();
  /// Drives until `ended()`, or the deadline has passed; false then. `ended` becomes true by some call's `done`.
  template <class Ended>
  bool wait(Ended ended, std::optional<TimePoint> deadline = std::nullopt) {
    Wait wait(group_.bell(), group_.crowded());
    const Waiter counted(waiters_);
    while (!ended()) {
      drive();
      if (ended()) return true;
      if (!wait.pause([&] { return drive(), ended(); })) continue;
      inspect();
      if (deadline && std::chrono::steady_clock::now() >= *deadline) return ended();
    }
    return true;
  }
  /// For the progress thread: there is something to drive, and no thread that waits for it.
  [[nodiscard]] bool neglected() const noexcept {
    return pending_.load(std::memory_order_acquire) > 0 && waiters_.load(std::memory_order_acquire) == 0;
  }
  /// Time-outs and dead ranks, for whoever drives and is not wait() or run().
  void inspect();

 private:
  struct Posted {
    Call call;
    Done done;
  };
  struct Waiter {
    explicit Waiter(std::atomic<std::uint32_t>& count) noexcept : count_(count) { ++count_; }
    ~Waiter() { --count_; }
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;
    std::atomic<std::uint32_t>& count_;
  };
  [[nodiscard]] std::optional<Posted> next();

  LocalGroup& group_;
  std::mutex driving_;                   // whose holder may use the group
  std::optional<Posted> running_;        // under driving_
  std::mutex posting_;                   // taken last, held for a moment
  std::deque<Posted> posted_;            // under posting_
  std::atomic<std::size_t> pending_{0};  // posted and not ended
  std::atomic<std::uint32_t> waiters_{0};
};

}  // namespace tributary::client::local
