#pragma once
// The connecting end's sockets of one connection, from the first packet until both ends of each socket are proved.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/plugins/nccl/p2p/engine.h"
#include "client/plugins/nccl/p2p/greeting.h"
#include "client/plugins/nccl/p2p/sockets/stream_socket.h"
#include "tributary/protocol/assert.h"

namespace tributary::nccl {

/// One socket of a connection. The caller holds the engine's lock in every call.
class ConnectingSocket final : public transport::ChannelHandler {
 public:
  ConnectingSocket(Engine& engine, const NetHandle& to, const ConnectionPart& part, transport::Duration limit);
  ~ConnectingSocket() override;
  ConnectingSocket(const ConnectingSocket&) = delete;
  ConnectingSocket& operator=(const ConnectingSocket&) = delete;

  /// Returns true once the other end is proved and the transport has released the socket. This may need several calls.
  [[nodiscard]] bool ready();
  /// Returns the reason why the socket will never be ready; empty if it may still become ready.
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }
  /// Call it only after ready() has returned true.
  [[nodiscard]] StreamSocket take() {
    TRIBUTARY_ASSERT(socket_, "a socket to {} is taken before it is ready", listening_at_);
    return std::move(*socket_);
  }

 private:
  transport::Placement on_header(transport::Channel& channel, const FrameHeader& header) override;
  void on_frame(transport::Channel& channel, const FrameHeader&, std::span<std::byte>) override;
  void on_closed(transport::Channel&, const Error& error) override;

  Engine& engine_;
  const Secret secret_;
  const std::string listening_at_;
  ConnectingGreeting greeting_;
  std::string failure_;
  std::optional<StreamSocket> socket_;
  std::unique_ptr<transport::Channel> channel_;  // last member: its callbacks use the other members
};

/// All sockets of one connection. The caller holds the engine's lock in every call.
class ConnectingSockets {
 public:
  enum class Stage : std::uint8_t { under_way, ready, failed };

  ConnectingSockets(Engine& engine, const NetHandle& to, transport::Duration limit);
  [[nodiscard]] Stage stage();
  /// Returns the reason of the first failure that stage() has found.
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }
  /// Returns the sockets in the order of their numbers. Call it only after stage() has returned `ready`.
  [[nodiscard]] std::vector<StreamSocket> take();

 private:
  const std::string listening_at_;
  const transport::TimePoint until_;
  std::vector<std::unique_ptr<ConnectingSocket>> sockets_;
  std::string failure_;
};

}  // namespace tributary::nccl
