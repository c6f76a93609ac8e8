#pragma once
// Participants in the turns of a SocketCore: channels and listeners.
#include <cstddef>
#include <cstdint>
#include <memory>

#include "tributary/transport/channel.h"

namespace tributary::transport {

/// Something with a socket. Owned by the core from enter() to leave(), and by whoever uses it.
class Pollable : public std::enable_shared_from_this<Pollable> {
 public:
  virtual ~Pollable() = default;
  /// The system has told these epoll events. Marks only: no callback, no call to the system.
  virtual void mark(std::uint32_t events) = 0;
  /// Does what is due, a bounded part of it. Runs callbacks.
  virtual void turn() = 0;
  /// Writes what is queued, a bounded part of it. Runs on_sent callbacks.
  virtual void write_turn() {}
  /// The time of set_deadline() has come. No callback.
  virtual void on_deadline() {}
  /// The transport ends. No callback.
  virtual void shut_down() = 0;

  // ---- for those that share memory with another process (SocketCore::watch_memory)
  /// The other side has written what this has not seen: a turn is due. Cheap; asked in every turn of the transport.
  [[nodiscard]] virtual bool memory_changed() const noexcept { return false; }
  /// The thread is about to sleep, or does not any more: the other side is told to ring, or not to.
  virtual void set_asleep(bool /*asleep*/) noexcept {}

 private:
  friend class SocketCore;
  static constexpr std::size_t kNotRegistered = ~std::size_t{0};
  std::size_t registered_at_ = kNotRegistered;
  std::size_t watched_at_ = kNotRegistered;
  TimePoint deadline_ = TimePoint::max();  // max: none
  bool due_ = false;
  bool dirty_ = false;
};
using PollablePtr = std::shared_ptr<Pollable>;

}  // namespace tributary::transport
