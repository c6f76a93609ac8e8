#pragma once
// How the two ends of a connection show each other that both know the handle's secret, before NCCL gets the connection
// and before a message is sent or taken:
//
//   connecting end -> listening end   peer_hello, empty: over verbs a first frame says whose memory it is that follows
//   listening end -> connecting end   challenge: its nonce
//   connecting end -> listening end   peer_hello: its nonce, its proof, which part of which connection the channel is
//   listening end -> connecting end   challenge: its proof
//
// The proofs are those of client/control/mutual_proof.h. They bind, besides both nonces and both roles, the address
// that the handle names and, over TCP, the address and port of the connecting end as each end sees it. So a proof is
// good for one connection: what stands between two ends, with connections of its own to both, is refused by both. They
// bind the part, too: a connection may be several sockets, each of which is proved by itself.
// NCCL's connections pass no NAT: a handle holds the address of the host's own interface.
//
// Both classes belong to a ChannelHandler, and are called within its callbacks.
#include <array>
#include <string>

#include "client/control/mutual_proof.h"
#include "client/plugins/nccl/p2p/handle.h"
#include "tributary/transport/channel.h"

namespace tributary::nccl {

/// Where a connection leads, as both ends must see it.
struct ConnectionEnds {
  std::string listening;   // the handle's address
  std::string connecting;  // empty over verbs
};

/// The part that one channel has in one of NCCL's connections.
struct ConnectionPart {
  std::string connection;  // 32 hexadecimal digits, which the connecting end has chosen
  std::uint32_t number = 0;
  std::uint32_t parts = 1;
};

inline constexpr std::size_t kNonceDigits = 32, kProofDigits = 64, kPartDigits = 36;

/// kPartDigits hexadecimal digits: the connection, the number, the parts.
[[nodiscard]] std::string to_text(const ConnectionPart& part);
/// Nothing for a text that to_text() does not make.
[[nodiscard]] std::optional<ConnectionPart> read_part(std::string_view text);

class ConnectingGreeting {
 public:
  ConnectingGreeting(const Secret& secret, const ConnectionPart& part) : secret_(secret), part_(to_text(part)) {}

  /// Once, before anything else is sent. `memory_group`: of the connection's frames.
  void begin(transport::Channel& channel, std::uint64_t memory_group);
  [[nodiscard]] transport::Placement place(const FrameHeader& header);
  /// The payload that place() has accepted is there. An error is the last word: the channel is to be closed.
  [[nodiscard]] Status take(transport::Channel& channel, const ConnectionEnds& ends);
  [[nodiscard]] bool proved() const noexcept { return proof_ && proof_->proved(); }

 private:
  [[nodiscard]] Status answer(transport::Channel& channel, const ConnectionEnds& ends);

  const Secret secret_;
  const std::string part_;
  std::optional<client::ConnectingProof> proof_;  // from the other end's nonce on
  std::array<char, kProofDigits> said_{};
  std::size_t said_bytes_ = 0;
};

class ListeningGreeting {
 public:
  /// `parts`: how many every connection has, by the handle.
  ListeningGreeting(const Secret& secret, ConnectionEnds ends, std::uint32_t parts)
      : secret_(secret), ends_(std::move(ends)), parts_(parts) {}

  /// Once. Errc::io: the system has no random bytes.
  [[nodiscard]] Status begin(transport::Channel& channel);
  [[nodiscard]] transport::Placement place(const FrameHeader& header);
  /// As that of the other end. The last word is sent by send(), from here: on_sent() says when it is on its way.
  [[nodiscard]] Status take(transport::Channel& channel);
  [[nodiscard]] bool proved() const noexcept { return part_.has_value(); }
  /// Once proved.
  [[nodiscard]] const ConnectionPart& part() const { return part_.value(); }

 private:
  const Secret secret_;
  const ConnectionEnds ends_;
  const std::uint32_t parts_;
  std::optional<client::AcceptingProof> proof_;  // from begin() on
  bool greeted_ = false;                         // the empty frame has come
  std::array<char, kNonceDigits + kProofDigits + kPartDigits> said_{};
  std::string last_word_;
  std::optional<ConnectionPart> part_;
};

}  // namespace tributary::nccl
