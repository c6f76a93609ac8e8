#pragma once
// The greeting: the two ends of a connection prove to each other that both know the handle's secret, before NCCL gets
// the connection and before any message is sent or accepted:
//
//   connecting end -> listening end   peer_hello, empty (over verbs, the first frame names the memory group)
//   listening end -> connecting end   challenge: the listening end's nonce
//   connecting end -> listening end   peer_hello: its own nonce and proof, and the connection and part of this channel
//   listening end -> connecting end   challenge: the listening end's proof
//
// client/control/mutual_proof.h makes the proofs. They bind both nonces, both roles, the address in the handle and,
// over TCP, the address and port of the connecting end as each end sees them. So a proof is valid for one connection
// only, and both ends refuse a relay that has its own connection to each end. The proofs also bind the part: a
// connection may consist of several sockets, and each socket is proved by itself.
// NCCL's connections pass no NAT: a handle holds the address of the host's own interface.
//
// A ChannelHandler owns an object of one of the two classes, and calls it within its callbacks.
#include <array>
#include <string>

#include "client/control/mutual_proof.h"
#include "client/plugins/nccl/p2p/handle.h"
#include "tributary/transport/channel.h"

namespace tributary::nccl {

/// The two addresses of a connection. Both ends must see the same two addresses.
struct ConnectionEnds {
  std::string listening;   // address in the handle
  std::string connecting;  // address of the connecting end; empty over verbs
};

/// Says which part of one of NCCL's connections a channel is.
struct ConnectionPart {
  std::string connection;  // 32 hexadecimal digits, chosen by the connecting end
  std::uint32_t number = 0;
  std::uint32_t parts = 1;
};

inline constexpr std::size_t kNonceDigits = 32, kProofDigits = 64, kPartDigits = 36;

/// Writes kPartDigits hexadecimal digits: the connection, the number of the part, and the number of parts.
[[nodiscard]] std::string to_text(const ConnectionPart& part);
/// Reads a text of to_text(). Returns nullopt for any other text.
[[nodiscard]] std::optional<ConnectionPart> read_part(std::string_view text);

class ConnectingGreeting {
 public:
  ConnectingGreeting(const Secret& secret, const ConnectionPart& part) : secret_(secret), part_(to_text(part)) {}

  /// Call it once, before any other frame is sent. `memory_group` is the memory group of the connection's frames.
  void begin(transport::Channel& channel, std::uint64_t memory_group);
  [[nodiscard]] transport::Placement place(const FrameHeader& header);
  /// Reads the payload that place() has accepted, once the payload has come. After an error the caller closes the
  /// channel.
  [[nodiscard]] Status take(transport::Channel& channel, const ConnectionEnds& ends);
  [[nodiscard]] bool proved() const noexcept { return proof_ && proof_->proved(); }

 private:
  [[nodiscard]] Status answer(transport::Channel& channel, const ConnectionEnds& ends);

  const Secret secret_;
  const std::string part_;
  std::optional<client::ConnectingProof> proof_;  // set once the other end's nonce has come
  std::array<char, kProofDigits> said_{};
  std::size_t said_bytes_ = 0;
};

class ListeningGreeting {
 public:
  /// `parts` is the number of parts of every connection, as the handle says.
  ListeningGreeting(const Secret& secret, ConnectionEnds ends, std::uint32_t parts)
      : secret_(secret), ends_(std::move(ends)), parts_(parts) {}

  /// Call it once. Returns Errc::io if the system has no random bytes.
  [[nodiscard]] Status begin(transport::Channel& channel);
  [[nodiscard]] transport::Placement place(const FrameHeader& header);
  /// Reads a payload in the same way as ConnectingGreeting::take(). It sends this end's proof from memory of this
  /// object. The channel's on_sent() says when the proof has been handed to the system.
  [[nodiscard]] Status take(transport::Channel& channel);
  [[nodiscard]] bool proved() const noexcept { return part_.has_value(); }
  /// Call it only after proved() has returned true.
  [[nodiscard]] const ConnectionPart& part() const { return part_.value(); }

 private:
  const Secret secret_;
  const ConnectionEnds ends_;
  const std::uint32_t parts_;
  std::optional<client::AcceptingProof> proof_;  // set by begin()
  bool greeted_ = false;                         // true once the connecting end's empty frame has come
  std::array<char, kNonceDigits + kProofDigits + kPartDigits> said_{};
  std::string last_word_;
  std::optional<ConnectionPart> part_;
};

}  // namespace tributary::nccl
