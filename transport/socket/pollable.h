#pragma once
// Participants in the turns of a SocketCore: channels and listeners.
#include <cstddef>
#include <cstdint>
#include <memory>

#include "tributary/transport/channel.h"

namespace tributary::transport {

/// A participant with a socket. Its owners are the core, from enter() to leave(), and its users.
class Pollable : public std::enable_shared_from_this<Pollable> {
 public:
  virtual ~Pollable() = default;
  /// The system has reported these epoll events. Only marks: no callback, no system call.
  virtual void mark(std::uint32_t events) = 0;
  /// Does what is due, a bounded part of it. Runs callbacks.
  virtual void turn() = 0;
  /// Writes what is queued, a bounded part of it. Runs on_sent callbacks.
  virtual void write_turn() {}
  /// The time of set_deadline() has come. Makes no callback.
  virtual void on_deadline() {}
  /// The transport ends. Makes no callback.
  virtual void shut_down() = 0;

  // ---- for participants that share memory with another process (SocketCore::watch_memory)
  /// True: the other side has written something new, and a turn is due. Cheap; asked in every turn of the transport.
  [[nodiscard]] virtual bool memory_changed() const noexcept { return false; }
  /// The thread is about to sleep, or is awake again: from now on the other side must ring, or need not.
  virtual void set_asleep(bool /*asleep*/) noexcept {}

 private:
  friend class SocketCore;
  static constexpr std::size_t kNotRegistered = ~std::size_t{0};
  std::size_t registered_at_ = kNotRegistered;
  std::size_t watched_at_ = kNotRegistered;
  TimePoint deadline_ = TimePoint::max();  // max: no deadline
  bool due_ = false;
  bool dirty_ = false;
};
using PollablePtr = std::shared_ptr<Pollable>;

}  // namespace tributary::transport
