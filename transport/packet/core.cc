#include "transport/packet/core.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "transport/packet/address.h"
#include "transport/packet/connection.h"
#include "tributary/protocol/assert.h"

namespace tributary::transport::packet {
namespace {

// A thread that was away for this time cannot tell a peer's silence from its own absence.
constexpr Duration kAbsence = std::chrono::seconds(1);
// Bytes that a connection may promise at least, whatever the number of connections: two datagrams of the greatest
// length.
constexpr std::size_t kWindowMin = 32768;
// The number of looks after which the thread offers its core. A look asks the system, and takes as long as an offer.
constexpr std::uint32_t kLooksPerOffer = 1;

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

// ---- The port

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

/// Call it only if can_listen() is true.
Result<Endpoint> PacketCore::listen(const Endpoint& at, Acceptor* acceptor, PacketTransport::Route route) {
  TRIBUTARY_ASSERT(can_listen(at), "a core must listen at port {}, but listens already or has another port", at.port);
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

// ---- Connections

std::uint64_t PacketCore::enter(const ConnectionPtr& connection) {
  const std::uint64_t id = connections_.enter(connection, [this] { return ids_.next(); });
  statistics.connections = connections_.size();
  return id;
}

void PacketCore::leave(std::uint64_t id) noexcept {
  connections_.leave(id);
  statistics.connections = connections_.size();
}

std::size_t PacketCore::window_share() const noexcept {
  const std::size_t connections = std::max<std::size_t>(statistics.connections, 1);
  // The core does not promise memory that other streams fill, and reserves one share for the next connection. A stream
  // may begin and end in the middle of a chunk.
  TRIBUTARY_ASSERT(pool_.in_use() <= pool_.chunks_max(), "{} chunks are in use, of {}", pool_.in_use(),
                   pool_.chunks_max());
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
  deadlines_.clear();  // most entries are outdated: their connections have asked for an earlier time since
  connections_.each([this](const PacketConnection& one) {
    if (one.asked_for != TimePoint::max()) push_deadline(one.id(), one.asked_for);
  });
}

void PacketCore::push_deadline(std::uint64_t id, TimePoint at) {
  TRIBUTARY_ASSERT(id != 0, "a connection that has not entered wants a deadline");
  deadlines_.push({at, Table::place_of(id), Table::generation_of(id)});
  statistics.deadlines_max = std::max(statistics.deadlines_max, deadlines_.size());
}

TimePoint PacketCore::next_deadline() const noexcept {
  return idle() ? first_deadline() : TimePoint{};
}

// ---- Turns

/// A poll() that waits begins with a look: if packets have come already, it does not sleep.
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
  connections_.each([away](PacketConnection& one) { one.excuse(away); });
}

// ---- Cores of other ports

void PacketCore::drive(std::shared_ptr<PacketCore> other) {
  TRIBUTARY_ASSERT(other != nullptr && other.get() != this, "a core drives itself");
  other->follow_rounds(*this);
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

/// Polls the other ports' cores. Their callbacks count as this core's callbacks.
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
  begin_turn();
  if (!driven_.empty()) turn_driven();
  more_to_receive_ = receive_packets();
  run_expired();
  if (!ending_) run_posted();
  const auto may_go = [this](const PacketConnection& one) { return one.closed() || one.may_go(round()); };
  due_.run_if(may_go, [](PacketConnection& connection) { connection.turn(); });
  transmit();
  const auto has_left = [](const PacketCore& core) {
    return core.more_to_receive_ || core.due_.has_waiting() || core.dirty_.has_waiting();
  };
  end_turn(!has_left(*this) && std::ranges::none_of(driven_, [&](const auto& other) { return has_left(*other); }));
  connections_.forget_departed();
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
    attended_ = std::min(time_(), until);  // a sleep to `until` is no absence, but a longer sleep is
    for (const auto& other : driven_) other->attended_ = attended_;
  }
  calls().wake_up();
}

void PacketCore::run_expired() {
  while (deadlines_.first() <= now_) {
    const turn::DeadlineHeap::Entry entry = deadlines_.pop();
    const ConnectionPtr connection = connections_.at(entry.place, entry.generation);
    if (!connection) continue;
    if (connection->asked_for != entry.at) continue;  // outdated: the connection had an earlier turn
    connection->asked_for = TimePoint::max();
    connection->on_time();
  }
}

/// Sends packets. No callback runs between a packet's send and the flush: the payload is borrowed until the flush.
void PacketCore::transmit() {
  if (dirty_.empty() && !control_sent_) return;
  TRIBUTARY_ASSERT(being_read_ == nullptr, "packets are sent while one is read");
  endings_.next_turn();
  // A connection that has left must go now: this list does not keep it alive beyond the turn.
  dirty_.run_if([this](const PacketConnection& one) { return one.closed() || one.may_go(round()); },
                [](PacketConnection& connection) { connection.transmit_turn(); });
  control_sent_ = false;
  flush();
}

void PacketCore::flush() {
  TRIBUTARY_ASSERT(port_ != nullptr, "packets are flushed, and there is no port");
  port_->flush();
  sealed_.clear();
}

std::span<std::byte> PacketCore::sealed_room(std::size_t bytes) {
  if (const auto room = sealed_.take(bytes); !room.empty()) return room;
  flush();
  const auto room = sealed_.take(bytes);
  TRIBUTARY_ASSERT(room.size() == bytes, "an empty room has no {} bytes", bytes);
  return room;
}

SealRandom PacketCore::random() noexcept {
  SealRandom random;
  if (settings_.seed == 0 && random_bytes(random)) return random;
  const std::array<std::uint64_t, 2> numbers{ids_.next(),
                                             ids_.next()};  // keyed by random bytes of the system, or by a test's seed
  std::memcpy(random.data(), numbers.data(), sizeof random);
  return random;
}

/// Waits for acknowledgements: after the end of this process the kernel does not go on sending, as it does for TCP.
void PacketCore::linger() {
  const TimePoint until = time_() + settings_.linger;
  const auto some_left = [this] {
    bool left = false;
    connections_.each([&left](PacketConnection& one) {
      if (one.last_words()) {
        left = true;
      } else {
        one.shut_down();  // so that no callback runs from here on
      }
    });
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
  connections_.each([](PacketConnection& one) { one.shut_down(); });
  due_.clear();
  dirty_.clear();
  if (port_) flush();
  resolver_.stop();
  calls().forget();
}

}  // namespace tributary::transport::packet
