// Brings packets to their connections, and handles packets that belong to no connection: handshakes, refusals and
// resets. A packet that comes here may be forged, repeated or garbage. It costs a bounded time, and no memory before
// its sender has shown a cookie.
#include <algorithm>
#include <cstring>

#include "transport/packet/address.h"
#include "transport/packet/connection.h"
#include "transport/packet/core.h"
#include "tributary/protocol/assert.h"

namespace tributary::transport::packet {
namespace {

constexpr auto kCookieEpoch = std::chrono::seconds(10);  // a cookie is valid in its epoch and in the next one
constexpr std::uint32_t kResetsPerSecond = 2000;

}  // namespace

namespace {

/// Prefetches the whole packet, because the check of its checksums reads the whole packet.
void fetch(const ReceivedPacket& packet) noexcept {
  constexpr std::size_t kLine = 64;
  constexpr std::size_t kBytesMax = 24 * kLine;  // the processor prefetches the rest of a longer packet by itself
  const std::byte* const end = packet.bytes.data() + std::min(packet.bytes.size(), kBytesMax);
#pragma GCC unroll 8
  for (const std::byte* line = packet.bytes.data(); line < end; line += kLine) __builtin_prefetch(line);
}

}  // namespace

/// Receives one burst. Returns true if there may be more packets.
bool PacketCore::receive_packets() {
  if (!port_) return false;
  const std::size_t count = port_->receive(burst_);
  TRIBUTARY_ASSERT(count <= burst_.size(), "{} packets came in a burst of {}", count, burst_.size());
  if (count > 0) fetch(burst_[0]);
  for (std::size_t i = 0; i < count; ++i) {
    if (i + 1 < count) fetch(burst_[i + 1]);
    if (burst_[i].refused) {
      take_refusal(burst_[i]);
    } else {
      take_packet(burst_[i]);
    }
  }
  being_read_ = nullptr;
  touched_.run_all([](PacketConnection& connection) { connection.after_packets(); });
  return count == burst_.size();
}

[[gnu::noinline]] void PacketCore::take_packet(const ReceivedPacket& packet) {
  being_read_ = &packet;
  ++statistics.packets_received;
  statistics.bytes_received += packet.bytes.size();
  PacketHeader header;
  if (const auto reject = read_packet(packet.bytes, packet.udp_besides, header)) {
    ++statistics.rejects[static_cast<std::size_t>(*reject)];
    return;
  }
  if (header.type != PacketType::data) return take_control(packet, header);
  PacketConnection* const connection = connections_.find(header.connection);
  if (connection == nullptr) return send_reset(packet, header);
  if (!connection->unseal(header, packet.bytes)) return;
  const Arrival arrival{.header = header,
                        .payload = payload_of(header, packet.bytes),
                        .marked = packet.congestion_experienced,
                        .at = packet.arrived == TimePoint{} ? now_ : std::min(packet.arrived, now_)};
  if (!connection->take_frame(arrival)) connection->take_data(arrival);
}

/// Takes the packets that open and end connections.
void PacketCore::take_control(const ReceivedPacket& packet, const PacketHeader& header) {
  if (header.type == PacketType::reset) return take_reset(header);
  if (header.type == PacketType::open) return take_open(packet, header);
  if (header.type == PacketType::close) return take_close(packet, header);
  PacketConnection* const connection = connections_.find(header.connection);
  if (header.type == PacketType::refuse) {
    return connection != nullptr ? connection->take_refuse(static_cast<RefuseReason>(header.reason)) : void();
  }
  const auto handshake = decode_handshake(payload_of(header, packet.bytes));
  if (connection == nullptr || !handshake) {
    ++statistics.senseless;
    return;
  }
  if (header.type == PacketType::challenge) return connection->take_challenge(*handshake);
  if (header.type == PacketType::redirect) return connection->take_redirect(*handshake, packet.from);
  connection->take_accept(header, *handshake, packet.bytes);
}

void PacketCore::take_close(const ReceivedPacket& packet, const PacketHeader& header) {
  PacketConnection* const connection = connections_.find(header.connection);
  if (connection != nullptr) {
    if (!connection->control_is_authentic(header, packet.bytes)) return;
    connection->take_close();
  }
  send_reset(packet, header);  // a close is answered by a reset, too
}

/// Ends a connection. Only a host that has seen this side's packets knows the other side's name for the connection.
void PacketCore::take_reset(const PacketHeader& header) {
  PacketConnection* const connection = connections_.find_peer(header.connection);
  if (connection == nullptr) return;
  ++statistics.resets_received;
  connection->take_reset(false);
}

/// Handles a message of the network that quotes a packet of ours: its address does not exist, or the path carries only
/// shorter packets. Only a host that has seen our packets can forge the message, because the quotation names the
/// connection (RFC 8899, 4.6.1).
void PacketCore::take_refusal(const ReceivedPacket& packet) {
  const auto header = decode_quoted(packet.bytes);
  if (!header) return;
  PacketConnection* const connection = header->type == PacketType::open ? connections_.find(header->connection)
                                                                        : connections_.find_peer(header->connection);
  if (connection == nullptr || connection->address() != packet.from) return;
  if (packet.path_bytes == 0) return connection->take_reset(true);
  port_->believe_path(packet.from, packet.path_bytes);
  connection->ask_route();
}

void PacketCore::send_reset(const ReceivedPacket& packet, const PacketHeader& header) {
  if (header.type == PacketType::data) ++statistics.unknown_connection;
  if (now_ - resets_from_ >= std::chrono::seconds(1)) {
    resets_from_ = now_;
    resets_ = 0;
  }
  if (++resets_ > kResetsPerSecond) return;
  ++statistics.resets_sent;
  PacketHeader reset;
  reset.type = PacketType::reset;
  reset.connection = header.connection;
  send_control(packet.from, reset, nullptr);
}

void PacketCore::send_control(const PacketAddress& to, PacketHeader header, const Handshake* handshake) {
  if (!port_) return;
  std::array<std::byte, kPacketHeaderBytes + kHandshakeBytes> bytes;
  std::size_t payload = 0;
  if (handshake != nullptr) {
    payload = kHandshakeBytes;
    std::memcpy(bytes.data() + kPacketHeaderBytes, handshake, kHandshakeBytes);
  }
  encode(header, std::span(bytes).first<kPacketHeaderBytes>(), std::span(bytes).subspan(kPacketHeaderBytes, payload),
         {});
  put_control(to, std::span(bytes).first(kPacketHeaderBytes + payload));
}

void PacketCore::send_sealed_control(const PacketAddress& to, PacketHeader header, const Handshake* handshake,
                                     const MakeTag& make_tag) {
  if (!port_) return;
  std::array<std::byte, kPacketHeaderBytes + kSealTagBytes + kHandshakeBytes> bytes;
  const std::size_t payload = handshake != nullptr ? kHandshakeBytes : 0;
  header.flags |= packet_flags::kSealed;
  header.payload_bytes = static_cast<std::uint16_t>(payload);
  header.checksum = 0;
  std::memcpy(bytes.data(), &header, kPacketHeaderBytes);
  if (handshake != nullptr) {
    std::memcpy(bytes.data() + kPacketHeaderBytes + kSealTagBytes, handshake, kHandshakeBytes);
  }
  const SealTag tag = make_tag(std::span(bytes).first(kPacketHeaderBytes),
                               std::span(bytes).subspan(kPacketHeaderBytes + kSealTagBytes, payload));
  std::memcpy(bytes.data() + kPacketHeaderBytes, tag.data(), tag.size());
  const std::uint32_t checksum = sealed_checksum(std::span(bytes).first(kPacketHeaderBytes + kSealTagBytes + payload));
  std::memcpy(bytes.data() + offsetof(PacketHeader, checksum), &checksum, sizeof checksum);
  put_control(to, std::span(bytes).first(kPacketHeaderBytes + kSealTagBytes + payload));
}

void PacketCore::put_control(const PacketAddress& to, std::span<const std::byte> bytes) {
  // A full port drops the packet: the side that waits for it asks again.
  if (!port_->send(to, bytes, {})) {
    ++statistics.control_unsent;
    return;
  }
  control_sent_ = true;
  ++statistics.packets_sent;
  statistics.bytes_sent += bytes.size();
}

// ---- The listener's packets

std::uint64_t PacketCore::cookie_epoch() const noexcept {
  return static_cast<std::uint64_t>(now_.time_since_epoch() / kCookieEpoch);
}

std::uint64_t PacketCore::cookie_for(const PacketAddress& from, const Handshake& handshake, std::uint64_t epoch) const {
  struct {
    std::array<std::uint8_t, 16> ip;
    std::uint64_t connection, group, epoch;
    std::uint32_t lane, port;
  } told{from.ip, handshake.connection, handshake.group, epoch, handshake.lane, from.port};
  static_assert(sizeof told == 48, "no padding, which would be hashed too");
  return ids_.hash(std::as_bytes(std::span(&told, 1))) | 1;  // never 0, which means "no cookie"
}

void PacketCore::take_open(const ReceivedPacket& packet, const PacketHeader& header) {
  const auto handshake = decode_handshake(payload_of(header, packet.bytes));
  if (!handshake || handshake->connection != header.connection || handshake->connection == 0) {
    ++statistics.senseless;
    return;
  }
  PacketHeader answer;
  answer.connection = handshake->connection;
  Handshake told;
  told.connection = handshake->connection;
  const auto refuse = [&](RefuseReason reason = RefuseReason::none) {
    answer.type = PacketType::refuse;
    answer.reason = static_cast<std::uint32_t>(reason);
    send_control(packet.from, answer, nullptr);
  };
  if (!listening_) return refuse();
  if (route_) {
    told.port = route_({handshake->group, handshake->lane});
    if (told.port == 0) return refuse();
    answer.type = PacketType::redirect;
    return send_control(packet.from, answer, &told);
  }
  if (PacketConnection* const known = connections_.find_peer(handshake->connection))
    return known->repeat_accept(packet.from);
  const std::uint64_t epoch = cookie_epoch();
  if (handshake->cookie != cookie_for(packet.from, *handshake, epoch) &&
      handshake->cookie != cookie_for(packet.from, *handshake, epoch - 1)) {
    if (handshake->cookie != 0) ++statistics.cookies_wrong;
    answer.type = PacketType::challenge;
    told.cookie = cookie_for(packet.from, *handshake, epoch);
    return send_control(packet.from, answer, &told);
  }
  if (statistics.connections >= settings_.connections_max) displace(departing_.oldest());
  if (statistics.connections >= settings_.connections_max) {
    ++statistics.refused_full;
    return refuse();
  }
  std::optional<LinkKeys::Link> link;
  const RefuseReason reason = check_seal(packet, header, *handshake, link);
  if (reason != RefuseReason::none) return refuse(reason);
  displace(half_open_.in_the_way(packet.from));
  accept(packet.from, *handshake, link);
}

void PacketCore::displace(std::uint64_t id) {
  PacketConnection* const connection = connections_.find(id);
  if (connection == nullptr) return;
  ++statistics.displaced;
  connection->make_place();
}

/// Called only after the cookie was shown. So a host that makes this side compute a key really gets packets at its
/// address.
RefuseReason PacketCore::check_seal(const ReceivedPacket& packet, const PacketHeader& header,
                                    const Handshake& handshake, std::optional<LinkKeys::Link>& link) {
  const bool sealed = (header.flags & packet_flags::kSealed) != 0;
  const PacketSecurity least = keys() != nullptr ? keys()->least() : PacketSecurity::off;
  const auto level = sealed ? static_cast<PacketSecurity>(handshake.security) : PacketSecurity::off;
  if (sealed && handshake.security != static_cast<std::uint32_t>(PacketSecurity::authenticate) &&
      handshake.security != static_cast<std::uint32_t>(PacketSecurity::encrypt)) {
    ++statistics.senseless;
    return RefuseReason::unknown_secret;
  }
  if (const RefuseReason reason = reason_to_refuse(level, least); reason != RefuseReason::none) {
    ++statistics.unsealed;
    return reason;
  }
  if (!sealed) return RefuseReason::none;
  const LinkName name{handshake.group, handshake.epoch, handshake.lane, handshake.child};
  if (keys() == nullptr) return RefuseReason::unknown_secret;
  const auto secret = keys()->of(name);
  if (!secret) return reason_of(secret.error());
  const SealTag tag = open_tag(*secret, packet.bytes.first(kPacketHeaderBytes), payload_of(header, packet.bytes));
  if (!same_bytes(tag, packet.bytes.subspan(kPacketHeaderBytes, kSealTagBytes))) {
    ++statistics.forged;
    return RefuseReason::unknown_secret;
  }
  link = LinkKeys::Link{{name, level}, *secret};
  return RefuseReason::none;
}

void PacketCore::accept(const PacketAddress& from, const Handshake& handshake,
                        const std::optional<LinkKeys::Link>& link) {
  TRIBUTARY_ASSERT(statistics.connections < settings_.connections_max, "a connection is accepted beside {} others",
                   statistics.connections);
  auto connection = std::make_shared<PacketConnection>(*this, to_string(endpoint_of(from)), nullptr);
  connection->enter();
  connection->accept(from, handshake, link);
}

}  // namespace tributary::transport::packet
