// Class PacketConnection: opens. The client asks, gets a cookie and shows it; before that, the listener keeps no state.
// The listener's user hears of the connection when the client's first packet comes.
#include <algorithm>

#include "transport/channel/deadline.h"
#include "transport/packet/address.h"
#include "transport/packet/connection.h"
#include "tributary/protocol/assert.h"

namespace tributary::transport::packet {
namespace {

constexpr Duration kHalfOpenLimit = std::chrono::seconds(5);
// The longest pause between two opens. Where one packet in ten is lost or overtaken, six opens within a limit of a
// second are too few: in tests over such paths a communicator failed. Ten packets of 128 bytes a second are no burden.
constexpr Duration kOpenAgainMax = std::chrono::milliseconds(100);

}  // namespace

void PacketConnection::connect(const Endpoint& to, Duration limit) {
  to_ = to;
  limit_ = limit;
  give_up_at_ = deadline_of(core_.clock(), limit);
  look_at_deadline();
  if (auto ok = core_.open_port(); !ok) {
    return fail_later({Errc::exhausted, "cannot connect to " + peer_ + ": " + ok.error().message});
  }
  if (const auto numeric = numeric_address(to)) {
    addresses_.push_back(packet_address(*numeric));
    return try_next_address();
  }
  state_ = State::looking_up;
  const ConnectionPtr self = shared_from_this();
  core_.resolver().ask(to, [self](const Result<std::vector<SocketAddress>>& found) { self->looked_up(found); });
}

void PacketConnection::looked_up(const Result<std::vector<SocketAddress>>& found) {
  if (state_ != State::looking_up || fatal_) return;  // the answer comes too late
  state_ = State::opening;
  if (!found) return fail_later({Errc::unreachable, "cannot connect to " + peer_ + ": " + found.error().message});
  for (const SocketAddress& address : *found) addresses_.push_back(packet_address(address));
  try_next_address();
}

void PacketConnection::try_next_address() {
  if (addresses_.empty()) {
    return fail_later(
        {Errc::unreachable, "cannot connect to " + peer_ + ": nobody listens there for packets over UDP."});
  }
  address_ = addresses_.front();
  addresses_.pop_front();
  attempts_ = 0;
  asked_.cookie = 0;
  asked_.redirected = false;
  act_at_ = TimePoint::max();
  core_.make_due(*this);
}

void PacketConnection::fail_later(Error error) {
  act_at_ = TimePoint::max();
  if (detached_) return end();
  fatal_ = std::move(error);
  core_.make_due(*this);
}

void PacketConnection::send_open() {
  ++attempts_;
  if (credit_told_ == 0) credit_told_ = static_cast<std::uint32_t>(core_.window_share());
  Handshake handshake;
  handshake.connection = id_;
  handshake.cookie = asked_.cookie;
  handshake.credit = credit_told_;
  handshake.datagram_bytes = static_cast<std::uint32_t>(core_.settings().datagram_bytes_max);
  if (const auto first = flow_.frames().first()) {
    handshake.group = first->group;
    handshake.lane = first->lane;
    handshake.epoch = first->epoch;
  }
  if (handshake.group == 0) handshake.lane = handshake.epoch = 0;
  if (!choose_seal(handshake)) return;
  PacketHeader header;
  header.type = PacketType::open;
  header.connection = id_;
  if (link_) {
    handshake.child = link_->link.name.child;
    handshake.security = static_cast<std::uint32_t>(link_->link.security);
    handshake.random = random_;
    core_.send_sealed_control(address_, header, &handshake,
                              [this](auto head, auto payload) { return open_tag(link_->secret, head, payload); });
  } else {
    core_.send_control(address_, header, &handshake);
  }
  act_at_ = core_.now() + std::min(flow_.round_trip().timeout(attempts_ - 1), kOpenAgainMax);
  look_at_deadline();
}

/// Chooses the link, once for a connection. Returns false if the connection must be sealed, and no secret is known for
/// it.
bool PacketConnection::choose_seal(const Handshake& handshake) {
  LinkKeys* const keys = core_.keys();
  if (keys == nullptr || std::exchange(seal_chosen_, true)) return true;
  auto link = choose_link(*keys, handshake.group, handshake.epoch, handshake.lane, peer_);
  if (!link) {
    fail_later(std::move(link.error()));
    return false;
  }
  link_ = *link;
  if (link_) random_ = core_.random();
  return true;
}

void PacketConnection::make_seal(const SealRandom& client_random, const SealRandom& listener_random, bool client) {
  TRIBUTARY_ASSERT(link_ && id_ != 0 && peer_id_ != 0, "connection {} is sealed without a secret or a name", id_);
  seal_ = std::make_unique<Seal>(link_->secret,
                                 SealContext{.level = link_->link.security,
                                             .client = client ? id_ : peer_id_,
                                             .listener = client ? peer_id_ : id_,
                                             .client_random = client_random,
                                             .listener_random = listener_random},
                                 client);
}

void PacketConnection::take_refuse(RefuseReason reason) {
  if (state_ != State::opening || reason == RefuseReason::none) return take_reset(true);
  if (reason == RefuseReason::no_key_yet) {  // the next repeat of the open asks again
    if (asked_.key_until == TimePoint::max()) asked_.key_until = core_.now() + kKeyLimit;
    if (core_.now() < asked_.key_until) return;
  }
  fail_later(refused_by(peer_, reason));
}

void PacketConnection::take_challenge(const Handshake& handshake) {
  if (state_ != State::opening || fatal_ || asked_.cookie == handshake.cookie) return;  // a challenge that is repeated
  asked_.cookie = handshake.cookie;
  attempts_ = 0;  // the path works, so the pauses between repeats begin again
  send_open();
}

/// Follows one redirect only: listeners that redirect to each other must not send the client in a circle.
void PacketConnection::take_redirect(const Handshake& handshake, const PacketAddress& from) {
  if (state_ != State::opening || fatal_ || asked_.redirected || handshake.port == 0 || from.port == handshake.port)
    return;
  asked_.redirected = true;
  address_.port = handshake.port;
  asked_.cookie = 0;
  send_open();
}

void PacketConnection::take_accept(const PacketHeader& header, const Handshake& handshake,
                                   std::span<const std::byte> datagram) {
  if (state_ != State::opening || fatal_ || handshake.connection == 0) return;
  const ConnectionPtr kept = shared_from_this();
  if (link_) {
    peer_id_ = handshake.connection;
    make_seal(random_, handshake.random, true);
  }
  if (!control_is_authentic(header, datagram)) {  // another process sent this answer: the right answer may still come
    seal_.reset();
    peer_id_ = 0;
    return;
  }
  opened(handshake, address_);
  flow_.ping();  // the listener waits for a first packet, even if no frame is queued
  state_ = State::open;
  core_.make_dirty(*this);
  if (detached_) {  // close_after_flush() was called meanwhile, and its limit holds
    state_ = State::flushing;
    return flow_.finish();
  }
  give_up_at_ = TimePoint::max();
  core_.count_callback();
  handler_->on_open(*channel_);
}

/// From here on each side knows the other side's name for the connection.
void PacketConnection::opened(const Handshake& handshake, const PacketAddress& from) {
  TRIBUTARY_ASSERT(state_ == State::opening || state_ == State::half_open, "connection {} opens in state {}", id_,
                   state_);
  act_at_ = TimePoint::max();
  addresses_.clear();
  address_ = from;
  peer_id_ = handshake.connection;
  core_.enter_peer(peer_id_, id_);
  flow_.set_window(credit_told_);
  const std::size_t theirs = std::clamp<std::size_t>(handshake.datagram_bytes, kDatagramBytesMin, kDatagramBytesMax);
  flow_.open(peer_id_, handshake.credit, std::min(theirs, core_.datagram_bytes(from)), seal_ ? kSealTagBytes : 0,
             core_.now());
}

// ---- The listener's side

void PacketConnection::accept(const PacketAddress& from, const Handshake& handshake,
                              const std::optional<LinkKeys::Link>& link) {
  TRIBUTARY_ASSERT(state_ == State::opening && id_ != 0, "connection {} is accepted in state {}", id_, state_);
  state_ = State::half_open;
  link_ = link;
  if (link_) {
    random_ = core_.random();
    peer_id_ = handshake.connection;
    make_seal(handshake.random, random_, false);
  }
  core_.half_open().add(id_, from);
  credit_told_ = static_cast<std::uint32_t>(core_.window_share());
  opened(handshake, from);
  give_up_at_ = core_.now() + kHalfOpenLimit;
  look_at_deadline();
  repeat_accept(from);
}

void PacketConnection::repeat_accept(const PacketAddress& from) {
  if (from != address_ || (state_ != State::half_open && state_ != State::open)) return;
  Handshake handshake;
  handshake.connection = id_;
  handshake.credit = credit_told_;
  handshake.datagram_bytes = static_cast<std::uint32_t>(core_.settings().datagram_bytes_max);
  PacketHeader header;
  header.type = PacketType::accept;
  header.connection = peer_id_;
  handshake.random = random_;
  send_control(header, &handshake);
}

/// Called when the client's first packet has come.
void PacketConnection::established() {
  TRIBUTARY_ASSERT(state_ == State::half_open && handler_ == nullptr, "connection {} is established in state {}", id_,
                   state_);
  core_.half_open().remove(id_);
  state_ = State::open;
  give_up_at_ = TimePoint::max();
  Acceptor* const acceptor = core_.acceptor();
  if (acceptor == nullptr) return close();
  ++core_.statistics.accepted;
  core_.count_callback();
  ChannelHandler* const handler =
      acceptor->on_accept(std::make_unique<PacketChannel>(core_.shared_from_this(), shared_from_this()));
  if (handler == nullptr) return close();
  handler_ = handler;
}

}  // namespace tributary::transport::packet
