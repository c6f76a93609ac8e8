#pragma once
// The connection behind a Channel, for every transport. Until it is open, another connection may take its place behind
// the channel.
#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "transport/channel/forwarding_channel.h"
#include "transport/channel/send_queue.h"
#include "transport/socket/socket_core.h"
#include "tributary/protocol/assert.h"

namespace tributary::transport {

/// The state that a connection, before it is open, hands to the connection that takes its place.
struct Beginning {
  ChannelHandler* handler = nullptr;  // nullptr: close_after_flush() was called
  SendQueue queue;
  TimePoint deadline = TimePoint::max();  // time by which the opening or the flush must end
  Duration limit{};                       // time allowed for the opening, as the caller gave it
  bool detached = false;                  // close_after_flush() was called: no callback follows
};

class Connection : public Pollable {
 public:
  /// nullptr: the channel is destroyed.
  [[nodiscard]] Channel* channel() const noexcept { return channel_; }
  [[nodiscard]] ChannelHandler* handler() const noexcept { return handler_; }
  void set_channel(Channel* channel) noexcept { channel_ = channel; }
  void set_handler(ChannelHandler* handler) noexcept {
    TRIBUTARY_ASSERT(handler != nullptr, "the connection to {} gets no handler", peer_);
    handler_ = handler;
  }

  /// -1: the connection has no socket whose packets are its frames.
  [[nodiscard]] virtual int socket() const noexcept { return -1; }
  /// See Channel::set_priority(). A connection that gets its socket later calls apply_priority() then.
  void set_priority(std::uint32_t priority) {
    priority_ = priority;
    apply_priority();
  }
  [[nodiscard]] std::uint32_t priority() const noexcept { return priority_; }

  // ---- Calls of the user: they neither call back nor block.
  virtual bool send(const FrameHeader& header, std::span<const std::byte> payload, std::uint64_t cookie) = 0;
  virtual void send_copy(const FrameHeader& header, std::span<const std::byte> payload) = 0;
  virtual void give_back(std::span<const std::byte> /*payload*/) {}
  virtual void resume() = 0;
  virtual void close() = 0;
  virtual void close_after_flush(Duration limit) = 0;
  virtual void channel_destroyed() = 0;
  [[nodiscard]] virtual bool closed() const noexcept = 0;
  [[nodiscard]] const std::string& peer() const noexcept { return peer_; }
  [[nodiscard]] virtual bool shares_memory() const noexcept { return false; }
  [[nodiscard]] virtual std::optional<SealedLink> sealed() const { return std::nullopt; }

 protected:
  Connection(std::string peer, ChannelHandler* handler) : peer_(std::move(peer)), handler_(handler) {}
  /// Gives the connection's socket its priority().
  void apply_priority() const noexcept {
    if (priority_ == 0 || socket() < 0) return;
    (void)::setsockopt(socket(), SOL_SOCKET, SO_PRIORITY, &priority_, sizeof priority_);
  }

  std::string peer_;
  Channel* channel_ = nullptr;
  ChannelHandler* handler_ = nullptr;

 private:
  std::uint32_t priority_ = 0;  // 0: the system's own
};

class ConnectionChannel final : public ForwardingChannel<SocketCore, Connection> {
 public:
  using ForwardingChannel::ForwardingChannel;
  [[nodiscard]] Connection& connection() noexcept { return own(); }
  /// Goes on with `other`. The earlier connection was handed_on(), and gets no further calls.
  void go_on_with(std::shared_ptr<Connection> other) {
    other->set_turn_share(own().turn_share());
    other->set_priority(own().priority());
    replace(std::move(other));
  }
};

}  // namespace tributary::transport
