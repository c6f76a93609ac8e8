#pragma once
// The connections between ranks and rank 0, and the ones that have not said yet whose they are (arrivals.h).
#include <memory>
#include <string>
#include <vector>

#include "client/bootstrap/arrivals.h"
#include "client/recovery/control.h"
#include "tributary/transport/channel.h"

namespace tributary::client {

class Communicator;

/// One end of the control star: whole messages, in order.
class ControlLink final : public transport::ChannelHandler {
 public:
  /// `peer`: the rank at the other end.
  ControlLink(Communicator& communicator, std::uint32_t peer) : communicator_(communicator), peer_(peer) {}
  void connect(transport::Transport& transport, const Endpoint& to, transport::Duration limit);
  void adopt(std::unique_ptr<transport::Channel> channel) { channel_ = std::move(channel); }
  void send(const ControlMessage& message);
  void close_after_flush(transport::Duration limit);

  transport::Placement on_header(transport::Channel& channel, const FrameHeader& header) override;
  void on_frame(transport::Channel& channel, const FrameHeader& header, std::span<std::byte> payload) override;
  void on_closed(transport::Channel& channel, const Error& error) override;

 private:
  Communicator& communicator_;
  const std::uint32_t peer_;
  std::vector<std::byte> body_;
  std::unique_ptr<transport::Channel> channel_;
};

/// A connection that was accepted: challenges it, and hands it on once it has proved to be a rank of this group.
class Arrival final : public transport::ChannelHandler {
 public:
  Arrival(Communicator& communicator, Arrivals& arrivals, WaitingRoom::Id id,
          std::unique_ptr<transport::Channel> channel, std::string nonce);

  void challenge();
  void refuse(const std::string& reason) { arrivals_.refuse(id_, reason); }
  /// Whoever it was waiting for is known now.
  void resume();
  /// It has proved itself. From now on `target` gets the callbacks; the caller has taken the channel.
  void hand_on(transport::ChannelHandler& target);
  [[nodiscard]] std::unique_ptr<transport::Channel>& channel() noexcept { return channel_; }
  [[nodiscard]] const std::string& nonce() const noexcept { return nonce_; }
  [[nodiscard]] const std::string& peer() const noexcept { return peer_; }

  transport::Placement on_header(transport::Channel& channel, const FrameHeader& header) override;
  void on_frame(transport::Channel& channel, const FrameHeader& header, std::span<std::byte> payload) override;
  void on_sent(transport::Channel& channel, std::uint64_t cookie) override;
  void on_closed(transport::Channel& channel, const Error& error) override;

 private:
  Communicator& communicator_;
  Arrivals& arrivals_;
  const WaitingRoom::Id id_;
  std::unique_ptr<transport::Channel> channel_;
  const std::string nonce_;
  const std::string peer_;
  transport::ChannelHandler* target_ = nullptr;
  std::vector<std::byte> body_;
  bool waiting_ = false;
};

}  // namespace tributary::client
