#include "client/control/mutual_proof.h"

#include <algorithm>
#include <stdexcept>

#include "tributary/protocol/credential.h"

namespace tributary::client {
namespace {

constexpr std::size_t kNonceDigits = 32;
constexpr std::size_t kPurposeBytesMax = 64;

bool is_nonce(std::string_view text) {
  return text.size() == kNonceDigits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// Joins the parts, each with its length before it, so that different lists of parts give different texts.
std::string joined(std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts) {
    text += std::to_string(part.size());
    text += ':';
    text += part;
  }
  return text;
}

Secret hash(const Secret& secret, std::string_view use, const ProofScope& scope, std::string_view accepting_nonce,
            std::string_view connecting_nonce) {
  const std::string text = joined({"tributary mutual proof", use, scope.purpose, std::to_string(scope.connecting),
                                   std::to_string(scope.accepting), accepting_nonce, connecting_nonce, scope.detail});
  const Digest digest = hmac_sha256(secret, std::as_bytes(std::span(text)));
  static_assert(std::tuple_size_v<Digest> == kSecretBytes);
  Secret result{};
  std::ranges::copy(digest, result.begin());
  return result;
}

constexpr std::string_view kOfConnecting = "proof of the connecting side";
constexpr std::string_view kOfAccepting = "proof of the accepting side";

SessionKeys keys_of(const Secret& secret, const ProofScope& scope, std::string_view accepting_nonce,
                    std::string_view connecting_nonce) {
  return {
      .from_connecting = hash(secret, "key of the connecting side's frames", scope, accepting_nonce, connecting_nonce),
      .from_accepting = hash(secret, "key of the accepting side's frames", scope, accepting_nonce, connecting_nonce)};
}

}  // namespace

Result<std::string> make_nonce() {
  std::array<std::byte, kNonceDigits / 2> bytes{};
  if (!random_bytes(bytes)) return fail(Errc::io, "the system has no random bytes to give");
  return to_hex(bytes);
}

Result<ProofAnswer> ConnectingProof::answer(std::string_view nonce) {
  if (state_ != State::fresh) {
    state_ = State::failed;
    return fail(Errc::corrupt, "it sent a second nonce");
  }
  state_ = State::failed;
  if (!is_nonce(nonce)) return fail(Errc::corrupt, "it sent a malformed nonce");
  auto ours = make_nonce();
  if (!ours) return std::unexpected(ours.error());
  theirs_ = nonce;
  ours_ = std::move(*ours);
  state_ = State::answered;
  return ProofAnswer{.nonce = ours_, .proof = to_hex(hash(secret_, kOfConnecting, scope_, theirs_, ours_))};
}

Status ConnectingProof::check(std::string_view proof) {
  const State before = std::exchange(state_, State::failed);
  if (before == State::proved) return fail(Errc::corrupt, "it sent a second proof");
  if (before != State::answered) return fail(Errc::corrupt, "it sent a proof that was not asked for");
  if (!same_proof(proof, to_hex(hash(secret_, kOfAccepting, scope_, theirs_, ours_))))
    return fail(Errc::denied, "it does not know the secret of this group's unique id");
  state_ = State::proved;
  return {};
}

SessionKeys ConnectingProof::keys() const {
  if (state_ != State::proved) throw std::logic_error("keys() was called before the connection was proved");
  return keys_of(secret_, scope_, theirs_, ours_);
}

Result<std::string> AcceptingProof::check(const ProofScope& scope, const ProofAnswer& answer) {
  if (std::exchange(state_, State::failed) != State::fresh) return fail(Errc::corrupt, "it sent a second answer");
  if (!is_nonce(ours_)) return fail(Errc::io, "this rank could not make a nonce");
  if (!is_nonce(answer.nonce) || scope.purpose.size() > kPurposeBytesMax)
    return fail(Errc::corrupt, "it sent a malformed answer");
  // Refuse this side's own nonce: either a process echoes every frame, or both nonces are empty.
  if (answer.nonce == ours_ ||
      !same_proof(answer.proof, to_hex(hash(secret_, kOfConnecting, scope, ours_, answer.nonce))))
    return fail(Errc::denied, "it does not know the secret of this group's unique id");
  scope_ = scope;
  theirs_ = answer.nonce;
  state_ = State::proved;
  return to_hex(hash(secret_, kOfAccepting, scope_, ours_, theirs_));
}

SessionKeys AcceptingProof::keys() const {
  if (state_ != State::proved) throw std::logic_error("keys() was called before the connection was proved");
  return keys_of(secret_, scope_, ours_, theirs_);
}

}  // namespace tributary::client
