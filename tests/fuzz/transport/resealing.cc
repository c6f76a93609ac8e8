#include "tests/fuzz/transport/resealing.h"

#include <cstring>
#include <optional>

namespace tributary::fuzz {

using namespace transport::packet;

namespace {

constexpr std::size_t kSealedHeadBytes = kPacketHeaderBytes + kSealTagBytes;

/// Returns the header of a sealed datagram that has room for its authenticator; nullopt for any other datagram.
std::optional<PacketHeader> sealed_header(std::span<const std::byte> datagram) {
  if (datagram.size() < kSealedHeadBytes) return std::nullopt;
  PacketHeader header;
  std::memcpy(static_cast<void*>(&header), datagram.data(), sizeof header);
  return (header.flags & packet_flags::kSealed) != 0 ? std::optional(header) : std::nullopt;
}

}  // namespace

void Resealing::note(std::span<const std::byte> datagram, bool ours) {
  const auto header = sealed_header(datagram);
  if (!header) return;
  const auto handshake = decode_handshake(datagram.subspan(kSealedHeadBytes));
  if (!handshake) return;
  if (header->type == PacketType::open) {
    asked_[handshake->connection] = {.name = {handshake->group, handshake->epoch, handshake->lane, handshake->child},
                                     .context = {.level = static_cast<PacketSecurity>(handshake->security),
                                                 .client = handshake->connection,
                                                 .client_random = handshake->random}};
  } else if (header->type == PacketType::accept) {
    const auto asked = asked_.find(header->connection);
    if (asked == asked_.end()) return;
    const auto secret = keys_->of(asked->second.name);
    if (!secret) return;
    SealContext context = asked->second.context;
    context.listener = handshake->connection;
    context.listener_random = handshake->random;
    Link& link = links_[ours ? context.client : context.listener];
    link.ours = std::make_unique<Seal>(*secret, context, !ours);
    link.theirs = std::make_unique<Seal>(*secret, context, ours);
  }
}

/// Finds a packet's keys. If the input has changed the packet's name, the keys of any connection serve.
Resealing::Link* Resealing::link_of(std::uint64_t connection) {
  if (links_.empty()) return nullptr;
  const auto at = links_.find(connection);
  return at != links_.end() ? &at->second : &links_.begin()->second;
}

void Resealing::unseal(std::vector<std::byte>& datagram) {
  note(datagram, true);
  const auto header = sealed_header(datagram);
  if (!header || header->type != PacketType::data) return;
  if (Link* const link = link_of(header->connection)) static_cast<void>(link->theirs->open(header->number, datagram));
}

void Resealing::seal(std::vector<std::byte>& datagram) {
  auto header = sealed_header(datagram);
  if (!header) return;
  header->payload_bytes = static_cast<std::uint16_t>(datagram.size() - kSealedHeadBytes);
  header->checksum = 0;
  std::memcpy(datagram.data(), &*header, sizeof *header);
  const std::span bytes(datagram);
  const auto head = bytes.first(kPacketHeaderBytes);
  const auto payload = bytes.subspan(kSealedHeadBytes);
  Link* const link = link_of(header->connection);
  if (header->type == PacketType::data) {
    if (link != nullptr) static_cast<void>(link->ours->seal(header->number, bytes, {}, {}));
    return;
  }
  std::optional<SealTag> tag;
  if (header->type == PacketType::open) {
    if (const auto handshake = decode_handshake(payload)) {
      const auto secret = keys_->of({handshake->group, handshake->epoch, handshake->lane, handshake->child});
      if (secret) tag = open_tag(*secret, head, payload);
    }
  } else if (link != nullptr) {
    tag = link->ours->control_tag(true, head, payload);
  }
  if (tag) std::memcpy(&datagram[kPacketHeaderBytes], tag->data(), tag->size());
  const std::uint32_t checksum = sealed_checksum(datagram);
  std::memcpy(&datagram[offsetof(PacketHeader, checksum)], &checksum, sizeof checksum);
}

}  // namespace tributary::fuzz
