#include "client/bootstrap/control_link.h"

#include "client/core/communicator.h"

namespace tributary::client {

using transport::Accept;
using transport::NotYet;
using transport::Placement;
using transport::Reject;

namespace {
std::string_view text_of(std::span<const std::byte> payload) {
  return {reinterpret_cast<const char*>(payload.data()), payload.size()};
}

bool is_control(FrameType type) {
  return type >= FrameType::challenge && type <= FrameType::members;
}
}  // namespace

void ControlLink::connect(transport::Transport& transport, const Endpoint& to, transport::Duration limit) {
  channel_ = transport.connect(to, *this, limit);
}

void ControlLink::send(const ControlMessage& message) {
  if (!channel_ || channel_->closed()) return;
  FrameHeader header;
  header.type = message.type;
  header.epoch = message.epoch;
  header.operation = message.operation;
  header.count = message.value;
  const std::size_t bytes = std::min<std::size_t>(message.body.size(), payload_bytes_max(message.type));
  channel_->send_copy(header, std::as_bytes(std::span(message.body)).first(bytes));
}

void ControlLink::close_after_flush(transport::Duration limit) {
  if (channel_ && !channel_->closed()) channel_->close_after_flush(limit);
}

Placement ControlLink::on_header(transport::Channel&, const FrameHeader& header) {
  if (!is_control(header.type))
    return Reject{{Errc::corrupt, "a " + std::string(to_string(header.type)) + " frame on a control connection"}};
  body_.resize(header.payload_bytes);
  return Accept{body_};
}

void ControlLink::on_frame(transport::Channel&, const FrameHeader& header, std::span<std::byte> payload) {
  communicator_.on_control(peer_,
                           {header.type, header.epoch, header.operation, header.count, std::string(text_of(payload))});
}

void ControlLink::on_closed(transport::Channel&, const Error& error) {
  communicator_.control_closed(peer_, error.message);
}

Arrival::Arrival(Communicator& communicator, Arrivals& arrivals, WaitingRoom::Id id,
                 std::unique_ptr<transport::Channel> channel, std::string nonce)
    : communicator_(communicator),
      arrivals_(arrivals),
      id_(id),
      channel_(std::move(channel)),
      nonce_(std::move(nonce)),
      peer_(channel_->peer()) {}

void Arrival::challenge() {
  FrameHeader header;
  header.type = FrameType::challenge;
  channel_->send_copy(header, std::as_bytes(std::span(nonce_)));
}

void Arrival::hand_on(transport::ChannelHandler& target) {
  target_ = &target;
  arrivals_.proved(id_);
}

void Arrival::resume() {
  if (!waiting_) return;
  waiting_ = false;
  if (channel_) channel_->resume();
}

Placement Arrival::on_header(transport::Channel& channel, const FrameHeader& header) {
  if (target_ != nullptr) return target_->on_header(channel, header);
  const bool hello = header.type == FrameType::hello, peer_hello = header.type == FrameType::peer_hello;
  if (!hello && !peer_hello)
    return Reject{{Errc::denied, "a " + std::string(to_string(header.type)) + " frame before an introduction"}};
  // Another rank may know the members before we do.
  if (peer_hello && !communicator_.mesh_) {
    waiting_ = true;
    return NotYet{};
  }
  body_.resize(header.payload_bytes);
  return Accept{body_};
}

void Arrival::on_frame(transport::Channel& channel, const FrameHeader& header, std::span<std::byte> payload) {
  if (target_ != nullptr) return target_->on_frame(channel, header, payload);
  const std::string body(text_of(payload));
  if (header.type == FrameType::hello) return communicator_.on_hello(*this, body);
  communicator_.on_peer_hello(*this, body);
}

void Arrival::on_sent(transport::Channel& channel, std::uint64_t cookie) {
  if (target_ != nullptr) target_->on_sent(channel, cookie);
}

void Arrival::on_closed(transport::Channel& channel, const Error& error) {
  if (target_ != nullptr) target_->on_closed(channel, error);
  arrivals_.closed(id_);
}

}  // namespace tributary::client
