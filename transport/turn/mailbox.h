#pragma once
// Messages of other threads for the one thread that drives a transport.
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

#include "transport/turn/alarm.h"
#include "tributary/protocol/assert.h"

namespace tributary::transport::turn {

/// Any thread posts messages; one thread, the owner, takes them. A take() that finds no message takes no lock, and in
/// steady state neither side allocates.
template <class Message>
class Mailbox {
 public:
  /// Posts a message, on any thread. Returns true if the owner may be asleep, and the caller must wake it.
  [[nodiscard]] bool post(Message message) {
    {
      const std::lock_guard lock(mutex_);
      posted_.push_back(std::move(message));
    }
    const bool wakes = alarm_.ring();
    if (wakes) posted_something_.notify_one();
    return wakes;
  }

  // ---- Calls of the owner
  /// Hands over the messages in the order in which they were posted. `handle` may call post() and take(). Messages that
  /// it posts come with the next take().
  template <class Handle>
  void take(Handle handle) {
    if (!alarm_.take()) return;
    std::vector<Message> taken = std::move(spare_);
    TRIBUTARY_ASSERT(taken.empty(), "{} messages would be handed over twice", taken.size());
    {
      const std::lock_guard lock(mutex_);
      taken.swap(posted_);
    }
    for (Message& message : taken) handle(message);
    taken.clear();
    spare_ = std::move(taken);
  }
  /// Destroys all posted messages. It does so outside the lock, because the destructor of a message may post another
  /// message.
  void forget() {
    std::vector<Message> forgotten;
    const std::lock_guard lock(mutex_);
    forgotten.swap(posted_);
  }
  [[nodiscard]] bool has_some() const noexcept { return alarm_.rung(); }
  /// These are Alarm::fall_asleep() and Alarm::wake_up().
  [[nodiscard]] bool fall_asleep() noexcept { return alarm_.fall_asleep(); }
  void wake_up() noexcept { alarm_.wake_up(); }
  /// Sleeps until a message is posted. For an owner that does not wait for sockets, too. Called after fall_asleep().
  void wait(std::chrono::nanoseconds limit) {
    std::unique_lock lock(mutex_);
    posted_something_.wait_for(lock, limit, [this] { return !posted_.empty(); });
  }

 private:
  Alarm alarm_;  // rung after `posted_` was filled
  std::mutex mutex_;
  std::condition_variable posted_something_;
  std::vector<Message> posted_;  // guarded by mutex_
  std::vector<Message> spare_;   // only the owner uses it; empty, keeps memory for the next take()
};

}  // namespace tributary::transport::turn
