#include "client/plugins/nccl/p2p/greeting.h"

#include <span>

namespace tributary::nccl {
namespace {

client::ProofScope scope_of(const ConnectionEnds& ends) {
  // A line each: neither address has a line's end in it.
  return {.purpose = "nccl messages", .detail = ends.listening + "\n" + ends.connecting};
}

FrameHeader header_of(FrameType type) {
  FrameHeader header;
  header.type = type;
  return header;
}

Error refused(const transport::Channel& channel, const Error& why) {
  if (why.code != Errc::denied) return {why.code, channel.peer() + " sent " + why.message};
  return {Errc::denied,
          channel.peer() + " does not know this connection's secret, or something stands between it and this process"};
}

}  // namespace

// ---- the connecting end

void ConnectingGreeting::begin(transport::Channel& channel, std::uint64_t memory_group) {
  FrameHeader hello = header_of(FrameType::peer_hello);
  hello.group = memory_group;
  channel.send_copy(hello, {});
}

transport::Placement ConnectingGreeting::place(const FrameHeader& header) {
  const std::size_t expected = proof_ ? kProofDigits : kNonceDigits;
  if (header.type != FrameType::challenge || header.payload_bytes != expected)
    return transport::Reject{{Errc::corrupt, "what listens there does not greet as this plugin does"}};
  said_bytes_ = expected;
  return transport::Accept{std::as_writable_bytes(std::span(said_)).first(expected)};
}

Status ConnectingGreeting::take(transport::Channel& channel, const ConnectionEnds& ends) {
  if (!proof_) return answer(channel, ends);
  const auto seen = proof_->check(std::string_view(said_.data(), said_bytes_));
  if (!seen) return std::unexpected(refused(channel, seen.error()));
  return {};
}

Status ConnectingGreeting::answer(transport::Channel& channel, const ConnectionEnds& ends) {
  proof_.emplace(secret_, scope_of(ends));
  const auto answer = proof_->answer(std::string_view(said_.data(), said_bytes_));
  if (!answer) return std::unexpected(refused(channel, answer.error()));
  const std::string text = answer->nonce + answer->proof;
  channel.send_copy(header_of(FrameType::peer_hello), std::as_bytes(std::span(text)));
  return {};
}

// ---- the listening end

Status ListeningGreeting::begin(transport::Channel& channel) {
  auto nonce = client::make_nonce();
  if (!nonce) return std::unexpected(nonce.error());
  proof_.emplace(secret_, *nonce);
  channel.send_copy(header_of(FrameType::challenge), std::as_bytes(std::span(*nonce)));
  return {};
}

transport::Placement ListeningGreeting::place(const FrameHeader& header) {
  const std::size_t expected = greeted_ ? said_.size() : 0;
  if (header.type != FrameType::peer_hello || header.payload_bytes != expected)
    return transport::Reject{{Errc::corrupt, "a stranger, which does not greet as this plugin does"}};
  return transport::Accept{std::as_writable_bytes(std::span(said_)).first(expected)};
}

Status ListeningGreeting::take(transport::Channel& channel) {
  if (!std::exchange(greeted_, true)) return {};
  if (!proof_) return fail(Errc::io, "this process has no nonce for the connection");
  const std::string_view said(said_.data(), said_.size());
  const auto proof = proof_->check(scope_of(ends_), {.nonce = std::string(said.substr(0, kNonceDigits)),
                                                     .proof = std::string(said.substr(kNonceDigits))});
  if (!proof) return std::unexpected(refused(channel, proof.error()));
  channel.send_copy(header_of(FrameType::challenge), std::as_bytes(std::span(*proof)));
  return {};
}

}  // namespace tributary::nccl
