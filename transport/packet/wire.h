#pragma once
// The packet: a header of 64 bytes, then a part of the sender's stream of bytes, or a handshake's fields.
// docs/protocol.md draws it.
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <expected>
#include <optional>
#include <span>
#include <string_view>

#include "transport/packet/crc32c.h"
#include "transport/packet/port.h"

namespace tributary::transport::packet {

inline constexpr std::uint16_t kPacketMagic = 0x5054;  // "TP"
inline constexpr std::uint8_t kPacketVersion = 1;

enum class PacketType : std::uint8_t {
  open = 1,       // client: asks for a connection; the second time with the cookie
  challenge = 2,  // listener: asks for a proof of the client's address, and keeps no state
  accept = 3,     // listener: the connection is made
  redirect = 4,   // listener: names the port that the client must ask instead
  refuse = 5,     // listener: gives no connection; reason: RefuseReason
  data = 6,       // either side: a part of the stream, an acknowledgement, both or neither
  close = 7,      // either side: the connection ends at once
  reset = 8,      // either side: it got a packet for a connection that does not exist
};

namespace packet_flags {
inline constexpr std::uint16_t kFin = 1;     // the stream ends behind this packet's payload
inline constexpr std::uint16_t kPing = 2;    // must be acknowledged although it carries no bytes
inline constexpr std::uint16_t kAcks = 4;    // largest and bitmap are set: a packet has come from the other side
inline constexpr std::uint16_t kSealed = 8;  // an authenticator follows the header; seal.h
inline constexpr std::uint16_t kAll = kFin | kPing | kAcks | kSealed;
}  // namespace packet_flags

/// Numbers and offsets are the lower 32 bits of counts that both sides keep in 64 bits. All are little-endian.
struct PacketHeader {
  std::uint16_t magic = kPacketMagic;
  std::uint8_t version = kPacketVersion;
  PacketType type = PacketType::data;
  std::uint16_t flags = 0;
  std::uint16_t payload_bytes = 0;
  std::uint64_t connection = 0;    // the receiver's name for the connection; reset: the name that was not found
  std::uint64_t number = 0;        // this packet's number: counts up in each connection and direction
  std::uint64_t bitmap = 0;        // bit i: number `largest` - 1 - i has come
  std::uint32_t offset = 0;        // place of the payload's first byte in the sender's stream
  std::uint32_t received = 0;      // all bytes of the receiver's stream below this offset have come
  std::uint32_t credit = 0;        // this many bytes beyond `received` may be sent
  std::uint32_t largest = 0;       // number of the latest packet that has come
  std::uint32_t ack_delay_us = 0;  // time since that packet came
  std::uint32_t marked = 0;        // total number of packets that have come with the congestion mark
  std::uint32_t reason = 0;        // refuse: RefuseReason; otherwise 0
  std::uint32_t checksum = 0;      // CRC32C over all earlier bytes and the payload; 0 in sealed data
};
inline constexpr std::size_t kSealTagBytes = 16;
static_assert(sizeof(PacketHeader) == kPacketHeaderBytes);
static_assert(offsetof(PacketHeader, flags) == 4 && offsetof(PacketHeader, connection) == 8 &&
              offsetof(PacketHeader, number) == 16 && offsetof(PacketHeader, bitmap) == 24 &&
              offsetof(PacketHeader, offset) == 32 && offsetof(PacketHeader, received) == 36 &&
              offsetof(PacketHeader, credit) == 40 && offsetof(PacketHeader, largest) == 44 &&
              offsetof(PacketHeader, ack_delay_us) == 48 && offsetof(PacketHeader, marked) == 52 &&
              offsetof(PacketHeader, reason) == 56 && offsetof(PacketHeader, checksum) == 60);

inline constexpr std::size_t kHandshakeRandomBytes = 16;

/// The payload of open, challenge, accept and redirect. All have the same length, so no answer is longer than its
/// question.
struct Handshake {
  std::uint64_t connection = 0;      // the sender's name for the connection; before accept, the client's name
  std::uint64_t cookie = 0;          // challenge: the cookie to show; open: the cookie shown
  std::uint64_t group = 0;           // open: the group of the connection
  std::uint32_t lane = 0;            // open: the lane of the connection
  std::uint32_t credit = 0;          // open, accept: bytes of the stream that the sender takes at first
  std::uint32_t datagram_bytes = 0;  // open, accept: the longest datagram that the sender takes
  std::uint16_t port = 0;            // redirect: the port to ask, on the same host
  std::uint16_t child = 0;           // sealed open: the child, whose place has the secret
  std::uint32_t epoch = 0;           // sealed open: the epoch of the group's trees
  std::uint32_t security = 0;        // sealed open: PacketSecurity
  std::array<std::byte, kHandshakeRandomBytes> random{};  // sealed open, accept: random bytes for the connection's keys
};
inline constexpr std::size_t kHandshakeBytes = 64;
static_assert(sizeof(Handshake) == kHandshakeBytes);

/// The reason why a datagram is no packet. Such datagrams are counted and dropped.
enum class PacketReject : std::uint8_t { length, magic, version, type, flags, checksum };
inline constexpr std::size_t kPacketRejects = 6;
[[nodiscard]] std::string_view to_string(PacketReject reject) noexcept;

/// The number nearest to `near` whose lower 32 bits are `low`.
[[nodiscard]] constexpr std::uint64_t expand(std::uint32_t low, std::uint64_t near) noexcept {
  return near + static_cast<std::uint64_t>(
                    static_cast<std::int64_t>(static_cast<std::int32_t>(low - static_cast<std::uint32_t>(near))));
}

/// Writes the header with the checksum over it and the two parts of the payload that follow it.
void encode(PacketHeader header, std::span<std::byte, kPacketHeaderBytes> out, std::span<const std::byte> copied,
            std::span<const std::byte> borrowed) noexcept;
/// Does the same for a payload whose second part goes to several receivers, and has a known checksum.
void encode(PacketHeader header, std::span<std::byte, kPacketHeaderBytes> out, std::span<const std::byte> copied,
            const Crc32cSuffix& borrowed, std::size_t borrowed_bytes) noexcept;
/// The headers of data packets that go out together: they differ only in flags, number, offset and length. They are
/// kept, changed and written in words of 64 bits: a large read of bytes that were just stored in small parts would wait
/// for these stores.
class DataHeader {
 public:
  DataHeader() = default;
  /// `told` has all fields except number, offset and length.
  explicit DataHeader(const PacketHeader& told) noexcept {
    const auto pair = [](std::uint32_t low, std::uint32_t high) { return low | std::uint64_t{high} << 32U; };
    first_ = told.magic | std::uint64_t{told.version} << 16U |
             std::uint64_t{static_cast<std::uint8_t>(told.type)} << 24U | std::uint64_t{told.flags} << 32U;
    words_ = {first_,
              told.connection,
              0,
              told.bitmap,
              pair(0, told.received),
              pair(told.credit, told.largest),
              pair(told.ack_delay_us, told.marked),
              told.reason};
  }
  /// `more_flags` are added to the flags that all packets have.
  void set(std::uint16_t more_flags, std::uint64_t number, std::uint32_t offset) noexcept {
    words_[0] = first_ | std::uint64_t{more_flags} << 32U;
    words_[2] = number;
    words_[4] = (words_[4] & ~std::uint64_t{0xFFFFFFFFU}) | offset;
  }
  [[nodiscard]] std::uint64_t number() const noexcept { return words_[2]; }
  [[nodiscard]] PacketHeader fields() const noexcept {
    PacketHeader header;
    std::memcpy(static_cast<void*>(&header), words_.data(), sizeof header);
    return header;
  }
  /// Writes the header with the checksum over it and the payload: `copied`, then the bytes from which `behind` was
  /// made.
  void write(std::span<std::byte, kPacketHeaderBytes> out, std::span<const std::byte> copied,
             const Crc32cSuffix& behind, std::size_t payload_bytes) const noexcept;
  /// Does the same only for a payload of `copied`.
  void write(std::span<std::byte, kPacketHeaderBytes> out, std::span<const std::byte> copied) const noexcept;

 private:
  [[nodiscard]] std::uint32_t begin(std::span<std::byte, kPacketHeaderBytes> out,
                                    std::size_t payload_bytes) const noexcept;
  void end(std::span<std::byte, kPacketHeaderBytes> out, std::uint32_t checksum) const noexcept;

  std::array<std::uint64_t, kPacketHeaderBytes / sizeof(std::uint64_t)> words_{};
  std::uint64_t first_ = 0;  // the first word, with the flags that all packets have
};
static_assert(std::endian::native == std::endian::little);

/// The checksum of a sealed handshake packet or close. These packets also have an authenticator; the checksum shows
/// whether a packet is damaged, or sealed with an unknown secret.
[[nodiscard]] std::uint32_t sealed_checksum(std::span<const std::byte> datagram) noexcept;
/// The header of a whole datagram whose length, enumerators, flags and checksum are right. Sealed data has no checksum:
/// its authenticator takes the checksum's place. `udp_besides`: UDP's checksum is verified in the same pass, too; the
/// value is the sum of the bytes that it covers besides the datagram.
[[nodiscard]] std::expected<PacketHeader, PacketReject> decode_packet(
    std::span<const std::byte> datagram, std::optional<std::uint64_t> udp_besides = std::nullopt) noexcept;
/// Writes the same into `header`, or returns the reason why there is no header.
[[nodiscard]] std::optional<PacketReject> read_packet(std::span<const std::byte> datagram,
                                                      std::optional<std::uint64_t> udp_besides,
                                                      PacketHeader& header) noexcept;
/// The header of a packet of this side that an ICMP error quotes; no checksum is verified. The quotation suffices if it
/// has the type and the connection; bytes that are not quoted count as zero.
[[nodiscard]] std::expected<PacketHeader, PacketReject> decode_quoted(std::span<const std::byte> bytes) noexcept;
/// The part of a datagram behind its header and, if it has one, its authenticator.
[[nodiscard]] inline std::span<std::byte> payload_of(const PacketHeader& header,
                                                     std::span<std::byte> datagram) noexcept {
  const bool sealed = (header.flags & packet_flags::kSealed) != 0;
  return datagram.subspan(kPacketHeaderBytes + (sealed ? kSealTagBytes : 0));
}
[[nodiscard]] std::expected<Handshake, PacketReject> decode_handshake(std::span<const std::byte> payload) noexcept;

}  // namespace tributary::transport::packet
