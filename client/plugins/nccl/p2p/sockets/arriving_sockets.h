#pragma once
// The listening end's sockets, from their arrival until each is proved and all sockets of one connection have come.
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/plugins/nccl/p2p/engine.h"
#include "client/plugins/nccl/p2p/greeting.h"
#include "client/plugins/nccl/p2p/sockets/stream_socket.h"
#include "tributary/protocol/assert.h"

namespace tributary::nccl {

/// A socket that has arrived. The caller holds the engine's lock in every call.
class ArrivingSocket final : public transport::ChannelHandler {
 public:
  ArrivingSocket(Engine& engine, std::unique_ptr<transport::Channel> channel, const NetHandle& handle);
  ArrivingSocket(const ArrivingSocket&) = delete;
  ArrivingSocket& operator=(const ArrivingSocket&) = delete;

  /// Returns true once both ends are proved. Call take() and part() only after that.
  [[nodiscard]] bool ready() const noexcept { return socket_.has_value(); }
  [[nodiscard]] bool proved() const noexcept { return greeting_.proved(); }
  [[nodiscard]] bool failed() const noexcept { return failed_; }
  [[nodiscard]] StreamSocket take() {
    TRIBUTARY_ASSERT(ready() && proved(), "a socket is taken before its ends are proved, or twice");
    return std::move(*socket_);
  }
  [[nodiscard]] const ConnectionPart& part() const { return greeting_.part(); }

 private:
  transport::Placement on_header(transport::Channel&, const FrameHeader& header) override;
  void on_frame(transport::Channel& channel, const FrameHeader&, std::span<std::byte>) override;
  void on_sent(transport::Channel& channel, std::uint64_t) override;
  void on_closed(transport::Channel&, const Error&) override { failed_ = true; }

  Engine& engine_;
  ListeningGreeting greeting_;
  bool failed_ = false;
  std::optional<StreamSocket> socket_;
  std::unique_ptr<transport::Channel> channel_;  // last member: its callbacks use the other members
};

/// The proved sockets of connections whose other sockets are still missing. Their number has a bound, because a process
/// that knows the secret could begin connections without end and complete none.
class GatheringSockets {
 public:
  explicit GatheringSockets(std::uint32_t parts) : parts_(parts) {}
  /// Adds a proved socket as one part of its connection. If it is the last missing part, returns all sockets of the
  /// connection in the order of their numbers; else returns none. A second socket with the same number ends the
  /// connection.
  [[nodiscard]] std::vector<StreamSocket> add(const ConnectionPart& part, StreamSocket socket);

 private:
  struct Gathering {
    std::string connection;
    std::vector<std::optional<StreamSocket>> sockets;
    std::uint32_t here = 0;
  };
  [[nodiscard]] std::deque<Gathering>::iterator of(const std::string& connection);

  const std::uint32_t parts_;
  std::deque<Gathering> gatherings_;  // in the order in which their first sockets came
};

}  // namespace tributary::nccl
