#pragma once
// The turn of a TcpTransport: what is ready, what is due, what is to be written. Sockets and listeners take part as
// Pollables.
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <memory>
#include <mutex>
#include <vector>

#include "tributary/transport/tcp.h"

namespace tributary::transport {

namespace asio = boost::asio;
using Descriptor = asio::posix::basic_stream_descriptor<asio::io_context::executor_type>;

/// Something with a socket.
class Pollable {
 public:
  virtual ~Pollable() = default;
  /// Does what is due, a bounded part of it. Runs callbacks.
  virtual void turn() = 0;
  /// Writes what is queued, a bounded part of it. Runs on_sent callbacks.
  virtual void write_turn() {}
  /// The transport ends. No callback.
  virtual void shut_down() = 0;

 private:
  friend class TcpCore;
  static constexpr std::size_t kNotRegistered = ~std::size_t{0};
  std::size_t registered_at_ = kNotRegistered;
  bool due_ = false;
  bool dirty_ = false;
};
using PollablePtr = std::shared_ptr<Pollable>;

class TcpCore {
 public:
  explicit TcpCore(const TcpSettings& settings);

  std::size_t poll(Duration wait);
  void post(std::function<void()> call);
  void shut_down();

  // ---- for Pollables, on the transport's thread
  [[nodiscard]] asio::io_context& io() noexcept { return io_; }
  [[nodiscard]] const TcpSettings& settings() const noexcept { return settings_; }
  /// turn() will be called in this poll or the next.
  void make_due(const PollablePtr& what);
  /// write_turn() will be called soon.
  void make_dirty(const PollablePtr& what);
  void enter(Pollable& what);
  void leave(Pollable& what) noexcept;
  void count_callback() noexcept { ++callbacks_; }
  TcpStatistics statistics;

 private:
  void run_ready();
  void run_posted();
  void run_due();
  void flush_dirty();
  void wait_for_work(TimePoint deadline);
  [[nodiscard]] bool idle() const noexcept { return due_.empty() && dirty_.empty(); }

  TcpSettings settings_;
  // No lock around descriptors: one thread owns them. Posting from other threads stays safe.
  asio::io_context io_{BOOST_ASIO_CONCURRENCY_HINT_UNSAFE_IO};
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  std::vector<PollablePtr> due_, due_now_;
  std::vector<PollablePtr> dirty_, dirty_now_;
  std::vector<Pollable*> registered_;
  std::size_t callbacks_ = 0;
  bool polling_ = false;
  bool shut_ = false;

  std::mutex posted_mutex_;  // guards posted_
  std::vector<std::function<void()>> posted_;
  std::atomic<bool> has_posted_ = false;  // set after posted_ was filled, so that a turn without posts takes no lock
};

}  // namespace tributary::transport
