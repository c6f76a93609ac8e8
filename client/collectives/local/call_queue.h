#pragma once
// The calls of one rank on its local group, in their order. A thread that waits for a result does the work itself, and
// hands nothing to another thread. If no thread waits for a call, the progress thread does the work: it calls drive().
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "client/collectives/local/local_group.h"
#include "client/operation/flight_record.h"

namespace tributary::client::local {

class CallQueue {
 public:
  using Done = std::function<void(const Status&)>;

  /// `group` must outlive the queue, and is used only through it. `left_alone` is called, by any thread, when there is
  /// work and no thread waits for it: neglected() has become true. `record`, if there is one, gets the calls.
  explicit CallQueue(LocalGroup& group, std::function<void()> left_alone = {},
                     std::shared_ptr<FlightRecord> record = {})
      : group_(group), left_alone_(std::move(left_alone)), record_(std::move(record)) {}
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;

  // Any thread may call the functions from run() to close(). The order of run() and post() is the order of the calls,
  // and so the order of their numbers.
  /// Blocks until the call has ended. Allocates nothing if no earlier call is under way.
  [[nodiscard]] Status run(const Call& call);
  enum class Begin : std::uint8_t {
    now,    // post() at once does all work that need not wait
    later,  // the driving thread does all work
  };
  /// The thread that finds that the call has ended calls `done` once; `done` must not call the queue.
  void post(const Call& call, Done done, Begin begin = Begin::now);
  /// Does all work that need not wait, unless another thread is doing it. Returns true if no call is under way.
  bool drive();
  /// Drives until `ended()` is true; returns false if the deadline comes first. Some call's `done` makes `ended` true.
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
  /// Ends the calls under way with `why`, on all ranks, and refuses later calls. After close() the group uses no
  /// caller's buffer.
  void close(const Error& why);

  /// For the progress thread: true if calls are under way, and no thread waits for any of them.
  [[nodiscard]] bool neglected() const noexcept {
    const std::uint64_t state = state_.load();
    return pending_in(state) > 0 && (state & kWaiters) == 0;
  }
  /// Calls LocalGroup::attend() unless another thread uses the group; call it now and then.
  void attend();
  /// Looks for time-outs and dead ranks; a driver calls it outside of wait() and run(), which look themselves.
  void inspect();
  /// Returns a count that grows with each drive() that made progress.
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_.load(std::memory_order_relaxed); }
  /// Return the number of calls that have ended without an error, and the bytes of this rank's payload in them.
  [[nodiscard]] std::uint64_t ended() const noexcept { return ended_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

 private:
  struct Posted {
    Call call;
    Done done;
    TimePoint queued_at{};
  };
  struct Waiter {
    explicit Waiter(std::atomic<std::uint64_t>& state) noexcept : state_(state) { state_.fetch_add(kWaiter); }
    ~Waiter() { state_.fetch_sub(kWaiter); }
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;
    std::atomic<std::uint64_t>& state_;
  };
  /// The right to use the group.
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
  static constexpr std::uint64_t kWaiters = kDriven - kWaiter;  // the bits that count waiters
  static constexpr std::size_t pending_in(std::uint64_t state) noexcept { return state & (kWaiter - 1); }
  [[nodiscard]] std::size_t pending() const noexcept { return pending_in(state_.load()); }
  [[nodiscard]] std::optional<Status> run_at_once(const Call& call);
  [[nodiscard]] std::optional<Posted> next();
  void count(const Call& call, const Status& outcome) noexcept;
  void record_begin(const Call& call, TimePoint queued_at, TimePoint now) noexcept;
  void record_end(const Call& call, const Status& outcome) noexcept;
  [[nodiscard]] Status refusal() const;

  LocalGroup& group_;
  const std::function<void()> left_alone_;
  const std::shared_ptr<FlightRecord> record_;  // written under kDriven; may be nullptr
  std::optional<Posted> running_;               // guarded by kDriven
  std::uint64_t next_number_ = 0;               // guarded by kDriven
  mutable std::mutex posting_;                  // taken last, held briefly
  std::deque<Posted> posted_;                   // guarded by posting_
  Error refused_{};                             // guarded by posting_: the reason of close()
  // closed_ and state_ are sequentially consistent: each thread writes one of them before it looks at the other one.
  std::atomic<bool> closed_{false};
  std::atomic<std::uint64_t> state_{0};  // one word, so that a call on an idle queue changes it only twice
  std::atomic<std::uint64_t> steps_{0}, ended_{0}, bytes_{0};  // written under kDriven
};

/// A rank's group and its calls on it.
struct GroupCalls {
  GroupCalls(std::unique_ptr<LocalGroup> owned, std::function<void()> left_alone, std::shared_ptr<FlightRecord> record)
      : group(std::move(owned)), queue(*group, std::move(left_alone), std::move(record)) {}
  const std::unique_ptr<LocalGroup> group;
  CallQueue queue;
};

}  // namespace tributary::client::local
