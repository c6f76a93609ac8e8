#pragma once
// The user's end of a connection. Every call goes to the connection, which owns all state and may outlive this end.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "tributary/protocol/assert.h"
#include "tributary/transport/channel.h"

namespace tributary::transport {

/// `Connection` has the calls of Channel, and channel_destroyed(). It has expect(), make_room(), sealed() and
/// shares_memory() only where they differ from Channel's own. `Besides` are the further interfaces that the channel
/// implements.
template <class Core, class Connection, class... Besides>
class ForwardingChannel : public Channel, public Besides... {
 public:
  ForwardingChannel(std::shared_ptr<Core> core, std::shared_ptr<Connection> connection)
      : core_(std::move(core)), connection_(std::move(connection)) {
    TRIBUTARY_ASSERT(connection_ != nullptr, "a channel is made without a connection");
    connection_->set_channel(this);
  }
  ~ForwardingChannel() override { connection_->channel_destroyed(); }
  ForwardingChannel(const ForwardingChannel&) = delete;
  ForwardingChannel& operator=(const ForwardingChannel&) = delete;

  bool send(const FrameHeader& header, std::span<const std::byte> payload, std::uint64_t cookie) override {
    return connection_->send(header, payload, cookie);
  }
  void send_copy(const FrameHeader& header, std::span<const std::byte> payload) override {
    connection_->send_copy(header, payload);
  }
  void give_back(std::span<const std::byte> payload) override { connection_->give_back(payload); }
  void expect(const FrameHeader& header, std::span<std::byte> place) override {
    if constexpr (kExpects) connection_->expect(header, place);
  }
  bool uses_expected_places() const noexcept override { return kExpects; }
  void make_room(std::uint32_t payloads, std::uint32_t payload_bytes) override {
    if constexpr (requires(Connection& c) { c.make_room(payloads, payload_bytes); }) {
      connection_->make_room(payloads, payload_bytes);
    }
  }
  void set_turn_share(std::shared_ptr<TurnShare> share) override {
    if constexpr (requires(Connection& c) { c.set_turn_share(share); }) connection_->set_turn_share(std::move(share));
  }
  void set_priority(std::uint32_t priority) override {
    if constexpr (requires(Connection& c) { c.set_priority(priority); }) connection_->set_priority(priority);
  }
  void resume() override { connection_->resume(); }
  void close() override { connection_->close(); }
  void close_after_flush(Duration limit) override { connection_->close_after_flush(limit); }
  bool closed() const noexcept override { return connection_->closed(); }
  bool shares_memory() const noexcept override {
    if constexpr (requires(const Connection& c) { c.shares_memory(); }) return connection_->shares_memory();
    return false;
  }
  std::string peer() const override { return connection_->peer(); }
  std::optional<SealedLink> sealed() const override {
    if constexpr (requires(const Connection& c) { c.sealed(); }) return connection_->sealed();
    return std::nullopt;
  }

 protected:
  [[nodiscard]] Connection& own() const noexcept { return *connection_; }
  /// Goes on with another connection. The earlier connection gets no further calls.
  void replace(std::shared_ptr<Connection> other) {
    TRIBUTARY_ASSERT(other != nullptr && connection_->closed(), "the connection to {} is replaced while it lives",
                     connection_->peer());
    connection_ = std::move(other);
    connection_->set_channel(this);
  }

 private:
  static constexpr bool kExpects =
      requires(Connection& c, const FrameHeader& header, std::span<std::byte> place) { c.expect(header, place); };

  // The core is destroyed after the connection, which gives its socket's place, memory and counts back to the core.
  std::shared_ptr<Core> core_;
  std::shared_ptr<Connection> connection_;
};

}  // namespace tributary::transport
