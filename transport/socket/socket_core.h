#pragma once
// The turn of a transport on sockets and shared memory: what is ready, what is due, what is to be written. Connections
// and listeners take part as Pollables; those of several kinds may share one core, and with it one wait.
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "socket/pollable.h"
#include "socket/poller.h"
#include "turn/deadlines.h"
#include "turn/spin_estimate.h"

namespace tributary::transport {

class SocketCore {
 public:
  /// `busy_poll`, `spin_max`: as in TcpSettings.
  SocketCore(Duration busy_poll, Duration spin_max) : busy_poll_(busy_poll), spin_estimate_(spin_max) {}
  virtual ~SocketCore() = default;
  SocketCore(const SocketCore&) = delete;
  SocketCore& operator=(const SocketCore&) = delete;

  std::size_t poll(Duration wait);
  void post(std::function<void()> call);
  virtual void shut_down();

  // ---- driven by another transport's turns, which poll() it without ever letting it wait
  /// From now on. What is returned can be read when a socket has something to tell, or a call was posted.
  [[nodiscard]] int be_driven() noexcept;
  /// poll() has something to do now, whatever the descriptor says.
  [[nodiscard]] bool has_work() const noexcept { return !idle() || !watched_.empty(); }
  /// When poll() has something to do at the latest.
  [[nodiscard]] TimePoint first_deadline() const noexcept { return deadlines_.first(); }

  // ---- for Pollables, on the transport's thread
  [[nodiscard]] Poller& poller() noexcept { return poller_; }
  /// turn() will be called in this poll or the next.
  void make_due(Pollable& what);
  /// write_turn() will be called soon.
  void make_dirty(Pollable& what);
  /// on_deadline() will be called once `limit` is over, instead of what was set before; leave() clears it.
  void set_deadline(Pollable& what, Duration limit);
  void clear_deadline(Pollable& what) noexcept { deadlines_.clear(what); }
  void enter(Pollable& what);
  /// From here until leave() its memory is looked at in every turn.
  void watch_memory(Pollable& what);
  /// May destroy it, unless somebody else uses it.
  void leave(Pollable& what) noexcept;
  void count_callback() noexcept { ++callbacks_; }

 protected:
  void forget_posted();

 private:
  void run_ready();
  void mark_ready(Duration wait) noexcept;
  void mark_changed() noexcept;
  void note_sole_teller(std::span<const epoll_event> events) noexcept;
  [[nodiscard]] bool try_sole_teller() noexcept;
  void spin_on_memory() noexcept;
  [[nodiscard]] bool fall_asleep() noexcept;
  void wake_up() noexcept;
  void run_marked();
  void run_expired();
  void run_posted();
  void run_due();
  void flush_dirty();
  void wait_for_work(Duration wait);
  [[nodiscard]] bool idle() const noexcept {
    return due_.empty() && dirty_.empty() && !has_posted_.load(std::memory_order_relaxed);
  }

  const Duration busy_poll_;
  Poller poller_;
  Deadlines deadlines_;
  SpinEstimate spin_estimate_;
  std::vector<PollablePtr> due_, due_now_;
  std::vector<PollablePtr> dirty_, dirty_now_;
  std::vector<PollablePtr> registered_;
  std::vector<Pollable*> watched_;  // those whose memory others change; a part of registered_
  std::size_t turns_unasked_ = 0;   // since the system was last asked
  Pollable* teller_ = nullptr;      // whose socket the system told of last; a part of registered_
  std::uint32_t tellings_ = 0;      // so often in a row, and of no other
  std::size_t callbacks_ = 0;
  bool polling_ = false;
  bool asleep_ = false;
  bool shut_ = false;

  std::mutex posted_mutex_;  // guards posted_
  std::vector<std::function<void()>> posted_;
  std::atomic<bool> has_posted_ = false;  // set after posted_ was filled, so that a turn without posts takes no lock
  std::atomic<bool> sleeping_ = false;    // so that a post to a thread that is awake makes no system call
};

}  // namespace tributary::transport
