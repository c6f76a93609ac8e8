#pragma once
// The turn of a TcpTransport: what is ready, what is due, what is to be written. Sockets and listeners take part as
// Pollables.
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "tcp/deadlines.h"
#include "tcp/pollable.h"
#include "tcp/poller.h"
#include "tcp/resolver.h"
#include "spin_estimate.h"
#include "tributary/transport/tcp.h"

namespace tributary::transport {

class TcpCore {
 public:
  explicit TcpCore(const TcpSettings& settings);

  std::size_t poll(Duration wait);
  void post(std::function<void()> call);
  void shut_down();

  // ---- for Pollables, on the transport's thread
  [[nodiscard]] Poller& poller() noexcept { return poller_; }
  [[nodiscard]] Resolver& resolver() noexcept { return resolver_; }
  [[nodiscard]] const TcpSettings& settings() const noexcept { return settings_; }
  /// turn() will be called in this poll or the next.
  void make_due(Pollable& what);
  /// write_turn() will be called soon.
  void make_dirty(Pollable& what);
  /// on_deadline() will be called once `limit` is over, instead of what was set before; leave() clears it.
  void set_deadline(Pollable& what, Duration limit);
  void clear_deadline(Pollable& what) noexcept { deadlines_.clear(what); }
  void enter(Pollable& what);
  /// May destroy it, unless somebody else uses it.
  void leave(Pollable& what) noexcept;
  void count_callback() noexcept { ++callbacks_; }
  TcpStatistics statistics;

 private:
  void run_ready();
  void mark_ready(Duration wait) noexcept;
  void run_marked();
  void run_expired();
  void run_posted();
  void run_due();
  void flush_dirty();
  void wait_for_work(Duration wait);
  [[nodiscard]] bool idle() const noexcept {
    return due_.empty() && dirty_.empty() && !has_posted_.load(std::memory_order_relaxed);
  }

  TcpSettings settings_;
  Poller poller_;
  Deadlines deadlines_;
  SpinEstimate spin_estimate_;
  std::vector<PollablePtr> due_, due_now_;
  std::vector<PollablePtr> dirty_, dirty_now_;
  std::vector<PollablePtr> registered_;
  std::size_t callbacks_ = 0;
  bool polling_ = false;
  bool shut_ = false;

  std::mutex posted_mutex_;  // guards posted_
  std::vector<std::function<void()>> posted_;
  std::atomic<bool> has_posted_ = false;  // set after posted_ was filled, so that a turn without posts takes no lock
  std::atomic<bool> sleeping_ = false;    // so that a post to a thread that is awake makes no system call
  Resolver resolver_;                     // last: its thread posts
};

}  // namespace tributary::transport
