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

  /// `group` must outlive the queue, and is used through it alone. `left_alone` is called, by any thread, when there is
  /// something to drive and nobody waits: neglected() has become true.
  explicit CallQueue(LocalGroup& group, std::function<void()> left_alone = {})
      : group_(group), left_alone_(std::move(left_alone)) {}
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;

  // Any thread, all of them. The order of calls is that of run() and post(), and so are their numbers.
  /// Blocks until the call has ended. Allocates nothing where no earlier call is under way.
  [[nodiscard]] Status run(const Call& call);
  enum class Begin : std::uint8_t {
    now,    // what of the call can be done at once is done before post() returns
    later,  // by whoever drives
  };
  /// `done` is called once, by whichever thread finds that the call has ended; it must not call the queue.
  void post(const Call& call, Done done, Begin begin = Begin::now);
  /// Does what can be done now, unless another thread is at it. True: nothing is under way.
  bool drive();
  /// Drives until `ended()`, or the deadline has passed; false then. `ended` becomes true by some call's `done`.
  template <class Ended>
  bool wait(Ended ended, std::optional<TimePoint> deadline = std::nullopt) {
    const bool in_time = wait_here(ended, deadline);
    if (neglected() && left_alone_) left_alone_();
    return in_time;
  }
  /// Waits until every call has ended.
  void drain() {
    wait([this] { return pending() == 0; });
  }
  /// Ends what is outstanding with `why`, on all ranks, and refuses what comes later. When it returns the group uses no
  /// caller's buffer any more.
  void close(const Error& why);

  /// For the progress thread: there is something to drive, and no thread that waits for it.
  [[nodiscard]] bool neglected() const noexcept {
    const std::uint64_t state = state_.load();
    return pending_in(state) > 0 && (state & kWaiters) == 0;
  }
  /// Between calls, now and then: LocalGroup::attend().
  void attend();
  /// Time-outs and dead ranks, for whoever drives and is not wait() or run().
  void inspect();
  /// Grows when a drive() was worth while.
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_.load(std::memory_order_relaxed); }
  /// Calls that have ended well, and this rank's payload in them.
  [[nodiscard]] std::uint64_t ended() const noexcept { return ended_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

 private:
  struct Posted {
    Call call;
    Done done;
  };
  struct Waiter {
    explicit Waiter(std::atomic<std::uint64_t>& state) noexcept : state_(state) { state_.fetch_add(kWaiter); }
    ~Waiter() { state_.fetch_sub(kWaiter); }
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;
    std::atomic<std::uint64_t>& state_;
  };
  /// Who has it may use the group.
  class Driving {
   public:
    explicit Driving(std::atomic<std::uint64_t>& state) noexcept
        : state_(state), mine_((state.fetch_or(kDriven) & kDriven) == 0) {}
    ~Driving() {
      if (mine_) state_.fetch_and(~kDriven);
    }
    Driving(const Driving&) = delete;
    Driving& operator=(const Driving&) = delete;
    explicit operator bool() const noexcept { return mine_; }

   private:
    std::atomic<std::uint64_t>& state_;
    const bool mine_;
  };
  template <class Ended>
  bool wait_here(Ended& ended, std::optional<TimePoint> deadline) {
    Wait wait(group_.bell(), group_.crowded());
    const Waiter counted(state_);
    while (!ended()) {
      drive();
      if (ended()) return true;
      if (wait.pause([&] { return drive(), ended(); })) inspect();
      if (deadline && std::chrono::steady_clock::now() >= *deadline) return ended();
    }
    return true;
  }
  static constexpr std::uint64_t kPending = 1;                  // a call that has not ended
  static constexpr std::uint64_t kWaiter = 1ULL << 32;          // a thread that waits
  static constexpr std::uint64_t kDriven = 1ULL << 63;          // a thread uses the group
  static constexpr std::uint64_t kWaiters = kDriven - kWaiter;  // all of them
  static constexpr std::size_t pending_in(std::uint64_t state) noexcept { return state & (kWaiter - 1); }
  [[nodiscard]] std::size_t pending() const noexcept { return pending_in(state_.load()); }
  [[nodiscard]] std::optional<Status> run_at_once(const Call& call);
  [[nodiscard]] std::optional<Posted> next();
  void count(const Call& call, const Status& outcome) noexcept;
  [[nodiscard]] Status refusal() const;

  LocalGroup& group_;
  const std::function<void()> left_alone_;
  std::optional<Posted> running_;  // under kDriven
  std::uint64_t next_number_ = 0;  // under kDriven
  mutable std::mutex posting_;     // taken last, held for a moment
  std::deque<Posted> posted_;      // under posting_
  Error refused_{};                // under posting_: why, once closed_
  // Sequentially consistent, both: each is written before the other is looked at.
  std::atomic<bool> closed_{false};
  std::atomic<std::uint64_t> state_{0};  // one word, so that a call which finds nobody changes it once, and once back
  std::atomic<std::uint64_t> steps_{0}, ended_{0}, bytes_{0};  // written under kDriven
};

/// A rank's group and its calls on it.
struct GroupCalls {
  GroupCalls(std::unique_ptr<LocalGroup> owned, std::function<void()> left_alone)
      : group(std::move(owned)), queue(*group, std::move(left_alone)) {}
  const std::unique_ptr<LocalGroup> group;
  CallQueue queue;
};

}  // namespace tributary::client::local
