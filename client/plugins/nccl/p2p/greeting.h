#pragma once
// How the two ends of a connection show each other that both know the handle's secret, before NCCL gets the connection
// and before a message is sent or taken:
//
//   connecting end -> listening end   peer_hello, empty: over verbs a first frame says whose memory it is that follows
//   listening end -> connecting end   challenge: its nonce
//   connecting end -> listening end   peer_hello: its nonce, its proof
//   listening end -> connecting end   challenge: its proof
//
// The proofs are those of client/bootstrap/mutual_proof.h. They bind, besides both nonces and both roles, the address
// that the handle names and, over TCP, the address and port of the connecting end as each end sees it. So a proof is
// good for one connection: what stands between two ends, with connections of its own to both, is refused by both.
// NCCL's connections pass no NAT: a handle holds the address of the host's own interface.
//
// Both classes belong to a ChannelHandler, and are called within its callbacks.
#include <array>
#include <string>

#include "client/bootstrap/mutual_proof.h"
#include "client/plugins/nccl/p2p/handle.h"
#include "tributary/transport/channel.h"

namespace tributary::nccl {

/// Where a connection leads, as both ends must see it.
struct ConnectionEnds {
  std::string listening;   // the handle's address
  std::string connecting;  // empty over verbs
};

inline constexpr std::size_t kNonceDigits = 32, kProofDigits = 64;

class ConnectingGreeting {
 public:
  explicit ConnectingGreeting(const Secret& secret) : secret_(secret) {}

  /// Once, before anything else is sent. `memory_group`: of the connection's frames.
  void begin(transport::Channel& channel, std::uint64_t memory_group);
  [[nodiscard]] transport::Placement place(const FrameHeader& header);
  /// The payload that place() has accepted is there. An error is the last word: the channel is to be closed.
  [[nodiscard]] Status take(transport::Channel& channel, const ConnectionEnds& ends);
  [[nodiscard]] bool proved() const noexcept { return proof_ && proof_->proved(); }

 private:
  [[nodiscard]] Status answer(transport::Channel& channel, const ConnectionEnds& ends);

  const Secret secret_;
  std::optional<client::ConnectingProof> proof_;  // from the other end's nonce on
  std::array<char, kProofDigits> said_{};
  std::size_t said_bytes_ = 0;
};

class ListeningGreeting {
 public:
  ListeningGreeting(const Secret& secret, ConnectionEnds ends) : secret_(secret), ends_(std::move(ends)) {}

  /// Once. Errc::io: the system has no random bytes.
  [[nodiscard]] Status begin(transport::Channel& channel);
  [[nodiscard]] transport::Placement place(const FrameHeader& header);
  /// As that of the other end.
  [[nodiscard]] Status take(transport::Channel& channel);
  [[nodiscard]] bool proved() const noexcept { return proof_ && proof_->proved(); }

 private:
  const Secret secret_;
  const ConnectionEnds ends_;
  std::optional<client::AcceptingProof> proof_;  // from begin() on
  bool greeted_ = false;                         // the empty frame has come
  std::array<char, kNonceDigits + kProofDigits> said_{};
};

}  // namespace tributary::nccl
