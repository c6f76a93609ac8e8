#include "transport/sim/fault/faulty_channel.h"

#include <cstddef>
#include <cstring>

namespace tributary::transport {

FaultyChannel::~FaultyChannel() {
  core_->forget(*this);
}

// ---- Outgoing frames

bool FaultyChannel::send(const FrameHeader& header, std::span<const std::byte> payload, std::uint64_t cookie) {
  if (unsent_ > 0 && core_->strikes(Fault::refuse, header.type) != nullptr) {
    core_->happened(Fault::refuse);
    return false;
  }
  if (!outgoing_) outgoing_ = draw(header.type);
  if (!inner_->send(outgoing_->corrupt ? corrupted(header) : header, payload, cookie)) return false;
  if (outgoing_->corrupt) core_->happened(Fault::corrupt);
  ++unsent_;
  if (outgoing_->duplicate) inner_->send_copy(header, payload);
  outgoing_.reset();
  return true;
}

void FaultyChannel::send_copy(const FrameHeader& header, std::span<const std::byte> payload) {
  const Outgoing outgoing = draw(header.type);
  if (outgoing.corrupt) core_->happened(Fault::corrupt);
  inner_->send_copy(outgoing.corrupt ? corrupted(header) : header, payload);
  if (outgoing.duplicate) inner_->send_copy(header, payload);
}

FaultyChannel::Outgoing FaultyChannel::draw(FrameType type) {
  const Outgoing drawn{.corrupt = core_->strikes(Fault::corrupt, type) != nullptr,
                       .duplicate = core_->strikes(Fault::duplicate, type) != nullptr};
  if (drawn.duplicate) core_->happened(Fault::duplicate);
  return drawn;
}

FrameHeader FaultyChannel::corrupted(const FrameHeader& header) {
  constexpr std::size_t kLengthBytes = sizeof header.payload_bytes;
  std::size_t at = core_->random.below(kFrameHeaderBytes - kLengthBytes);
  if (at >= offsetof(FrameHeader, payload_bytes)) at += kLengthBytes;
  FrameHeader changed = header;
  auto* bytes = reinterpret_cast<std::byte*>(&changed);
  bytes[at] ^= static_cast<std::byte>(1 + core_->random.below(255));
  return changed;
}

void FaultyChannel::on_sent(Channel&, std::uint64_t cookie) {
  --unsent_;
  handler_->on_sent(*this, cookie);
}

// ---- Incoming frames

/// Draws at random whether this frame is delayed or held.
bool FaultyChannel::stop_here(FrameType type) {
  TimePoint until{};
  if (const FaultRule* rule = core_->strikes(Fault::delay, type)) {
    const auto delay = core_->random.below(static_cast<std::uint64_t>(rule->delay_max.count()) + 1);
    until = core_->now() + Duration(static_cast<Duration::rep>(delay));
    core_->happened(Fault::delay);
  }
  if (core_->strikes(Fault::hold, type) != nullptr) {
    until = TimePoint::max();
    core_->happened(Fault::hold);
  }
  if (until == TimePoint{}) return false;
  waiting_ = true;
  core_->wait(*this, until);
  return true;
}

void FaultyChannel::go_on() {
  waiting_ = false;
  inner_->resume();
}

Placement FaultyChannel::on_header(Channel&, const FrameHeader& header) {
  if (waiting_) return NotYet{};
  if (!drawn_) {
    drawn_ = true;
    cutting_ = core_->strikes(Fault::cut, header.type) != nullptr;
    if (stop_here(header.type)) return NotYet{};
  }
  Placement placement = handler_->on_header(*this, header);
  const auto* accepted = std::get_if<Accept>(&placement);
  if (accepted == nullptr) return placement;
  drawn_ = false;
  if (!cutting_) return placement;
  destination_ = accepted->payload;
  scratch_.resize(header.payload_bytes);
  return Accept{scratch_};
}

void FaultyChannel::on_frame(Channel&, const FrameHeader& header, std::span<std::byte> payload) {
  if (cutting_) return cut(payload);
  handler_->on_frame(*this, header, payload);
}

void FaultyChannel::cut(std::span<const std::byte> payload) {
  core_->happened(Fault::cut);
  const std::size_t written = core_->random.below(payload.size());
  if (written > 0) std::memcpy(destination_.data(), payload.data(), written);
  const Error error{Errc::peer_gone, "the connection to " + peer() + " was cut on purpose in mid-payload."};
  inner_->close();
  handler_->on_closed(*this, error);
}

}  // namespace tributary::transport
