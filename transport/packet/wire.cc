#include "transport/packet/wire.h"

#include <cstring>
#include <optional>

#include "transport/ethernet/checksum.h"
#include "transport/packet/crc32c.h"
#include "tributary/protocol/assert.h"

namespace tributary::transport::packet {

constexpr std::size_t kChecksummedBytes = offsetof(PacketHeader, checksum);
static_assert(kChecksummedBytes == kCrc32cHeaderBytes);

std::string_view to_string(PacketReject reject) noexcept {
  constexpr std::string_view names[] = {"length", "magic", "version", "type", "flags", "checksum"};
  const auto index = static_cast<std::size_t>(reject);
  return index < kPacketRejects ? names[index] : std::string_view{"unknown"};
}

namespace {

std::uint32_t begin_encoding(PacketHeader& header, std::span<std::byte, kPacketHeaderBytes> out,
                             std::span<const std::byte> copied, std::size_t borrowed_bytes) noexcept {
  TRIBUTARY_ASSERT(copied.size() + borrowed_bytes <= UINT16_MAX, "a packet has a payload of {} bytes",
                   copied.size() + borrowed_bytes);
  header.payload_bytes = static_cast<std::uint16_t>(copied.size() + borrowed_bytes);
  std::memcpy(out.data(), &header, kChecksummedBytes);
  return crc32c(copied, crc32c(out.first(kChecksummedBytes)));
}

void end_encoding(std::span<std::byte, kPacketHeaderBytes> out, std::uint32_t checksum) noexcept {
  std::memcpy(out.data() + kChecksummedBytes, &checksum, sizeof checksum);
}

}  // namespace

void encode(PacketHeader header, std::span<std::byte, kPacketHeaderBytes> out, std::span<const std::byte> copied,
            std::span<const std::byte> borrowed) noexcept {
  end_encoding(out, crc32c(borrowed, begin_encoding(header, out, copied, borrowed.size())));
}

void encode(PacketHeader header, std::span<std::byte, kPacketHeaderBytes> out, std::span<const std::byte> copied,
            const Crc32cSuffix& borrowed, std::size_t borrowed_bytes) noexcept {
  end_encoding(out, borrowed.behind(begin_encoding(header, out, copied, borrowed_bytes)));
}

std::uint32_t DataHeader::begin(std::span<std::byte, kPacketHeaderBytes> out,
                                std::size_t payload_bytes) const noexcept {
  TRIBUTARY_ASSERT(payload_bytes <= UINT16_MAX, "a packet has a payload of {} bytes", payload_bytes);
  for (std::size_t i = 0; i < words_.size(); ++i) {
    std::uint64_t word = i == 0 ? words_[0] | std::uint64_t{payload_bytes} << 48U : words_[i];
    asm("" : "+r"(word));  // keeps the compiler from joining the words into larger stores
    std::memcpy(out.data() + i * sizeof word, &word, sizeof word);
  }
  return crc32c_of_header(out.data());
}

void DataHeader::end(std::span<std::byte, kPacketHeaderBytes> out, std::uint32_t checksum) const noexcept {
  const std::uint64_t last = (words_.back() & 0xFFFFFFFFU) | std::uint64_t{checksum} << 32U;
  std::memcpy(out.data() + kPacketHeaderBytes - sizeof last, &last, sizeof last);
}

void DataHeader::write(std::span<std::byte, kPacketHeaderBytes> out, std::span<const std::byte> copied,
                       const Crc32cSuffix& behind, std::size_t payload_bytes) const noexcept {
  const std::uint32_t before = begin(out, payload_bytes);
  end(out, behind.behind(copied.empty() ? before : crc32c(copied, before)));
}

void DataHeader::write(std::span<std::byte, kPacketHeaderBytes> out, std::span<const std::byte> copied) const noexcept {
  end(out, crc32c(copied, begin(out, copied.size())));
}

std::uint32_t sealed_checksum(std::span<const std::byte> datagram) noexcept {
  return crc32c(datagram.subspan(kPacketHeaderBytes), crc32c(datagram.first(kChecksummedBytes)));
}

namespace {

/// True for nearly all packets: data without a seal, with acknowledgements.
bool begins_as_usual(std::span<const std::byte> bytes) noexcept {
  constexpr std::uint64_t kUsual = kPacketMagic | std::uint64_t{kPacketVersion} << 16U |
                                   std::uint64_t{static_cast<std::uint8_t>(PacketType::data)} << 24U |
                                   std::uint64_t{packet_flags::kAcks} << 32U;
  std::uint64_t begin = 0;
  std::memcpy(&begin, bytes.data(), sizeof begin);
  return (begin & 0xFFFF'FFFF'FFFF) == kUsual;
}

/// Fills `header`, or returns the reason why the bytes are no header. The header is written once, at its final place:
/// the large reads of a copy would wait for the small stores.
std::optional<PacketReject> read_header(std::span<const std::byte> bytes, PacketHeader& header) noexcept {
  if (bytes.size() < kPacketHeaderBytes) return PacketReject::length;
  std::memcpy(static_cast<void*>(&header), bytes.data(), sizeof header);
  if (begins_as_usual(bytes)) return std::nullopt;
  if (header.magic != kPacketMagic) return PacketReject::magic;
  if (header.version != kPacketVersion) return PacketReject::version;
  const auto type = static_cast<std::uint8_t>(header.type);
  if (type < static_cast<std::uint8_t>(PacketType::open) || type > static_cast<std::uint8_t>(PacketType::reset)) {
    return PacketReject::type;
  }
  if ((header.flags & ~packet_flags::kAll) != 0) return PacketReject::flags;
  const bool can_be_sealed = header.type == PacketType::open || header.type == PacketType::accept ||
                             header.type == PacketType::data || header.type == PacketType::close;
  if ((header.flags & packet_flags::kSealed) != 0 && !can_be_sealed) return PacketReject::flags;
  return std::nullopt;
}

/// Verifies both checksums in one pass over the payload.
bool both_right(std::span<const std::byte> datagram, std::uint32_t checksum, ethernet::PartialSum besides) noexcept {
  const auto head = datagram.first(kPacketHeaderBytes);
  besides += ethernet::sum_of_words<kPacketHeaderBytes>(head.data());
  const std::uint32_t found =
      crc32c_and_sum(datagram.subspan(kPacketHeaderBytes), crc32c_of_header(head.data()), besides);
  return found == checksum && ethernet::finish(besides) == 0;
}

}  // namespace

std::optional<PacketReject> read_packet(std::span<const std::byte> datagram, std::optional<std::uint64_t> udp_besides,
                                        PacketHeader& header) noexcept {
  if (const auto reject = read_header(datagram, header)) return reject;
  if ((header.flags & packet_flags::kSealed) != 0) {
    if (udp_besides && ethernet::finish(*udp_besides + ethernet::partial_sum(datagram)) != 0)
      return PacketReject::checksum;
    if (datagram.size() != kPacketHeaderBytes + kSealTagBytes + header.payload_bytes) return PacketReject::length;
    const std::uint32_t right = header.type == PacketType::data ? 0 : sealed_checksum(datagram);
    return header.checksum == right ? std::nullopt : std::optional(PacketReject::checksum);
  }
  const auto payload = datagram.subspan(kPacketHeaderBytes);
  if (payload.size() != header.payload_bytes) return PacketReject::length;
  const bool right = udp_besides ? both_right(datagram, header.checksum, *udp_besides)
                                 : crc32c(payload, crc32c(datagram.first(kChecksummedBytes))) == header.checksum;
  return right ? std::nullopt : std::optional(PacketReject::checksum);
}

std::expected<PacketHeader, PacketReject> decode_quoted(std::span<const std::byte> bytes) noexcept {
  constexpr std::size_t kEnough = offsetof(PacketHeader, connection) + sizeof(PacketHeader::connection);
  std::expected<PacketHeader, PacketReject> header;
  if (bytes.size() < kEnough) return std::unexpected(PacketReject::length);
  std::array<std::byte, kPacketHeaderBytes> quoted{};
  std::memcpy(quoted.data(), bytes.data(), std::min(bytes.size(), quoted.size()));
  if (const auto reject = read_header(quoted, *header)) header = std::unexpected(*reject);
  return header;
}

std::expected<PacketHeader, PacketReject> decode_packet(std::span<const std::byte> datagram,
                                                        std::optional<std::uint64_t> udp_besides) noexcept {
  std::expected<PacketHeader, PacketReject> header;
  if (const auto reject = read_packet(datagram, udp_besides, *header)) header = std::unexpected(*reject);
  return header;
}

std::expected<Handshake, PacketReject> decode_handshake(std::span<const std::byte> payload) noexcept {
  if (payload.size() != kHandshakeBytes) return std::unexpected(PacketReject::length);
  Handshake handshake;
  std::memcpy(static_cast<void*>(&handshake), payload.data(), sizeof handshake);
  return handshake;
}

}  // namespace tributary::transport::packet
