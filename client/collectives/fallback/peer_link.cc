#include "client/collectives/fallback/peer_link.h"

namespace tributary::client {

using transport::Accept;
using transport::NotYet;
using transport::Placement;
using transport::Reject;

std::string_view to_string(PeerClass peer_class) noexcept {
  switch (peer_class) {
    case PeerClass::collective:
      return "collective";
    case PeerClass::message:
      return "message";
    case PeerClass::repair:
      return "repair";
  }
  return "unknown";
}

void PeerLink::connect(transport::Transport& transport, const Endpoint& to, transport::Duration limit,
                       std::function<std::string(std::string_view)> introduce) {
  introduce_ = std::move(introduce);
  channel_ = transport.connect(to, *this, limit);
}

void PeerLink::adopt(std::unique_ptr<transport::Channel> channel) {
  channel_ = std::move(channel);
  open_ = true;
  flush();
}

void PeerLink::post(const PostedReceive& receive) {
  posted_.push_back(receive);
  if (held_back_ && channel_ && !closed_) {
    held_back_.reset();
    channel_->resume();
  }
}

void PeerLink::send(const FrameHeader& header, std::span<const std::byte> payload, std::uint64_t cookie) {
  pending_.push_back({header, payload, cookie});
  flush();
}

void PeerLink::flush() {
  while (open_ && !closed_ && !pending_.empty()) {
    const Pending& next = pending_.front();
    if (!channel_->send(next.header, next.payload, next.cookie)) return;  // again after on_sent
    pending_.pop_front();
  }
}

void PeerLink::close() {
  closed_ = true;
  if (channel_) channel_->close();
}

Placement PeerLink::on_header(transport::Channel&, const FrameHeader& header) {
  if (header.type == FrameType::challenge && !open_) {
    text_.resize(header.payload_bytes);
    return Accept{text_};
  }
  if (header.type == FrameType::abort) {  // the other side refuses the connection and says why
    text_.resize(header.payload_bytes);
    return Accept{text_};
  }
  if (posted_.empty() || mismatched_) {
    held_back_ = header;
    return NotYet{};
  }
  const PostedReceive& expected = posted_.front();
  const bool fits = header.type == expected.type && header.operation == expected.operation &&
                    header.sequence == expected.tag && header.signature() == expected.signature &&
                    header.payload_bytes == expected.bytes;
  if (!fits) {
    // Not the connection's fault: the communicator finds out who called what, and ends with that.
    mismatched_ = true;
    held_back_ = header;
    user_.peer_mismatch(peer_, class_, expected, header);
    return NotYet{};
  }
  if (expected.into != nullptr) return Accept{{expected.into, expected.bytes}};
  if (staging_.size() < expected.bytes) staging_.resize(kPieceBytes);
  if (staging_.size() < expected.bytes) return Reject{{Errc::corrupt, "a frame longer than a piece"}};
  return Accept{std::span(staging_).first(expected.bytes)};
}

void PeerLink::on_frame(transport::Channel& channel, const FrameHeader& header, std::span<std::byte> payload) {
  const std::string_view text(reinterpret_cast<const char*>(payload.data()), payload.size());
  if (header.type == FrameType::challenge) {
    FrameHeader hello;
    hello.type = FrameType::peer_hello;
    const std::string answer = introduce_(text);
    channel.send_copy(hello, std::as_bytes(std::span(answer)));
    open_ = true;
    return flush();
  }
  if (header.type == FrameType::abort) {
    closed_ = true;
    return user_.peer_failed(peer_, class_, std::string(text));
  }
  const PostedReceive receive = posted_.front();
  posted_.pop_front();
  user_.peer_received(peer_, class_, receive, payload);
}

void PeerLink::on_sent(transport::Channel&, std::uint64_t cookie) {
  flush();
  user_.peer_sent(peer_, class_, cookie);
}

void PeerLink::on_closed(transport::Channel&, const Error& error) {
  closed_ = true;
  user_.peer_failed(peer_, class_, error.message);
}

}  // namespace tributary::client
