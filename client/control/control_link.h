#pragma once
// The connections between ranks and rank 0, and accepted connections whose other end is not known yet (arrivals.h).
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/control/arrivals.h"
#include "client/control/control_message.h"
#include "client/control/frame_seal.h"
#include "client/control/mutual_proof.h"
#include "tributary/transport/channel.h"

namespace tributary::client {

class Arrival;

/// Takes the events of one control connection. All calls come from the transport's callbacks.
class ControlLinkUser {
 public:
  virtual ~ControlLinkUser() = default;
  /// Returns this rank's description of itself. Called only after the other side has proved to be rank 0.
  [[nodiscard]] virtual std::string introduction() const = 0;
  virtual void on_control(std::uint32_t from, const ControlMessage& message) = 0;
  /// Called when the connection to `rank` has ended.
  virtual void control_closed(std::uint32_t rank, const std::string& why) = 0;
  /// Called when a process answers at rank 0's address, but has not proved to be rank 0.
  virtual void not_rank_0(const std::string& why) = 0;
};

/// Takes over the connections that have proved themselves.
class ArrivalUser {
 public:
  virtual ~ArrivalUser() = default;
  [[nodiscard]] virtual const Secret& secret() const = 0;
  [[nodiscard]] virtual std::uint32_t rank() const = 0;
  /// True once this rank knows all ranks, so that it can take over connections between ranks.
  [[nodiscard]] virtual bool has_met() const = 0;
  /// Called on rank 0 when a rank introduces itself.
  virtual void on_hello(Arrival& arrival, const std::string& body) = 0;
  /// Called when a higher rank has connected to this rank.
  virtual void on_peer_hello(Arrival& arrival) = 0;
};

/// The seals of both directions of a control connection, for one of its ends.
struct ControlSeals {
  FrameSeal out, in;
};

/// One end of a connection of the control star: it carries whole messages, in order, sealed. Before rank 0 has proved
/// itself, the connecting side ignores rank 0's messages, and sends it none.
class ControlLink final : public transport::ChannelHandler {
 public:
  /// `peer`: the rank at the other end.
  ControlLink(ControlLinkUser& user, std::uint32_t peer) : user_(user), peer_(peer) {}
  void connect(transport::Transport& transport, const Endpoint& to, transport::Duration limit, ConnectingProof proof);
  void adopt(std::unique_ptr<transport::Channel> channel, const ControlSeals& seals) {
    channel_ = std::move(channel);
    seals_.emplace(seals);
  }
  /// Sends a message. Before both sides have proved themselves, it sends nothing.
  void send(const ControlMessage& message);
  void close_after_flush(transport::Duration limit);

  transport::Placement on_header(transport::Channel& channel, const FrameHeader& header) override;
  void on_frame(transport::Channel& channel, const FrameHeader& header, std::span<std::byte> payload) override;
  void on_closed(transport::Channel& channel, const Error& error) override;

 private:
  void on_proof_frame(const FrameHeader& header, std::string_view text);
  void answer_nonce(std::string_view nonce);
  void check_proof(std::string_view proof);
  void turned_away(const std::string& why);

  ControlLinkUser& user_;
  const std::uint32_t peer_;
  std::optional<ConnectingProof> proof_;  // set on the connecting side
  std::optional<ControlSeals> seals_;     // set once both sides have proved themselves
  std::vector<std::byte> body_;
  std::unique_ptr<transport::Channel> channel_;
};

/// An accepted connection. Both sides prove themselves (mutual_proof.h). The other side's next frame then shows that it
/// has accepted this side's proof, and the ArrivalUser takes the connection over.
class Arrival final : public transport::ChannelHandler {
 public:
  Arrival(ArrivalUser& user, Arrivals& arrivals, WaitingRoom::Id id, std::unique_ptr<transport::Channel> channel,
          std::string nonce);

  void challenge();
  void refuse(const std::string& reason) { arrivals_.refuse(id_, reason); }
  /// Sends the frame that says why this rank refuses the connection; the caller then closes the connection.
  void say_refusal(const std::string& reason);
  /// Lets the connection go on: this rank now knows the members for which the connection waits.
  void resume();
  /// Passes the callbacks of a proved connection to `target` from now on; the caller has taken the channel.
  void hand_on(transport::ChannelHandler& target);
  /// Ends this object: the channel's callbacks now go straight to the target.
  void leave() { arrivals_.closed(id_); }
  [[nodiscard]] std::unique_ptr<transport::Channel>& channel() noexcept { return channel_; }
  /// Returns the scope that the other side has proved.
  [[nodiscard]] const ProofScope& scope() const noexcept { return proof_.scope(); }
  /// Gives the seals to the handler that takes the connection over.
  [[nodiscard]] ControlSeals take_seals() { return *seals_; }
  [[nodiscard]] const std::string& peer() const noexcept { return peer_; }

  transport::Placement on_header(transport::Channel& channel, const FrameHeader& header) override;
  void on_frame(transport::Channel& channel, const FrameHeader& header, std::span<std::byte> payload) override;
  void on_sent(transport::Channel& channel, std::uint64_t cookie) override;
  void on_closed(transport::Channel& channel, const Error& error) override;

 private:
  void check_answer(const FrameHeader& header, const std::string& body);

  ArrivalUser& user_;
  Arrivals& arrivals_;
  const WaitingRoom::Id id_;
  std::unique_ptr<transport::Channel> channel_;
  AcceptingProof proof_;
  std::optional<ControlSeals> seals_;  // set for a control connection once it is proved
  const std::string peer_;
  transport::ChannelHandler* target_ = nullptr;
  std::vector<std::byte> body_;
  bool waiting_ = false;
};

}  // namespace tributary::client
