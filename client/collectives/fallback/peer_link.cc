#include "client/collectives/fallback/peer_link.h"

#include "tributary/kernels/partial_sum.h"
#include "tributary/protocol/assert.h"

namespace tributary::client {

using transport::Accept;
using transport::NotYet;
using transport::Placement;
using transport::Reject;

namespace {
constexpr std::uint64_t kTakenUntoldMax = 32;  // frames that this side takes before it tells the count

/// Checks a form; on_header() has checked the length of everything else.
bool is_expected(const PostedReceive& receive, std::span<const std::byte> payload) {
  if (receive.form_elements == 0) return true;
  return kernels::partial_sum_elements(receive.signature.dtype, payload) == receive.form_elements;
}
}  // namespace

std::string_view to_string(PeerClass peer_class) noexcept {
  switch (peer_class) {
    case PeerClass::collective:
      return "collective";
    case PeerClass::message:
      return "message";
    case PeerClass::repair:
      return "repair";
    case PeerClass::tagged:
      return "tagged";
    case PeerClass::share:
      return "share";
  }
  return "unknown";
}

void PeerLink::connect(transport::Transport& transport, const Endpoint& to, transport::Duration limit,
                       Attempt attempt) {
  attempt_.emplace(std::move(attempt));
  channel_ = transport.connect(to, *this, limit);
}

void PeerLink::adopt(std::unique_ptr<transport::Channel> channel, std::uint64_t taken_there) {
  channel_ = std::move(channel);
  if (!second_) {
    open_ = true;
    return flush();
  }
  say_taken();  // the other side waits for this count before it does anything else
  go_on_from(taken_there);
}

void PeerLink::leave_first_way(transport::TimePoint until, const std::string& reason) {
  if (second_ || closed_) return;
  second_ = true;
  if (!channel_) return;
  channel_->close();  // from now on this channel neither reads nor writes this rank's memory
  first_ = std::move(channel_);
  held_back_.reset();
  open_ = false;
  second_until_ = until;
  why_second_ = reason;
}

void PeerLink::look_for_second(transport::TimePoint now) {
  if (now < second_until_ || open_ || closed_) return;
  fail(why_second_ + "; nor was there another connection in time");
}

void PeerLink::excuse(transport::Duration absence) noexcept {
  if (second_until_ != transport::TimePoint::max()) second_until_ += absence;
}

/// Goes on over the second channel, on which the other side has told how many of this side's frames it has taken.
void PeerLink::go_on_from(std::uint64_t taken_there) {
  const auto cookies = sent_.go_on_from(taken_there, pending_);
  if (!cookies) {
    channel_->close();
    return fail("it says that it has taken a number of frames that it cannot have taken");
  }
  open_ = true;
  second_until_ = transport::TimePoint::max();
  flush();
  for (const std::uint64_t cookie : *cookies) user_.peer_sent(peer_, class_, cookie);
}

void PeerLink::post(const PostedReceive& receive) {
  posted_.push_back(receive);
  if (held_back_ && channel_ && !closed_) {
    held_back_.reset();
    channel_->resume();
  }
}

void PeerLink::send(const FrameHeader& header, std::span<const std::byte> payload, std::uint64_t cookie) {
  pending_.push_back({.header = header, .payload = payload, .cookie = cookie});
  flush();
}

void PeerLink::flush() {
  while (open_ && !closed_ && !pending_.empty()) {
    PeerFrame& next = pending_.front();
    if (next.told) {
      channel_->send_copy(next.header, next.payload);
      pending_.pop_front();
      continue;
    }
    if (may_go_on()) next.header.epoch = static_cast<std::uint32_t>(taken_);
    if (!channel_->send(next.header, next.payload, next.cookie)) return;  // on_sent() calls flush() again
    if (may_go_on()) {
      taken_told_ = taken_;
      sent_.handed_over(std::move(next));
    }
    pending_.pop_front();
  }
}

void PeerLink::say_taken() {
  FrameHeader header;
  header.type = FrameType::taken;
  header.count = taken_told_ = taken_;
  channel_->send_copy(header, {});
}

/// Counts a taken frame. After kTakenUntoldMax taken frames that no other frame has reported, sends the count.
void PeerLink::count_taken() {
  if (!may_go_on()) return;
  ++taken_;
  if (taken_ - taken_told_ >= kTakenUntoldMax) say_taken();
}

/// Notes how many of this side's frames the other side has taken. False: that number is impossible.
bool PeerLink::hears_taken(const FrameHeader& header) {
  if (!may_go_on()) return true;
  return header.type == FrameType::taken ? sent_.taken(header.count) : sent_.taken_low_bits(header.epoch);
}

bool PeerLink::is_note(const FrameHeader& header) const noexcept {
  return class_ == PeerClass::tagged && (header.type == FrameType::offer || header.type == FrameType::want);
}

void PeerLink::close() {
  closed_ = true;
  if (channel_) channel_->close();
}

Placement PeerLink::on_header(transport::Channel&, const FrameHeader& header) {
  if (attempt_ && header.type != FrameType::challenge && header.type != FrameType::abort)
    return Reject{{Errc::denied, "a " + std::string(to_string(header.type)) + " frame before a proof of who sent it"}};
  if (attempt_) {
    text_.resize(header.payload_bytes);
    return Accept{text_};
  }
  if (header.type == FrameType::abort) {  // the other side refuses the connection and says why
    text_.resize(header.payload_bytes);
    return Accept{text_};
  }
  if (!hears_taken(header)) return Reject{{Errc::corrupt, "a count of frames that were not sent"}};
  if (header.type == FrameType::taken && watch_ != nullptr) return Accept{};
  if (is_note(header)) return Accept{};
  if (posted_.empty() && !mismatched_) {
    // This rank asks for a message with a tag only after it has posted the message's receives.
    if (class_ == PeerClass::tagged) return Reject{{Errc::corrupt, "a message with a tag that nobody has asked for"}};
    user_.peer_waits(peer_, class_);
  }
  if (posted_.empty() || mismatched_) {
    held_back_ = header;
    return NotYet{};
  }
  const PostedReceive& expected = posted_.front();
  const bool fits =
      header.type == expected.type && header.operation == expected.operation && header.sequence == expected.tag &&
      header.signature() == expected.signature &&
      (header.payload_bytes == expected.bytes || (expected.form_elements > 0 && header.payload_bytes < expected.bytes));
  if (!fits) {
    // The connection is not at fault: the communicator finds out which ranks called which operations, and ends.
    mismatched_ = true;
    held_back_ = header;
    user_.peer_mismatch(peer_, class_, expected, header);
    return NotYet{};
  }
  if (expected.into != nullptr) return Accept{{expected.into, header.payload_bytes}};
  if (staging_.size() < expected.bytes) staging_.resize(kPieceBytes);
  if (staging_.size() < expected.bytes) return Reject{{Errc::corrupt, "a frame longer than a piece"}};
  return Accept{std::span(staging_).first(header.payload_bytes)};
}

void PeerLink::on_frame(transport::Channel& channel, const FrameHeader& header, std::span<std::byte> payload) {
  const std::string_view text(reinterpret_cast<const char*>(payload.data()), payload.size());
  if (attempt_ && header.type == FrameType::challenge) return on_proof_frame(channel, text);
  if (header.type == FrameType::abort) {
    channel.close();
    return broken(std::string(text));
  }
  if (header.type == FrameType::taken) {
    if (second_ && !open_) go_on_from(header.count);
    return;
  }
  if (is_note(header)) {
    count_taken();
    const Status ok = user_.peer_noted(peer_, header);
    if (ok) return;
    channel.close();
    return fail(ok.error().message);
  }
  TRIBUTARY_ASSERT(!posted_.empty() && payload.size() <= posted_.front().bytes,
                   "{} bytes came from rank {}; {} receives are posted", payload.size(), peer_, posted_.size());
  const PostedReceive receive = posted_.front();
  if (!is_expected(receive, payload)) {
    channel.close();
    return fail("a sum that is no form");
  }
  posted_.pop_front();
  count_taken();
  user_.peer_received(peer_, class_, receive, payload);
}

/// Takes the other side's nonce, and then its proof.
void PeerLink::on_proof_frame(transport::Channel& channel, std::string_view text) {
  FrameHeader hello;
  hello.type = FrameType::peer_hello;
  if (!attempt_->proof.awaits_proof()) {
    const auto answer = attempt_->proof.answer(text);
    if (!answer) {
      channel.close();
      return broken(answer.error().message);
    }
    const std::string body = attempt_->introduce(*answer);
    return channel.send_copy(hello, std::as_bytes(std::span(body)));
  }
  if (const Status ok = attempt_->proof.check(text); !ok) {
    channel.close();
    return broken(ok.error().message);
  }
  attempt_.reset();
  channel.send_copy(hello, {});  // the other side has proved itself
  if (second_) return;           // wait until the other side sends its count
  open_ = true;
  flush();
}

void PeerLink::on_sent(transport::Channel&, std::uint64_t cookie) {
  const std::uint64_t whose = may_go_on() ? sent_.sent() : cookie;
  flush();
  user_.peer_sent(peer_, class_, whose);
}

void PeerLink::on_closed(transport::Channel&, const Error& error) {
  broken(error.message);
}

void PeerLink::broken(const std::string& reason) {
  if (may_go_on()) return watch_->first_way_broken(peer_, reason);
  if (attempt_) return attempt_->failed(reason);
  fail(second_ && !why_second_.empty() ? why_second_ + "; then " + reason : reason);
}

void PeerLink::fail(const std::string& reason) {
  closed_ = true;
  user_.peer_failed(peer_, class_, reason);
}

}  // namespace tributary::client
