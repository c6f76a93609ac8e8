#pragma once
// How two ranks show each other that both know the group's secret, before either says or believes anything else:
//
//   accepting side -> connecting side   its nonce
//   connecting side -> accepting side   its own nonce, its proof
//   accepting side -> connecting side   its proof
//
// A proof is an HMAC under the group's secret over both nonces, both ranks, the purpose of the connection and the role
// of the side that proves. So it is good for one connection, one pair of ranks, one purpose and one role: repeated,
// sent back or carried to another connection it is worth nothing. The same hash gives the keys that later frames of the
// connection are sealed with (frame_seal.h), so that nobody who merely passes the messages on can say a word of his
// own.
//
// Messages and answers in, nothing else: no clock, no socket. A message at the wrong time is an error, not an
// assertion: it comes from the network.
#include <cstdint>
#include <string>
#include <string_view>

#include "client/control/unique_id.h"

namespace tributary::client {

/// The subject of a proof, besides the nonces. Both sides must mean the same.
struct ProofScope {
  std::string purpose;           // "control", or the class of a connection between ranks
  std::uint32_t connecting = 0;  // the connecting side's rank
  std::uint32_t accepting = 0;
  std::string detail{};  // more that the connecting side says along with its proof, and cannot be changed
};

/// The connecting side's answer.
struct ProofAnswer {
  std::string nonce;
  std::string proof;
};

/// By direction; the same on both sides.
struct SessionKeys {
  Secret from_connecting{};
  Secret from_accepting{};
};

/// 32 hexadecimal digits. Errc::io: the system has no random bytes.
[[nodiscard]] Result<std::string> make_nonce();

/// The connecting side of one connection.
class ConnectingProof {
 public:
  ConnectingProof(const Secret& secret, ProofScope scope) : secret_(secret), scope_(std::move(scope)) {}
  /// To the other side's nonce. Once.
  [[nodiscard]] Result<ProofAnswer> answer(std::string_view nonce);
  /// The other side's proof. Errc::denied: it is not who it should be. An error is the last word.
  [[nodiscard]] Status check(std::string_view proof);
  /// The answer has been given, the proof not yet seen.
  [[nodiscard]] bool awaits_proof() const noexcept { return state_ == State::answered; }
  [[nodiscard]] bool proved() const noexcept { return state_ == State::proved; }
  [[nodiscard]] const ProofScope& scope() const noexcept { return scope_; }
  /// Once proved.
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
  /// `nonce`: of make_nonce(), never used before. With an empty one nobody can prove anything.
  AcceptingProof(const Secret& secret, std::string nonce) : secret_(secret), ours_(std::move(nonce)) {}
  [[nodiscard]] const std::string& nonce() const noexcept { return ours_; }
  /// The other side's answer: this side's proof, to be sent. Once. Errc::denied: it is not who it says that it is. An
  /// error is the last word.
  [[nodiscard]] Result<std::string> check(const ProofScope& scope, const ProofAnswer& answer);
  [[nodiscard]] bool proved() const noexcept { return state_ == State::proved; }
  /// Once proved: what the other side has proved.
  [[nodiscard]] const ProofScope& scope() const noexcept { return scope_; }
  /// Once proved.
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
