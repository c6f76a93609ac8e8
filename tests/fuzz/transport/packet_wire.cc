// The header of every packet: a header that decodes must encode to the same bytes. The receiver must believe a packet
// with a right checksum or seal, and must not believe a packet that differs from it in one byte.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "transport/packet/seal.h"
#include "transport/packet/wire.h"

using namespace tributary::transport::packet;

namespace {

void decoded_is_encoded_again(std::span<const std::byte> datagram) {
  const auto header = decode_packet(datagram);
  if (!header) {
    if (to_string(header.error()) == "unknown") std::abort();
    return;
  }
  if ((header->flags & packet_flags::kSealed) != 0) {  // seal.h checks sealed packets
    const std::uint32_t right = header->type == PacketType::data ? 0 : sealed_checksum(datagram);
    if (header->checksum != right || datagram.size() != kPacketHeaderBytes + kSealTagBytes + header->payload_bytes) {
      std::abort();
    }
    return;
  }
  std::array<std::byte, kPacketHeaderBytes> out{};
  encode(*header, out, datagram.subspan(kPacketHeaderBytes), {});
  if (!std::ranges::equal(out, datagram.first(kPacketHeaderBytes))) std::abort();
}

void one_byte_is_noticed(std::vector<std::byte> datagram, std::size_t where, std::byte by) {
  if (by == std::byte{0}) return;
  datagram[where % datagram.size()] ^= by;
  if (decode_packet(datagram)) std::abort();
}

/// Corrects the input's length and checksum, with its payload in two parts; the receiver must then believe the packet.
void made_right_is_believed(std::span<const std::byte> bytes) {
  const auto header = decode_quoted(bytes);
  if (!header || bytes.size() - kPacketHeaderBytes > UINT16_MAX) return;
  if ((header->flags & packet_flags::kSealed) != 0) return;
  const auto payload = bytes.subspan(kPacketHeaderBytes);
  const std::size_t cut = payload.size() * (header->number & 0xFFU) / 256;
  std::vector<std::byte> datagram(bytes.begin(), bytes.end());
  encode(*header, std::span(datagram).first<kPacketHeaderBytes>(), payload.first(cut), payload.subspan(cut));
  const auto again = decode_packet(datagram);
  if (!again || again->payload_bytes != payload.size() || again->type != header->type ||
      again->flags != header->flags || again->connection != header->connection || again->number != header->number ||
      again->bitmap != header->bitmap || again->credit != header->credit) {
    std::abort();
  }
  one_byte_is_noticed(std::move(datagram), header->connection, static_cast<std::byte>(header->bitmap));
}

/// Seals the input's header and payload: the receiver must believe the packet once, but not a second time, and not
/// after a change.
void sealed_is_believed_once(std::span<const std::byte> bytes) {
  if (bytes.size() < kPacketHeaderBytes || bytes.size() - kPacketHeaderBytes > 2048) return;
  const auto level = (std::to_integer<unsigned>(bytes[8]) & 1U) != 0 ? tributary::PacketSecurity::encrypt
                                                                     : tributary::PacketSecurity::authenticate;
  PacketHeader header;
  std::memcpy(static_cast<void*>(&header), bytes.data(), sizeof header);
  const auto payload = bytes.subspan(kPacketHeaderBytes);
  header.magic = kPacketMagic;
  header.version = kPacketVersion;
  header.type = PacketType::data;
  header.flags = packet_flags::kSealed;
  header.payload_bytes = static_cast<std::uint16_t>(payload.size());
  header.checksum = 0;
  header.number %= 2ULL << Seal::kPhaseBits;  // covers the keys of two phases
  const SealContext context{.level = level, .client = header.connection, .listener = header.bitmap};
  Seal sender({}, context, true);
  Seal receiver({}, context, false);
  std::vector<std::byte> datagram(kPacketHeaderBytes + kSealTagBytes + payload.size());
  std::memcpy(datagram.data(), &header, sizeof header);
  std::ranges::copy(payload, datagram.begin() + kPacketHeaderBytes + kSealTagBytes);
  const std::size_t cut = kPacketHeaderBytes + kSealTagBytes + payload.size() * (header.bitmap & 0xFFU) / 256;
  const std::vector<std::byte> rest(datagram.begin() + static_cast<std::ptrdiff_t>(cut), datagram.end());
  if (!sender.seal(header.number, std::span(datagram).first(cut), rest, std::span(datagram).subspan(cut))) std::abort();
  if (!decode_packet(datagram)) std::abort();
  auto changed = datagram;
  changed[header.bitmap % changed.size()] ^= std::byte{1};
  if (receiver.open(header.number, changed) != Seal::Verdict::forged) std::abort();
  auto repeated = datagram;
  if (receiver.open(header.number, datagram) != Seal::Verdict::authentic) std::abort();
  if (!std::ranges::equal(payload, payload_of(header, datagram))) std::abort();
  if (receiver.open(header.number, repeated) != Seal::Verdict::repeated) std::abort();
}

void expanding_is_near(std::uint32_t low, std::uint64_t near) {
  const std::uint64_t full = expand(low, near);
  const auto away = static_cast<std::int64_t>(full - near);
  if (static_cast<std::uint32_t>(full) != low || away > INT32_MAX || away < INT32_MIN) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  decoded_is_encoded_again(bytes);
  made_right_is_believed(bytes);
  sealed_is_believed_once(bytes);
  if (size >= 12) {
    std::uint32_t low = 0;
    std::uint64_t near = 0;
    std::memcpy(&low, data, sizeof low);
    std::memcpy(&near, data + sizeof low, sizeof near);
    expanding_is_near(low, near);
  }
  const auto handshake = decode_handshake(bytes.first(std::min(bytes.size(), kHandshakeBytes)));
  if (handshake.has_value() != (size >= kHandshakeBytes)) std::abort();
  if (handshake && std::memcmp(&*handshake, data, kHandshakeBytes) != 0) std::abort();
  return 0;
}
