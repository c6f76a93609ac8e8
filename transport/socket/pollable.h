#pragma once
// Participants in the turns of a SocketCore: channels and listeners.
#include <cstddef>
#include <cstdint>
#include <memory>

#include "transport/turn/turn_part.h"
#include "tributary/transport/channel.h"

namespace tributary::transport {

/// A participant with a socket. Its owners are the core, from enter() to leave(), and its users.
class Pollable : public turn::TurnPart, public std::enable_shared_from_this<Pollable> {
 public:
  virtual ~Pollable() = default;
  /// Notes that the system has reported these epoll events. Makes no callback and no system call.
  virtual void mark(std::uint32_t events) = 0;
  /// Does a bounded part of the work that is due. Runs callbacks.
  virtual void turn() = 0;
  /// Writes a bounded part of the queued frames. Runs on_sent callbacks.
  virtual void write_turn() {}
  /// Called when the time of set_deadline() has come. Makes no callback.
  virtual void on_deadline() {}
  /// Called when the transport ends. Makes no callback.
  virtual void shut_down() = 0;

  // ---- Calls of participants that share memory with another process (SocketCore::watch_memory)
  /// True if the other side has written new bytes, so that a turn is due. It must be cheap: the core asks in every
  /// turn.
  [[nodiscard]] virtual bool memory_changed() const noexcept { return false; }
  /// Tells the other side whether it must ring. It need not ring while this thread is awake, because this thread then
  /// looks at the memory in every turn.
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
