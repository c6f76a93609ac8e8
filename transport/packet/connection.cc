#include "transport/packet/connection.h"

#include <algorithm>
#include <cstring>

#include "transport/channel/deadline.h"
#include "tributary/protocol/assert.h"

namespace tributary::transport::packet {
namespace {

constexpr std::size_t kPacketsPerTurn = 32;  // most packets of one connection, so that no connection starves
constexpr Duration kAbandonedLimit = std::chrono::seconds(5);
constexpr Duration kSuspicionMin = std::chrono::milliseconds(200);
constexpr std::uint32_t kClosesMax = 6;  // most `close` packets sent to a side that does not answer

}  // namespace

PacketConnection::PacketConnection(PacketCore& core, std::string peer, ChannelHandler* handler)
    : core_(core), peer_(std::move(peer)), handler_(handler), flow_(core.settings(), core.pool(), core.statistics) {}

PacketConnection::~PacketConnection() = default;

void PacketConnection::enter() {
  TRIBUTARY_ASSERT(id_ == 0, "connection {} enters the core twice", id_);
  id_ = core_.enter(shared_from_this());
}

// ---- Calls of the user

bool PacketConnection::send(const FrameHeader& header, std::span<const std::byte> payload, std::uint64_t cookie) {
  if (!taking_frames() || fatal_) return false;
  if (flow_.frames().borrowed() >= core_.settings().frames_queued_max) return false;
  flow_.frames().push_borrowed(header, payload, cookie);
  TRIBUTARY_ASSERT(flow_.frames().borrowed() <= core_.settings().frames_queued_max, "{} frames are queued to {}",
                   flow_.frames().borrowed(), peer_);
  if (state_ == State::open) core_.make_dirty(*this);
  return true;
}

void PacketConnection::send_copy(const FrameHeader& header, std::span<const std::byte> payload) {
  if (!taking_frames() || fatal_) return;
  flow_.frames().push_copy(header, payload);
  if (state_ == State::open) core_.make_dirty(*this);
}

void PacketConnection::resume() {
  if (serving() && reader_.resume()) make_due();
}

void PacketConnection::close() {
  if (closed()) return;
  handler_ = nullptr;
  const bool some_left = flow_.frames().acknowledged() != flow_.frames().end();
  if (state_ == State::open && some_left && !flow_.frames().needs_borrowed()) return abandon();
  if (state_ == State::open || state_ == State::flushing) return depart();
  end();
}

/// Over TCP the kernel still delivers frames that were sent before a close(). This code also delivers them, unless a
/// frame lies in the user's memory.
void PacketConnection::abandon() {
  TRIBUTARY_ASSERT(state_ == State::open && !flow_.frames().needs_borrowed(),
                   "the connection to {} is closed in state {}, and needs the user's memory", peer_, state_);
  abandoned_ = detached_ = true;
  reader_.forget();
  state_ = State::flushing;
  flow_.finish();
  give_up_at_ = core_.clock() + kAbandonedLimit;
  core_.make_due(*this);
}

void PacketConnection::close_after_flush(Duration limit) {
  if (!taking_frames()) return;
  detached_ = true;
  handler_ = nullptr;
  reader_.forget();
  if (fatal_) return close();
  give_up_at_ = deadline_of(core_.clock(), limit);
  if (state_ == State::open) {
    state_ = State::flushing;
    flow_.finish();
    core_.make_due(*this);
  } else if (flow_.frames().end() == 0) {
    return end();
  }  // else established() goes on with the opening
  look_at_deadline();
}

/// Also ends a flush, unless the flush no longer needs the user's memory.
void PacketConnection::channel_destroyed() {
  channel_ = nullptr;
  for (; !kept_.empty(); kept_.pop_front()) core_.port().give_back(kept_.front().buffer);
  if (state_ == State::flushing && !flow_.frames().needs_borrowed()) return;
  close();
}

// ---- Packets

bool PacketConnection::send_packet(const DataHeader& header, std::span<std::byte> head,
                                   std::span<const std::byte> rest) {
  TRIBUTARY_ASSERT(
      head.size() >= kPacketHeaderBytes + (seal_ ? kSealTagBytes : 0) && head.size() <= kPortHeaderBytesMax,
      "a packet to {} begins with {} bytes", peer_, head.size());
  if (seal_) {
    PacketHeader sealed = header.fields();
    sealed.flags |= packet_flags::kSealed;
    sealed.payload_bytes = static_cast<std::uint16_t>(head.size() - kPacketHeaderBytes - kSealTagBytes + rest.size());
    std::memcpy(head.data(), &sealed, kPacketHeaderBytes);
    std::span<std::byte> room;
    if (seal_->encrypts() && !rest.empty()) room = core_.sealed_room(rest.size());
    if (!seal_->seal(header.number(), head, rest, room)) return false;
    if (!room.empty()) rest = room;
  } else if (rest.empty()) {
    header.write(head.first<kPacketHeaderBytes>(), head.subspan(kPacketHeaderBytes));
  } else {
    // The header of a whole frame is the same for all receivers of its payload.
    const auto copied = head.subspan(kPacketHeaderBytes);
    const bool framed = copied.size() == kFrameHeaderBytes;
    const Ending& ending =
        core_.endings().of(framed ? copied : std::span<std::byte>{}, rest, payload_place(rest.data()));
    header.write(head.first<kPacketHeaderBytes>(), framed ? std::span<std::byte>{} : copied, ending.suffix,
                 copied.size() + rest.size());
  }
  if (!core_.port().send(address_, head, rest)) return false;
  ++core_.statistics.packets_sent;
  core_.statistics.bytes_sent += head.size() + rest.size();
  return true;
}

bool PacketConnection::send_frame(const DataHeader& header, const WholeFrame& frame) {
  const std::size_t place = payload_place(frame.payload.data());
  const Ending& ending = core_.endings().of(frame.header, frame.payload, place);
  alignas(64) std::array<std::byte, kPacketHeaderBytes> head;
  header.write(head, {}, ending.suffix, frame.bytes());
  if (!core_.port().send_frame(address_, {.packet_header = head,
                                          .frame_header = frame.header,
                                          .payload = frame.payload,
                                          .frame_header_sum = ending.head_sum,
                                          .payload_place = place})) {
    return false;
  }
  ++core_.statistics.packets_sent;
  core_.statistics.bytes_sent += kPacketHeaderBytes + frame.bytes();
  return true;
}

void PacketConnection::transmit_turn() {
  if (flowing()) {
    flow_.set_window(core_.window_share());
    const std::uint64_t sent_before = core_.statistics.bytes_sent;
    if (priority_ != 0) core_.port().set_priority(priority_);
    if (flow_.transmit(*this, kPacketsPerTurn, core_.now())) core_.make_dirty(*this);
    if (priority_ != 0) core_.port().set_priority(0);
    spend(core_.statistics.bytes_sent - sent_before, 0);
  }
  look_at_deadline();
}

bool PacketConnection::unseal(const PacketHeader& header, std::span<std::byte> datagram) {
  const bool sealed = (header.flags & packet_flags::kSealed) != 0;
  if (!seal_) {
    if (sealed) ++core_.statistics.senseless;
    return !sealed;
  }
  if (!sealed) {
    ++core_.statistics.unsealed;
    return false;
  }
  switch (seal_->open(header.number, datagram)) {
    case Seal::Verdict::authentic:
      suspected_until_ = TimePoint::max();
      return true;
    case Seal::Verdict::repeated:
      ++core_.statistics.repeats;
      return false;
    case Seal::Verdict::forged:
      ++core_.statistics.forged;
      return false;
  }
  return false;
}

bool PacketConnection::control_is_authentic(const PacketHeader& header, std::span<const std::byte> datagram) {
  const bool sealed = (header.flags & packet_flags::kSealed) != 0;
  if (!seal_ || !sealed) {
    if (seal_ || sealed) ++(seal_ ? core_.statistics.unsealed : core_.statistics.senseless);
    return !seal_ && !sealed;
  }
  const SealTag tag = seal_->control_tag(false, datagram.first(kPacketHeaderBytes),
                                         datagram.subspan(kPacketHeaderBytes + kSealTagBytes));
  if (same_bytes(tag, datagram.subspan(kPacketHeaderBytes, kSealTagBytes))) return true;
  ++core_.statistics.forged;
  return false;
}

void PacketConnection::send_control(const PacketHeader& header, const Handshake* handshake) {
  if (!seal_) return core_.send_control(address_, header, handshake);
  core_.send_sealed_control(address_, header, handshake,
                            [this](auto head, auto payload) { return seal_->control_tag(true, head, payload); });
}

void PacketConnection::take_data(const Arrival& arrival) {
  if (state_ == State::half_open) established();
  if (!flowing()) return;
  flow_.receive(arrival, *this, core_.now());
  core_.make_touched(*this);
}

void PacketConnection::after_packets() {
  tell_sent();
  if (state_ == State::open && flow_.peer_finished()) {
    return tell_closed({Errc::peer_gone, peer_ + " closed the connection."});
  }
  if (state_ == State::flushing && flow_.finished()) return end();
  if (!flowing()) return;
  if (flow_.wants_to_send(core_.now())) core_.make_dirty(*this);
  look_at_deadline();
}

void PacketConnection::turn() {
  const ConnectionPtr kept = shared_from_this();
  if (fatal_) return tell_closed(std::move(*fatal_));
  if (state_ == State::opening && attempts_ == 0) return send_open();
  if (!flowing()) return;
  reader_.begin_turn();
  if (!reader_.stalled()) {
    take({});
    flow_.read_on(*this);
  }
  after_packets();
}

// ---- Deadlines

void PacketConnection::look_at_deadline() {
  if (dirty) return;  // transmit_turn() changes the deadline, and looks at it then
  TimePoint first = std::min({act_at_, give_up_at_, suspected_until_});
  if (flowing()) first = std::min(first, flow_.deadline());
  first = std::max(first, core_.now() + Duration(1));  // so that on_time() is not called twice in the same turn
  if (first < asked_for) core_.want_time(*this, asked_for = first);
}

void PacketConnection::on_time() {
  const ConnectionPtr kept = shared_from_this();
  const TimePoint now = core_.now();
  if (now >= give_up_at_) {
    if (state_ == State::flushing) return depart();
    if (!opening() || detached_) return end();
    const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(limit_).count();
    return tell_closed({Errc::unreachable,
                        "cannot connect to " + peer_ + ": no answer within " + std::to_string(milliseconds) + " ms."});
  }
  if (now >= suspected_until_) {
    suspected_until_ = TimePoint::max();
    if (flowing()) return tell_closed({Errc::peer_gone, "the process at " + peer_ + " is gone."});
  }
  if (now >= act_at_) {
    act_at_ = TimePoint::max();
    if (state_ == State::opening) send_open();
    if (state_ == State::departing) send_close();
  }
  if (flowing()) {
    const auto verdict = flow_.on_time(now);
    if (verdict == Flow::Verdict::dead) {
      return tell_closed({Errc::peer_gone, peer_ + " does not answer any more: the connection timed out."});
    }
    if (verdict == Flow::Verdict::ask_route) ask_route();
    if (flow_.wants_to_send(now)) core_.make_dirty(*this);
  }
  look_at_deadline();
}

// ---- The end of a connection

void PacketConnection::tell_closed(Error error) {
  ChannelHandler* const handler = handler_;
  close();
  if (handler == nullptr) return;
  core_.count_callback();
  handler->on_closed(*channel_, error);
}

/// The connection is over for the user; this side repeats `close` until the other side has answered.
void PacketConnection::depart() {
  TRIBUTARY_ASSERT(state_ == State::open || state_ == State::flushing, "the connection to {} departs in state {}",
                   peer_, state_);
  state_ = State::departing;
  core_.departing().add(id_, address_);
  handler_ = nullptr;
  flow_.clear();
  attempts_ = 0;
  give_up_at_ = TimePoint::max();
  send_close();
  look_at_deadline();
}

void PacketConnection::send_close() {
  if (attempts_++ >= kClosesMax) return end();
  PacketHeader header;
  header.type = PacketType::close;
  header.connection = peer_id_;
  send_control(header, nullptr);
  act_at_ = core_.clock() + flow_.round_trip().timeout(attempts_);
}

void PacketConnection::end() noexcept {
  if (state_ == State::closed) return;
  if (state_ == State::half_open) core_.half_open().remove(id_);
  if (state_ == State::departing) core_.departing().remove(id_);
  state_ = State::closed;
  handler_ = nullptr;
  act_at_ = give_up_at_ = TimePoint::max();
  flow_.clear();
  if (peer_id_ != 0) core_.leave_peer(peer_id_);
  core_.leave(id_);  // the last call: from here on no code may use this connection
}

void PacketConnection::take_close() {
  const ConnectionPtr kept = shared_from_this();
  const bool all_here = flow_.peer_end_known();
  if (state_ == State::open && all_here) return;  // the close is answered when the rest was read
  ChannelHandler* const handler = state_ == State::open ? handler_ : nullptr;
  end();
  if (handler == nullptr) return;
  core_.count_callback();
  handler->on_closed(*channel_, {Errc::peer_gone, peer_ + " closed the connection."});
}

void PacketConnection::take_reset(bool nobody) {
  const ConnectionPtr kept = shared_from_this();
  if (state_ == State::opening) return try_next_address();
  if (state_ == State::open && flow_.peer_end_known()) return;
  if (seal_ && state_ != State::departing) return suspect();
  ChannelHandler* const handler = state_ == State::open ? handler_ : nullptr;
  end();
  if (handler == nullptr) return;
  core_.count_callback();
  handler->on_closed(*channel_, {Errc::peer_gone, nobody ? "the process at " + peer_ + " is gone."
                                                         : peer_ + " does not know the connection any more."});
}

void PacketConnection::ask_route() {
  if (flowing()) flow_.narrow_to(core_.datagram_bytes(address_), core_.now());
}

/// Any host can send an unsealed reset. So a sealed connection does not trust it, but asks the other side, and gives it
/// the time of some round trips to answer.
void PacketConnection::suspect() {
  if (!flowing() || suspected_until_ != TimePoint::max()) return;
  suspected_until_ = core_.now() + std::max(kSuspicionMin, 4 * flow_.round_trip().timeout(0));
  flow_.ping();
  core_.make_dirty(*this);
  look_at_deadline();
}

/// Sends queued frames as far as time allows, because the transport ends. Returns true if some frames are not
/// acknowledged yet.
bool PacketConnection::last_words() {
  if (!flowing() || flow_.frames().acknowledged() == flow_.frames().end()) return false;
  if (state_ == State::open) {
    detached_ = true;
    handler_ = nullptr;
    state_ = State::flushing;
    flow_.finish();
    core_.make_dirty(*this);
  }
  return true;
}

/// Ends the connection, and tells the other side once.
void PacketConnection::shut_down() {
  if (flowing()) {
    PacketHeader header;
    header.type = PacketType::close;
    header.connection = peer_id_;
    send_control(header, nullptr);
  }
  end();
}

}  // namespace tributary::transport::packet
