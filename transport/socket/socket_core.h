#pragma once
// The turns of a transport on sockets and shared memory. A turn serves the sockets that are ready and the participants
// that are due, and writes queued frames. Connections and listeners take part as Pollables; several kinds of them may
// share one core, and so one wait.
#include <memory>
#include <span>
#include <vector>

#include "transport/socket/pollable.h"
#include "transport/socket/poller.h"
#include "transport/turn/deadlines.h"
#include "transport/turn/due_list.h"
#include "transport/turn/engine.h"
#include "transport/turn/turn_part.h"

namespace tributary::transport {

class SocketCore : public turn::Engine<SocketCore>, public turn::Rounds {
 public:
  /// `busy_poll`, `spin_max`: as in TcpSettings.
  SocketCore(Duration busy_poll, Duration spin_max) : Engine(busy_poll, spin_max) {}
  virtual ~SocketCore() = default;
  SocketCore(const SocketCore&) = delete;
  SocketCore& operator=(const SocketCore&) = delete;

  virtual void shut_down();

  // ---- A core that another transport drives: that transport calls poll() without letting it wait
  /// Lets another transport drive this core. The returned descriptor is readable when a socket has an event, or a call
  /// was posted.
  [[nodiscard]] int be_driven() noexcept;
  /// True if poll() has work now, even if the descriptor is not readable.
  [[nodiscard]] bool has_work() const noexcept { return !idle() || !watched_.empty(); }
  /// The time at which poll() must run even if the descriptor is not readable.
  [[nodiscard]] TimePoint first_deadline() const noexcept { return deadlines_.first(); }

  // ---- Calls of Pollables, on the transport's thread
  [[nodiscard]] Poller& poller() noexcept { return poller_; }
  /// Makes the core call turn() in this poll or the next.
  void make_due(Pollable& what) { due_.add(what); }
  /// Makes the core call write_turn() soon.
  void make_dirty(Pollable& what) { dirty_.add(what); }
  /// Makes the core call on_deadline() when `limit` is over. Replaces a deadline that was set before; leave() clears
  /// it.
  void set_deadline(Pollable& what, Duration limit);
  void clear_deadline(Pollable& what) noexcept { deadlines_.clear(what); }
  void enter(Pollable& what);
  /// Makes the core look at the participant's memory in every turn, until leave().
  void watch_memory(Pollable& what);
  /// Removes a participant. May destroy it, unless it has another owner.
  void leave(Pollable& what) noexcept;

 private:
  friend class turn::Engine<SocketCore>;
  // ---- Calls of the engine
  void begin_poll(bool waits);
  [[nodiscard]] bool idle() const noexcept { return due_.empty() && dirty_.empty() && !has_posted(); }
  turn::Looked look(bool spins);
  turn::Looked sleep(TimePoint now, TimePoint until);
  [[nodiscard]] static TimePoint time() { return Clock::now(); }
  void wake() noexcept { poller_.wake(); }

  void mark_ready(Duration wait) noexcept;
  void mark_changed() noexcept;
  void note_sole_teller(std::span<const epoll_event> events) noexcept;
  [[nodiscard]] bool try_sole_teller() noexcept;
  void spin_on_memory() noexcept;
  [[nodiscard]] bool fall_asleep() noexcept;
  void wake_up() noexcept;
  void run_marked(TimePoint now);
  void run_expired(TimePoint now);
  void run_due();
  void flush_dirty();

  Poller poller_;
  turn::Deadlines<Pollable, &Pollable::deadline_> deadlines_;
  turn::DueList<PollablePtr, &Pollable::due_> due_;
  turn::DueList<PollablePtr, &Pollable::dirty_> dirty_;
  std::vector<PollablePtr> registered_;
  std::vector<Pollable*> watched_;  // participants whose memory other processes change; all are in registered_
  std::size_t turns_unasked_ = 0;   // turns since the system was last asked
  Pollable* teller_ = nullptr;      // participant whose socket had the last event; it is in registered_
  std::uint32_t tellings_ = 0;      // number of that participant's events in a row, up to kTellingsMin
  bool asleep_ = false;             // this thread sleeps, and all processes that share memory with it know it
};

}  // namespace tributary::transport
