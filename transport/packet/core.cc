#include "packet/core.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ethernet/checksum.h"
#include "packet/address.h"
#include "packet/connection.h"
#include "tributary/protocol/assert.h"

namespace tributary::transport::packet {
namespace {

// A thread that was away for so long cannot tell a silent peer from its own absence.
constexpr Duration kAbsence = std::chrono::seconds(1);
// What a connection may promise at least, however many there are: two datagrams of the longest kind.
constexpr std::size_t kWindowMin = 32768;
// A look asks the system, which takes about as long as an offer.
constexpr std::uint32_t kLooksPerOffer = 1;
// Some bursts of the longest datagrams.
constexpr std::size_t kSealedRoom = 1U << 20;

}  // namespace

PacketCore::PacketCore(PacketTransport::OpenPort open, const PacketSettings& settings, PacketTransport::Time time)
    : Engine(settings.busy_poll, settings.spin_max, kLooksPerOffer),
      open_(std::move(open)),
      settings_(settings),
      time_(std::move(time)),
      pool_(settings.kept_bytes_max),
      ids_(settings.seed),
      half_open_(settings.half_open_max),
      departing_(settings.connections_max),
      burst_(kBurst),
      now_(time_()),
      attended_(now_),
      resolver_([this](std::function<void()> call) { post(std::move(call)); }) {}

// ---- the port

Status PacketCore::open_port() {
  if (port_) return {};
  auto port = open_({});
  if (!port) return std::unexpected(port.error());
  port_ = std::move(*port);
  port_->leave_checksums();
  return {};
}

bool PacketCore::can_listen(const Endpoint& at) const {
  return !listening_ && (!port_ || at.port == 0 || at.port == port_->local().port);
}

bool PacketCore::listens_at(std::uint16_t port) const noexcept {
  const auto does = [port](const PacketCore& core) { return core.listening_ && core.listening_->port == port; };
  return does(*this) || std::ranges::any_of(driven_, [&](const auto& other) { return does(*other); });
}

std::shared_ptr<PacketCore> PacketCore::that_can_listen(const Endpoint& at) {
  if (can_listen(at)) return shared_from_this();
  for (const auto& other : driven_) {
    if (at.port != 0 && other->can_listen(at)) return other;
  }
  return nullptr;
}

/// Where can_listen().
Result<Endpoint> PacketCore::listen(const Endpoint& at, Acceptor* acceptor, PacketTransport::Route route) {
  const auto refused = [&](const std::string& why) {
    return fail(Errc::io, "cannot listen on " + to_string(at) + ": " + why);
  };
  if (!port_) {
    auto port = open_(at);
    if (!port) return refused(port.error().message);
    port_ = std::move(*port);
    port_->leave_checksums();
  }
  const Endpoint bound = endpoint_of(port_->local());
  listening_ = Endpoint{at.host.empty() ? bound.host : at.host, bound.port};
  acceptor_ = acceptor;
  route_ = std::move(route);
  return *listening_;
}

void PacketCore::stop_listening() noexcept {
  listening_.reset();
  acceptor_ = nullptr;
  route_ = nullptr;
}

std::size_t PacketCore::datagram_bytes(const PacketAddress& to) {
  const std::size_t most = std::min(port_->datagram_bytes_max(to), settings_.datagram_bytes_max);
  return std::clamp(most, kDatagramBytesMin, kDatagramBytesMax);
}

// ---- connections

std::uint64_t PacketCore::enter(const ConnectionPtr& connection) {
  std::uint32_t place = 0;
  if (free_places_.empty()) {
    place = static_cast<std::uint32_t>(places_.size());
    places_.emplace_back();
    free_places_.reserve(places_.size());
    departed_.reserve(places_.capacity());
  } else {
    place = free_places_.back();
    free_places_.pop_back();
  }
  std::uint64_t id = 0;
  while (id >> kPlaceBits == 0) id = (ids_.next() << kPlaceBits) | place;
  TRIBUTARY_ASSERT(places_[place].id == 0 && !places_[place].connection, "place {} is taken by connection {}", place,
                   places_[place].id);
  places_[place] = {connection, id};
  ++statistics.connections;
  return id;
}

void PacketCore::leave(std::uint64_t id) noexcept {
  const auto place = static_cast<std::uint32_t>(id & ((std::uint64_t{1} << kPlaceBits) - 1));
  if (place >= places_.size() || places_[place].id != id) return;
  --statistics.connections;
  places_[place].id = 0;
  free_places_.push_back(place);
  departed_.push_back(std::move(places_[place].connection));
}

PacketConnection* PacketCore::find(std::uint64_t id) const noexcept {
  const std::uint64_t place = id & ((std::uint64_t{1} << kPlaceBits) - 1);
  return id != 0 && place < places_.size() && places_[place].id == id ? places_[place].connection.get() : nullptr;
}

PacketConnection* PacketCore::find_peer(std::uint64_t peer_id) const noexcept {
  const auto at = by_peer_.find(peer_id);
  return at != by_peer_.end() ? find(at->second) : nullptr;
}

void PacketCore::find_ending(KnownEnding& known, std::span<const std::byte> head,
                             std::span<const std::byte> payload) noexcept {
  known.data = payload.data();
  known.bytes = payload.size();
  known.turn = transmits_;
  known.framed = !head.empty();
  if (known.framed) std::memcpy(known.head.data(), head.data(), kFrameHeaderBytes);
  known.ending = {.suffix = Crc32cSuffix::of(head, payload), .head_sum = ethernet::partial_sum(head)};
}

std::size_t PacketCore::window_share() const noexcept {
  const std::size_t connections = std::max<std::size_t>(statistics.connections, 1);
  // What others' streams fill is not promised a second time, and one share is left for who comes next. A stream may
  // begin and end in the middle of a chunk.
  const std::size_t free = (pool_.chunks_max() - pool_.in_use()) / (connections + 1);
  const std::size_t kept = free > 2 ? (free - 2) * kChunkBytes : 0;
  const std::size_t share = std::min(settings_.window_bytes_total / connections, kept);
  return std::min(std::max(share, kWindowMin), settings_.window_bytes);
}

void PacketCore::make_due(PacketConnection& connection) {
  due_.add(connection);
}

void PacketCore::make_touched(PacketConnection& connection) {
  touched_.add(connection);
}

void PacketCore::make_dirty(PacketConnection& connection) {
  dirty_.add(connection);
}

void PacketCore::want_time(PacketConnection& connection, TimePoint at) {
  constexpr std::size_t kPerConnection = 4;
  constexpr std::size_t kBesides = 64;
  push_deadline(connection.id(), at);
  if (deadlines_.size() <= kPerConnection * statistics.connections + kBesides) return;
  deadlines_.clear();  // most of them were asked for before an earlier time was
  for (const Place& place : places_) {
    if (place.id != 0 && place.connection->asked_for != TimePoint::max()) {
      push_deadline(place.id, place.connection->asked_for);
    }
  }
}

void PacketCore::push_deadline(std::uint64_t id, TimePoint at) {
  deadlines_.push({at, static_cast<std::uint32_t>(id & ((std::uint64_t{1} << kPlaceBits) - 1)),
                   static_cast<std::uint32_t>(id >> kPlaceBits)});
  statistics.deadlines_max = std::max(statistics.deadlines_max, deadlines_.size());
}

TimePoint PacketCore::next_deadline() const noexcept {
  return idle() ? first_deadline() : TimePoint{};
}

// ---- turns

/// A poll() that waits begins with a look: what is there already costs no sleep.
void PacketCore::begin_poll(bool waits) {
  more_to_receive_ = true;
  if (!waits) turn();
}

turn::Looked PacketCore::look(bool /*spins*/) {
  turn();
  return {.at = time_(), .some = !idle()};
}

turn::Looked PacketCore::sleep(TimePoint now, TimePoint until) {
  wait_for_packets(std::min(until, first_deadline()) - now);
  return look(false);
}

void PacketCore::look_at_clock() {
  now_ = time_();
  const Duration away = now_ - attended_;
  attended_ = now_;
  if (away < kAbsence) return;
  for (const Place& place : places_) {
    if (place.id != 0) place.connection->excuse(away);
  }
}

// ---- others

void PacketCore::drive(std::shared_ptr<PacketCore> other) {
  driven_.push_back(std::move(other));
  watch_driven();
}

void PacketCore::watch_driven() {
  std::vector<int> descriptors;
  for (const auto& other : driven_) {
    if (other->port_ && other->port_->descriptor() >= 0) descriptors.push_back(other->port_->descriptor());
  }
  if (port_) port_->watch(descriptors);
}

/// What they have for their users comes in this turn, as if it were ours.
void PacketCore::turn_driven() {
  for (std::size_t i = 0; i < driven_.size(); ++i) count_callbacks(driven_[i]->poll(Duration::zero()));
  const auto over = [](const auto& other) {
    return !other->listening_ && other->statistics.connections == 0 && other->idle();
  };
  if (std::erase_if(driven_, over) > 0) watch_driven();
}

TimePoint PacketCore::first_deadline() const noexcept {
  TimePoint first = deadlines_.first();
  for (const auto& other : driven_) first = std::min(first, other->deadlines_.first());
  return first;
}

void PacketCore::turn() {
  look_at_clock();
  if (!driven_.empty()) turn_driven();
  more_to_receive_ = receive_packets();
  run_expired();
  if (!ending_) run_posted();
  due_.run([](PacketConnection& connection) { connection.turn(); });
  transmit();
  departed_.clear();
}

void PacketCore::wait_for_packets(Duration limit) {
  if (limit <= Duration::zero()) return;
  if (calls().fall_asleep()) {
    const TimePoint until = time_() + limit;
    if (port_) {
      port_->wait(limit);
    } else {
      calls().wait(limit);
    }
    attended_ = std::min(time_(), until);  // sleeping is no absence, oversleeping is
    for (const auto& other : driven_) other->attended_ = attended_;
  }
  calls().wake_up();
}

void PacketCore::run_expired() {
  while (deadlines_.first() <= now_) {
    const turn::DeadlineHeap::Entry entry = deadlines_.pop();
    if (entry.place >= places_.size() || places_[entry.place].id == 0) continue;
    const Place& place = places_[entry.place];
    if (static_cast<std::uint32_t>(place.id >> kPlaceBits) != entry.generation) continue;
    const ConnectionPtr connection = place.connection;
    if (connection->asked_for != entry.at) continue;  // it has asked for an earlier time since, and had it
    connection->asked_for = TimePoint::max();
    connection->on_time();
  }
}

/// No callback runs between a packet's send and the flush: the payload is borrowed until then.
void PacketCore::transmit() {
  if (dirty_.empty() && !control_sent_) return;
  ++transmits_;
  dirty_.run([](PacketConnection& connection) { connection.transmit_turn(); });
  control_sent_ = false;
  flush();
}

void PacketCore::flush() {
  port_->flush();
  sealed_used_ = 0;
}

std::span<std::byte> PacketCore::sealed_room(std::size_t bytes) {
  TRIBUTARY_ASSERT(bytes <= kSealedRoom, "a packet of {} bytes is to be sealed, with room for {}", bytes, kSealedRoom);
  if (sealed_.empty()) sealed_.resize(kSealedRoom);
  if (sealed_used_ + bytes > sealed_.size()) flush();
  const auto room = std::span(sealed_).subspan(sealed_used_, bytes);
  sealed_used_ += (bytes + 63) / 64 * 64;
  sealed_used_ = std::min(sealed_used_, sealed_.size());
  return room;
}

SealRandom PacketCore::random() noexcept {
  SealRandom random;
  if (settings_.seed == 0 && random_bytes(random)) return random;
  const std::array<std::uint64_t, 2> numbers{ids_.next(),
                                             ids_.next()};  // keyed by the system's randomness, or a test's
  std::memcpy(random.data(), numbers.data(), sizeof random);
  return random;
}

/// What was sent is no system's to bring over after our end, as with TCP: so it is brought over before.
void PacketCore::linger() {
  const TimePoint until = time_() + settings_.linger;
  const auto some_left = [this] {
    bool left = false;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const ConnectionPtr connection = places_[i].connection;
      if (!connection) continue;
      if (connection->last_words()) {
        left = true;
      } else {
        connection->shut_down();  // so that nobody is called back from here on
      }
    }
    return left;
  };
  for (bool left = some_left(); left && time_() < until; left = some_left()) {
    turn();
    if (idle()) wait_for_packets(std::min(until, deadlines_.first()) - time_());
  }
}

void PacketCore::shut_down() {
  if (std::exchange(ending_, true)) return;
  stop_listening();
  for (const auto& other : driven_) other->shut_down();
  if (port_) linger();
  end();
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const ConnectionPtr connection = places_[i].connection;
    if (connection) connection->shut_down();
  }
  due_.clear();
  dirty_.clear();
  if (port_) flush();
  resolver_.stop();
  calls().forget();
}

}  // namespace tributary::transport::packet
