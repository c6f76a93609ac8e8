#pragma once
// The proof by which two ranks show each other that both know the group's secret. It comes before all other messages:
//
//   accepting side -> connecting side   its nonce
//   connecting side -> accepting side   its own nonce, its proof
//   accepting side -> connecting side   its proof
//
// A proof is an HMAC under the group's secret over both nonces, both ranks, the purpose of the connection and the role
// of the side that proves. So it is valid for one connection, one pair of ranks, one purpose and one role: a process
// that repeats it, sends it back or uses it on another connection proves nothing. The same hash gives the keys that
// seal the later frames of the connection (frame_seal.h), so a process that only passes the messages on cannot add a
// frame.
//
// The classes take messages and return answers; they use no clock and no socket. A message at the wrong time is an
// error, not an assertion: it comes from the network.
#include <cstdint>
#include <string>
#include <string_view>

#include "client/control/unique_id.h"

namespace tributary::client {

/// The subject of a proof, except the nonces. Both sides must use the same scope.
struct ProofScope {
  std::string purpose;           // "control", or the class of a connection between ranks
  std::uint32_t connecting = 0;  // the connecting side's rank
  std::uint32_t accepting = 0;
  std::string detail{};  // further text of the connecting side; the proof protects it against changes
};

/// The connecting side's answer.
struct ProofAnswer {
  std::string nonce;
  std::string proof;
};

/// The keys of the connection, one for each direction. Both sides have the same keys.
struct SessionKeys {
  Secret from_connecting{};
  Secret from_accepting{};
};

/// Returns a new nonce of 32 hexadecimal digits. Errc::io: the system has no random bytes.
[[nodiscard]] Result<std::string> make_nonce();

/// The proofs of one connection, on its connecting side.
class ConnectingProof {
 public:
  ConnectingProof(const Secret& secret, ProofScope scope) : secret_(secret), scope_(std::move(scope)) {}
  /// Answers the other side's nonce. Call it once.
  [[nodiscard]] Result<ProofAnswer> answer(std::string_view nonce);
  /// Checks the other side's proof. Errc::denied: the other side is not the rank that it should be. After an error
  /// neither side can prove itself on this connection.
  [[nodiscard]] Status check(std::string_view proof);
  /// True from the call of answer() until the call of check().
  [[nodiscard]] bool awaits_proof() const noexcept { return state_ == State::answered; }
  [[nodiscard]] bool proved() const noexcept { return state_ == State::proved; }
  [[nodiscard]] const ProofScope& scope() const noexcept { return scope_; }
  /// Returns the keys. Call it only if proved() returns true.
  [[nodiscard]] SessionKeys keys() const;

 private:
  enum class State : std::uint8_t { fresh, answered, proved, failed };

  const Secret secret_;
  const ProofScope scope_;
  State state_ = State::fresh;
  std::string theirs_, ours_;  // the nonces of the other side and of this side
};

/// The proofs of one connection, on its accepting side.
class AcceptingProof {
 public:
  /// `nonce` comes from make_nonce() and was never used before. With an empty nonce no side can prove itself.
  AcceptingProof(const Secret& secret, std::string nonce) : secret_(secret), ours_(std::move(nonce)) {}
  [[nodiscard]] const std::string& nonce() const noexcept { return ours_; }
  /// Checks the other side's answer and returns this side's proof, for the caller to send. Call it once. Errc::denied:
  /// the other side is not the rank that it claims to be. After an error neither side can prove itself on this
  /// connection.
  [[nodiscard]] Result<std::string> check(const ProofScope& scope, const ProofAnswer& answer);
  [[nodiscard]] bool proved() const noexcept { return state_ == State::proved; }
  /// Returns the scope that the other side has proved. Call it only if proved() returns true.
  [[nodiscard]] const ProofScope& scope() const noexcept { return scope_; }
  /// Returns the keys. Call it only if proved() returns true.
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
