#pragma once
// The proof by which two ranks show each other that both know the group's secret, before either says or believes
// anything else:
//
//   accepting side -> connecting side   its nonce
//   connecting side -> accepting side   its own nonce, its proof
//   accepting side -> connecting side   its proof
//
// A proof is an HMAC under the group's secret over both nonces, both ranks, the purpose of the connection and the role
// of the side that proves. So it is good for one connection, one pair of ranks, one purpose and one role: it is worth
// nothing when it is repeated, sent back or carried to another connection. The same hash gives the keys that seal the
// later frames of the connection (frame_seal.h), so that a process which merely passes the messages on cannot add a
// frame of its own.
//
// The classes take messages and give answers, without clock or socket. A message at the wrong time is an error, not an
// assertion: it comes from the network.
#include <cstdint>
#include <string>
#include <string_view>

#include "client/control/unique_id.h"

namespace tributary::client {

/// The subject of a proof, besides the nonces. Both sides must use the same.
struct ProofScope {
  std::string purpose;           // "control", or the class of a connection between ranks
  std::uint32_t connecting = 0;  // the connecting side's rank
  std::uint32_t accepting = 0;
  std::string detail{};  // further text that the connecting side sends with its proof; it cannot be changed on the way
};

/// The connecting side's answer.
struct ProofAnswer {
  std::string nonce;
  std::string proof;
};

/// One key for each direction; the same on both sides.
struct SessionKeys {
  Secret from_connecting{};
  Secret from_accepting{};
};

/// Returns 32 hexadecimal digits. Errc::io: the system has no random bytes.
[[nodiscard]] Result<std::string> make_nonce();

/// The connecting side of one connection.
class ConnectingProof {
 public:
  ConnectingProof(const Secret& secret, ProofScope scope) : secret_(secret), scope_(std::move(scope)) {}
  /// Answers the other side's nonce. Call it once.
  [[nodiscard]] Result<ProofAnswer> answer(std::string_view nonce);
  /// Checks the other side's proof. Errc::denied: it is not the rank it should be. After an error the connection cannot
  /// be proved.
  [[nodiscard]] Status check(std::string_view proof);
  /// True after the answer was given and before the proof was seen.
  [[nodiscard]] bool awaits_proof() const noexcept { return state_ == State::answered; }
  [[nodiscard]] bool proved() const noexcept { return state_ == State::proved; }
  [[nodiscard]] const ProofScope& scope() const noexcept { return scope_; }
  /// Call only once proved.
  [[nodiscard]] SessionKeys keys() const;

 private:
  enum class State : std::uint8_t { fresh, answered, proved, failed };

  const Secret secret_;
  const ProofScope scope_;
  State state_ = State::fresh;
  std::string theirs_, ours_;  // nonces
};

/// The accepting side of one connection.
class AcceptingProof {
 public:
  /// `nonce` comes from make_nonce() and was never used before. With an empty nonce no side can prove anything.
  AcceptingProof(const Secret& secret, std::string nonce) : secret_(secret), ours_(std::move(nonce)) {}
  [[nodiscard]] const std::string& nonce() const noexcept { return ours_; }
  /// Checks the other side's answer and returns this side's proof, to be sent. Call it once. Errc::denied: it is not
  /// the rank that it claims to be. After an error the connection cannot be proved.
  [[nodiscard]] Result<std::string> check(const ProofScope& scope, const ProofAnswer& answer);
  [[nodiscard]] bool proved() const noexcept { return state_ == State::proved; }
  /// The scope that the other side has proved. Call only once proved.
  [[nodiscard]] const ProofScope& scope() const noexcept { return scope_; }
  /// Call only once proved.
  [[nodiscard]] SessionKeys keys() const;

 private:
  enum class State : std::uint8_t { fresh, proved, failed };

  const Secret secret_;
  const std::string ours_;
  State state_ = State::fresh;
  ProofScope scope_;
  std::string theirs_;
};

}  // namespace tributary::client
