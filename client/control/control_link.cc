#include "client/control/control_link.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "client/control/json_number.h"
#include "tributary/protocol/assert.h"
#include "tributary/protocol/json_reader.h"

namespace tributary::client {

using nlohmann::json;
using transport::Accept;
using transport::NotYet;
using transport::Placement;
using transport::Reject;

namespace {
std::string_view text_of(std::span<const std::byte> payload) {
  return {reinterpret_cast<const char*>(payload.data()), payload.size()};
}

constexpr std::string_view kNoSeal =
    "a control message whose seal is wrong: it was changed on the way, or another process sent it";

/// Returns a stranger's text so that people can read it safely.
std::string printable(std::string_view text) {
  std::string shown(text.substr(0, 200));
  std::ranges::replace_if(shown, [](unsigned char c) { return c < 0x20 || c > 0x7e; }, '?');
  return shown;
}

void send_sealed(transport::Channel& channel, FrameSeal& seal, FrameHeader header, std::string body) {
  body.resize(std::min<std::size_t>(body.size(), payload_bytes_max(header.type)));
  const auto bytes = std::as_writable_bytes(std::span(body));
  TRIBUTARY_ASSERT(bytes.size() <= payload_bytes_max(header.type), "a {} frame of {} bytes", header.type, bytes.size());
  seal.seal(header, bytes);
  channel.send_copy(header, bytes);
}

bool is_control(FrameType type) {
  return type >= FrameType::challenge && type <= FrameType::amended;
}
}  // namespace

void ControlLink::connect(transport::Transport& transport, const Endpoint& to, transport::Duration limit,
                          ConnectingProof proof) {
  TRIBUTARY_ASSERT(!proof_ && !channel_, "the link to rank {} connects twice", peer_);
  proof_.emplace(std::move(proof));
  channel_ = transport.connect(to, *this, limit);
}

void ControlLink::send(const ControlMessage& message) {
  if (!seals_ || !channel_ || channel_->closed()) return;
  FrameHeader header;
  header.type = message.type;
  header.epoch = message.epoch;
  header.operation = message.operation;
  header.count = message.value;
  send_sealed(*channel_, seals_->out, header, message.body);
}

void ControlLink::close_after_flush(transport::Duration limit) {
  if (channel_ && !channel_->closed()) channel_->close_after_flush(limit);
}

Placement ControlLink::on_header(transport::Channel&, const FrameHeader& header) {
  const bool proves = header.type == FrameType::challenge || header.type == FrameType::abort;
  if (!seals_ && !proves)
    return Reject{
        {Errc::corrupt, "a " + std::string(to_string(header.type)) + " frame before its sender has proved who it is"}};
  if (!is_control(header.type))
    return Reject{{Errc::corrupt, "a " + std::string(to_string(header.type)) + " frame on a control connection"}};
  body_.resize(header.payload_bytes);
  return Accept{body_};
}

void ControlLink::on_frame(transport::Channel& channel, const FrameHeader& header, std::span<std::byte> payload) {
  if (!seals_) return on_proof_frame(header, text_of(payload));
  FrameHeader opened = header;
  if (!seals_->in.open(opened, payload)) {
    channel.close();
    return user_.control_closed(peer_, std::string(kNoSeal));
  }
  user_.on_control(peer_, {opened.type, opened.epoch, opened.operation, opened.count, std::string(text_of(payload))});
}

void ControlLink::on_proof_frame(const FrameHeader& header, std::string_view text) {
  if (!proof_) return;  // on_header() accepts no frame without proof_
  if (header.type == FrameType::abort) return turned_away("it says '" + printable(text) + "'");
  proof_->awaits_proof() ? check_proof(text) : answer_nonce(text);
}

void ControlLink::answer_nonce(std::string_view nonce) {
  const auto answer = proof_->answer(nonce);
  if (!answer) return turned_away(answer.error().message);
  const std::string body =
      json{{"rank", proof_->scope().connecting}, {"nonce", answer->nonce}, {"proof", answer->proof}}.dump();
  FrameHeader header;
  header.type = FrameType::hello;
  channel_->send_copy(header, std::as_bytes(std::span(body)));
}

void ControlLink::check_proof(std::string_view proof) {
  if (const Status ok = proof_->check(proof); !ok) return turned_away(ok.error().message);
  TRIBUTARY_ASSERT(!seals_, "the link to rank {} has its seals", peer_);
  const SessionKeys keys = proof_->keys();
  seals_.emplace(ControlSeals{.out = FrameSeal(keys.from_connecting), .in = FrameSeal(keys.from_accepting)});
  send({.type = FrameType::hello, .body = user_.introduction()});
}

void ControlLink::turned_away(const std::string& why) {
  channel_->close();
  user_.not_rank_0(why);
}

/// A transport that denies the connection would deny it again: the two sides differ in their settings or secrets.
void ControlLink::on_closed(transport::Channel&, const Error& error) {
  if (error.code == Errc::denied) {
    const bool ends = error.message.ends_with('.');
    return user_.not_rank_0(error.message.substr(0, error.message.size() - (ends ? 1 : 0)));
  }
  user_.control_closed(peer_, error.message);
}

Arrival::Arrival(ArrivalUser& user, Arrivals& arrivals, WaitingRoom::Id id, std::unique_ptr<transport::Channel> channel,
                 std::string nonce)
    : user_(user),
      arrivals_(arrivals),
      id_(id),
      channel_(std::move(channel)),
      proof_(user.secret(), std::move(nonce)),
      peer_(channel_->peer()) {}

void Arrival::challenge() {
  FrameHeader header;
  header.type = FrameType::challenge;
  channel_->send_copy(header, std::as_bytes(std::span(proof_.nonce())));
}

void Arrival::say_refusal(const std::string& reason) {
  FrameHeader header;
  header.type = FrameType::abort;
  header.count = static_cast<std::uint64_t>(Errc::denied);
  const std::string said = reason.substr(0, payload_bytes_max(FrameType::abort));
  if (seals_) return send_sealed(*channel_, seals_->out, header, said);
  channel_->send_copy(header, std::as_bytes(std::span(said)));
}

void Arrival::hand_on(transport::ChannelHandler& target) {
  TRIBUTARY_ASSERT(target_ == nullptr, "the connection of rank {} is handed on twice", proof_.scope().connecting);
  target_ = &target;
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
  // Let the frame wait: another rank may learn the members before this rank does.
  if (peer_hello && !user_.has_met()) {
    waiting_ = true;
    return NotYet{};
  }
  body_.resize(header.payload_bytes);
  return Accept{body_};
}

void Arrival::on_frame(transport::Channel& channel, const FrameHeader& header, std::span<std::byte> payload) {
  if (target_ != nullptr) return target_->on_frame(channel, header, payload);
  if (!proof_.proved()) return check_answer(header, std::string(text_of(payload)));
  if ((header.type == FrameType::hello) != seals_.has_value())
    return refuse("its frame belongs to another kind of connection than its proof");
  if (!seals_) return user_.on_peer_hello(*this);
  FrameHeader opened = header;
  if (!seals_->in.open(opened, payload)) return refuse(std::string(kNoSeal));
  user_.on_hello(*this, std::string(text_of(payload)));
}

/// Checks the other side's nonce, its proof and the role that it claims.
void Arrival::check_answer(const FrameHeader& header, const std::string& body) {
  const json hello = json_or_discarded(body);
  ProofScope scope{.purpose = "control", .accepting = user_.rank()};
  ProofAnswer answer;
  try {
    scope.connecting = json_number<std::uint32_t>(hello.at("rank"));
    answer = {hello.at("nonce").get<std::string>(), hello.at("proof").get<std::string>()};
    if (header.type == FrameType::peer_hello) {
      scope.purpose = hello.at("class").get<std::string>();
      scope.detail = hello.value("taken", std::string());
    }
  } catch (const json::exception&) {
    return refuse("a malformed introduction");
  }
  const auto proof = proof_.check(scope, answer);
  if (!proof) {
    return refuse(header.type == FrameType::hello
                      ? "wrong unique id: this communicator's was made by another tributary_get_unique_id, or this is "
                        "not its rank 0"
                      : "not a rank of this group");
  }
  if (header.type == FrameType::hello) {
    const SessionKeys keys = proof_.keys();
    seals_.emplace(ControlSeals{.out = FrameSeal(keys.from_accepting), .in = FrameSeal(keys.from_connecting)});
  }
  arrivals_.proved(id_);
  FrameHeader said;
  said.type = FrameType::challenge;
  channel_->send_copy(said, std::as_bytes(std::span(*proof)));
}

void Arrival::on_sent(transport::Channel& channel, std::uint64_t cookie) {
  if (target_ != nullptr) target_->on_sent(channel, cookie);
}

void Arrival::on_closed(transport::Channel& channel, const Error& error) {
  if (target_ != nullptr) target_->on_closed(channel, error);
  arrivals_.closed(id_);
}

}  // namespace tributary::client
