#include "client/plugins/nccl/p2p/greeting.h"

#include <charconv>
#include <span>

#include "tributary/protocol/assert.h"
#include "tributary/protocol/credential.h"

namespace tributary::nccl {
namespace {

client::ProofScope scope_of(const ConnectionEnds& ends, std::string_view part) {
  // Each value has a line of its own, because no address contains a line break.
  return {.purpose = "nccl messages", .detail = ends.listening + "\n" + ends.connecting + "\n" + std::string(part)};
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

std::string to_text(const ConnectionPart& part) {
  TRIBUTARY_ASSERT(part.connection.size() == kNonceDigits && part.number < 256 && part.parts < 256,
                   "part {} of {} does not fit its text", part.number, part.parts);
  return part.connection + to_hex(std::array{std::byte(part.number), std::byte(part.parts)});
}

std::optional<ConnectionPart> read_part(std::string_view text) {
  if (text.size() != kPartDigits || text.find_first_not_of("0123456789abcdef") != std::string_view::npos)
    return std::nullopt;
  const auto number_at = [text](std::size_t at) {
    std::uint32_t number = 0;
    std::from_chars(text.data() + at, text.data() + at + 2, number, 16);
    return number;
  };
  ConnectionPart part{.connection = std::string(text.substr(0, kNonceDigits)),
                      .number = number_at(kNonceDigits),
                      .parts = number_at(kNonceDigits + 2)};
  if (part.number >= part.parts) return std::nullopt;
  return part;
}

// Functions of the connecting end.

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
  TRIBUTARY_ASSERT(said_bytes_ == (proof_ ? kProofDigits : kNonceDigits), "a payload of {} bytes was placed",
                   said_bytes_);
  if (!proof_) return answer(channel, ends);
  const auto seen = proof_->check(std::string_view(said_.data(), said_bytes_));
  if (!seen) return std::unexpected(refused(channel, seen.error()));
  return {};
}

Status ConnectingGreeting::answer(transport::Channel& channel, const ConnectionEnds& ends) {
  proof_.emplace(secret_, scope_of(ends, part_));
  const auto answer = proof_->answer(std::string_view(said_.data(), said_bytes_));
  if (!answer) return std::unexpected(refused(channel, answer.error()));
  const std::string text = answer->nonce + answer->proof + part_;
  channel.send_copy(header_of(FrameType::peer_hello), std::as_bytes(std::span(text)));
  return {};
}

// Functions of the listening end.

Status ListeningGreeting::begin(transport::Channel& channel) {
  TRIBUTARY_ASSERT(!proof_, "the greeting of {} begins twice", channel.peer());
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
  const std::string_view part_text = said.substr(kNonceDigits + kProofDigits);
  auto proof =
      proof_->check(scope_of(ends_, part_text), {.nonce = std::string(said.substr(0, kNonceDigits)),
                                                 .proof = std::string(said.substr(kNonceDigits, kProofDigits))});
  if (!proof) return std::unexpected(refused(channel, proof.error()));
  auto part = read_part(part_text);
  if (!part) return fail(Errc::corrupt, channel.peer() + " does not say which part of a connection it opens");
  if (part->parts != parts_) {
    return fail(Errc::denied, channel.peer() + " opens a connection of " + std::to_string(part->parts) +
                                  " sockets, and the handle says " + std::to_string(parts_));
  }
  last_word_ = std::move(*proof);
  if (!channel.send(header_of(FrameType::challenge), std::as_bytes(std::span(last_word_)), 0))
    return fail(Errc::peer_gone, channel.peer() + " has left before it was answered");
  part_ = std::move(part);
  return {};
}

}  // namespace tributary::nccl
