#include "packet/wire.h"

#include <cstring>

#include "packet/crc32c.h"

namespace tributary::transport::packet {

constexpr std::size_t kChecksummedBytes = offsetof(PacketHeader, checksum);

std::string_view to_string(PacketReject reject) noexcept {
  constexpr std::string_view names[] = {"length", "magic", "version", "type", "flags", "checksum"};
  const auto index = static_cast<std::size_t>(reject);
  return index < kPacketRejects ? names[index] : std::string_view{"unknown"};
}

void encode(PacketHeader header, std::span<std::byte, kPacketHeaderBytes> out, std::span<const std::byte> copied,
            std::span<const std::byte> borrowed) noexcept {
  header.payload_bytes = static_cast<std::uint16_t>(copied.size() + borrowed.size());
  std::memcpy(out.data(), &header, kChecksummedBytes);
  std::uint32_t checksum = crc32c(out.first(kChecksummedBytes));
  checksum = crc32c(copied, checksum);
  checksum = crc32c(borrowed, checksum);
  std::memcpy(out.data() + kChecksummedBytes, &checksum, sizeof checksum);
}

std::uint32_t sealed_checksum(std::span<const std::byte> datagram) noexcept {
  return crc32c(datagram.subspan(kPacketHeaderBytes), crc32c(datagram.first(kChecksummedBytes)));
}

std::expected<PacketHeader, PacketReject> decode_quoted(std::span<const std::byte> bytes) noexcept {
  if (bytes.size() < kPacketHeaderBytes) return std::unexpected(PacketReject::length);
  PacketHeader header;
  std::memcpy(static_cast<void*>(&header), bytes.data(), sizeof header);
  if (header.magic != kPacketMagic) return std::unexpected(PacketReject::magic);
  if (header.version != kPacketVersion) return std::unexpected(PacketReject::version);
  const auto type = static_cast<std::uint8_t>(header.type);
  if (type < static_cast<std::uint8_t>(PacketType::open) || type > static_cast<std::uint8_t>(PacketType::reset)) {
    return std::unexpected(PacketReject::type);
  }
  if ((header.flags & ~packet_flags::kAll) != 0) return std::unexpected(PacketReject::flags);
  const bool can_be_sealed = header.type == PacketType::open || header.type == PacketType::accept ||
                             header.type == PacketType::data || header.type == PacketType::close;
  if ((header.flags & packet_flags::kSealed) != 0 && !can_be_sealed) return std::unexpected(PacketReject::flags);
  return header;
}

std::expected<PacketHeader, PacketReject> decode_packet(std::span<const std::byte> datagram) noexcept {
  const auto header = decode_quoted(datagram);
  if (!header) return header;
  if ((header->flags & packet_flags::kSealed) != 0) {
    if (datagram.size() != kPacketHeaderBytes + kSealTagBytes + header->payload_bytes) {
      return std::unexpected(PacketReject::length);
    }
    const std::uint32_t right = header->type == PacketType::data ? 0 : sealed_checksum(datagram);
    if (header->checksum != right) return std::unexpected(PacketReject::checksum);
    return header;
  }
  const auto payload = datagram.subspan(kPacketHeaderBytes);
  if (payload.size() != header->payload_bytes) return std::unexpected(PacketReject::length);
  if (crc32c(payload, crc32c(datagram.first(kChecksummedBytes))) != header->checksum) {
    return std::unexpected(PacketReject::checksum);
  }
  return header;
}

std::expected<Handshake, PacketReject> decode_handshake(std::span<const std::byte> payload) noexcept {
  if (payload.size() != kHandshakeBytes) return std::unexpected(PacketReject::length);
  Handshake handshake;
  std::memcpy(static_cast<void*>(&handshake), payload.data(), sizeof handshake);
  return handshake;
}

}  // namespace tributary::transport::packet
